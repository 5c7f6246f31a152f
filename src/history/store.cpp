#include "history/store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "history/schema.hpp"

namespace balanceroute::history {
namespace {

constexpr const char* kInsert =
    "INSERT INTO requests (arrived_unix_ms, total_us, first_token_us, prefill_us, pool_wait_us, fleet, worker_group, "
    "worker, rank, policy, outcome, complete, status, tries, sequences, prompt_tokens, output_tokens, "
    "output_limit_tokens, prompt_key, opening_key, cached_tokens) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

// Rows that go in one transaction, so that readers and the next batch need not wait for long.
constexpr std::int64_t kRowsAtOnce = 2'000;
// The write-ahead log is cut back to this once it has been larger.
constexpr const char* kLogBytes = "4194304";
// Shares of max_bytes: above the first rows go, until what is left is below the second.
constexpr double kNearlyFull = 0.95;
constexpr double kRoomAgain = 0.85;
constexpr UnixTime kAnyAge = UnixTime::max();

template <class Quantity>
std::optional<std::int64_t> count_of(const std::optional<Quantity>& quantity) {
  return quantity ? std::optional<std::int64_t>{quantity->count()} : std::nullopt;
}

std::optional<std::int64_t> key_of(std::uint64_t key) {
  return key != 0 ? std::optional{std::bit_cast<std::int64_t>(key)} : std::nullopt;
}

void bind(Statement& insert, const Record& record) {
  int next = 0;
  insert.bind(next++, record.arrived.time_since_epoch().count());
  insert.bind(next++, record.total.count());
  insert.bind(next++, count_of(record.first_token));
  insert.bind(next++, count_of(record.prefill));
  insert.bind(next++, count_of(record.pool_wait));
  insert.bind(next++, record.fleet);
  insert.bind(next++, record.group);
  insert.bind(next++, record.worker);
  insert.bind(next++, std::int64_t{record.rank});
  insert.bind(next++, record.policy);
  insert.bind(next++, record.outcome);
  insert.bind(next++, std::int64_t{record.complete});
  insert.bind(next++, std::int64_t{record.status});
  insert.bind(next++, std::int64_t{record.tries});
  insert.bind(next++, std::int64_t{record.sequences});
  insert.bind(next++, record.prompt.count());
  insert.bind(next++, record.output.count());
  insert.bind(next++, count_of(record.output_limit));
  insert.bind(next++, key_of(record.prompt_key));
  insert.bind(next++, key_of(record.opening_key));
  insert.bind(next++, count_of(record.cached));
}

// SQLite gives the files beside it the same rights.
void make_private(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) ::close(file);
}

// auto_vacuum has to come first: it is part of how an empty file is begun.
Result<void> configure(Database& database) {
  return database.execute(std::string{"PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; "
                                      "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = "} +
                          kLogBytes);
}

}  // namespace

Result<Store> Store::open(const std::filesystem::path& path, const StoreLimits& limits,
                          std::chrono::milliseconds busy) {
  make_private(path);
  auto database = Database::open(path, Database::Use::create, busy);
  if (!database) return std::unexpected(std::move(database).error());
  Result<void> ready = configure(*database);
  if (ready) ready = migrate(*database);
  if (!ready) return std::unexpected(std::move(ready).error());
  const auto page_bytes = database->number("PRAGMA page_size");
  if (!page_bytes) return std::unexpected(page_bytes.error());
  const std::int64_t pages = limits.max_bytes / std::max<std::int64_t>(*page_bytes, 1);
  if (auto set = database->execute("PRAGMA max_page_count = " + std::to_string(pages)); !set) {
    return std::unexpected(std::move(set).error());
  }
  auto insert = database->prepare(kInsert);
  if (!insert) return std::unexpected(std::move(insert).error());
  return Store{*std::move(database), *std::move(insert), limits, *page_bytes};
}

Result<void> Store::append(std::span<const Record> records) {
  if (auto begun = database_.execute("BEGIN IMMEDIATE"); !begun) return begun;
  Result<void> done = insert_all(records);
  if (done) done = database_.execute("COMMIT");
  if (!done) (void)database_.execute("ROLLBACK");  // some faults have rolled back already
  return done;
}

Result<void> Store::insert_all(std::span<const Record> records) {
  for (const Record& record : records) {
    bind(insert_, record);
    if (auto done = insert_.run(); !done) return done;
  }
  return {};
}

Result<void> Store::prune(UnixTime now) {
  for (;;) {
    const auto dropped = drop_oldest(kRowsAtOnce, now - limits_.max_age);
    if (!dropped) return std::unexpected(dropped.error());
    if (*dropped < kRowsAtOnce) break;
  }
  auto used = used_bytes();
  if (!used) return std::unexpected(used.error());
  const auto most = static_cast<double>(limits_.max_bytes);
  if (static_cast<double>(*used) > kNearlyFull * most) {
    while (static_cast<double>(*used) > kRoomAgain * most) {
      const auto dropped = drop_oldest(kRowsAtOnce, kAnyAge);
      if (!dropped) return std::unexpected(dropped.error());
      if (*dropped == 0) break;
      used = used_bytes();
      if (!used) return std::unexpected(used.error());
    }
  }
  return give_back_pages();
}

Result<void> Store::make_room() {
  const auto rows = database_.number("SELECT count(*) FROM requests");
  if (!rows) return std::unexpected(rows.error());
  const auto dropped = drop_oldest(*rows / 10 + 1, kAnyAge);
  if (!dropped) return std::unexpected(dropped.error());
  return {};
}

// Of so many that were written first; how many went.
Result<std::int64_t> Store::drop_oldest(std::int64_t rows, UnixTime older_than) {
  auto drop = database_.prepare(
      "DELETE FROM requests WHERE id IN (SELECT id FROM requests ORDER BY id LIMIT ?1) "
      "AND arrived_unix_ms + total_us / 1000 < ?2");
  if (!drop) return std::unexpected(std::move(drop).error());
  drop->bind(0, rows);
  drop->bind(1, older_than.time_since_epoch().count());
  if (auto done = drop->run(); !done) return std::unexpected(std::move(done).error());
  return database_.number("SELECT changes()");
}

Result<void> Store::give_back_pages() {
  return database_.execute("PRAGMA incremental_vacuum");
}

Result<std::int64_t> Store::used_bytes() {
  const auto pages = database_.number("PRAGMA page_count");
  if (!pages) return pages;
  const auto unused = database_.number("PRAGMA freelist_count");
  if (!unused) return unused;
  return (*pages - *unused) * page_bytes_;
}

}  // namespace balanceroute::history
