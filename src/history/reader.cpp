#include "history/reader.hpp"

#include <algorithm>
#include <bit>
#include <system_error>
#include <utility>

#include "history/schema.hpp"

namespace balanceroute::history {
namespace {

constexpr std::chrono::milliseconds kBusy{2'000};

constexpr const char* kColumns =
    "arrived_unix_ms, total_us, first_token_us, prefill_us, pool_wait_us, fleet, worker_group, worker, rank, policy, "
    "outcome, complete, status, tries, sequences, prompt_tokens, output_tokens, output_limit_tokens, prompt_key, "
    "opening_key, cached_tokens";

constexpr const char* kSelected =
    " FROM requests WHERE (?1 = '' OR fleet = ?1) AND (?2 IS NULL OR arrived_unix_ms >= ?2) "
    "AND (?3 IS NULL OR arrived_unix_ms < ?3)";

std::optional<Microseconds> time_at(const Statement& row, int column) {
  const auto count = row.number_if_any(column);
  return count ? std::optional{Microseconds{*count}} : std::nullopt;
}

UnixTime unix_time(std::int64_t ms) {
  return UnixTime{std::chrono::milliseconds{ms}};
}

std::int32_t small_at(const Statement& row, int column) {
  return static_cast<std::int32_t>(row.number(column));
}

// A file may hold anything; what the rest of the program relies on is put right here.
Record record_at(const Statement& row) {
  int next = 0;
  Record record;
  record.arrived = unix_time(row.number(next++));
  record.total = Microseconds{std::max<std::int64_t>(row.number(next++), 0)};
  record.first_token = time_at(row, next++);
  record.prefill = time_at(row, next++);
  record.pool_wait = time_at(row, next++);
  record.fleet = row.text(next++);
  record.group = row.text(next++);
  record.worker = row.text(next++);
  record.rank = small_at(row, next++);
  record.policy = row.text(next++);
  record.outcome = row.text(next++);
  record.complete = row.number(next++) != 0;
  record.status = small_at(row, next++);
  record.tries = small_at(row, next++);
  record.sequences = std::max(small_at(row, next++), 1);
  record.prompt = Tokens{std::max<std::int64_t>(row.number(next++), 0)};
  record.output = Tokens{std::max<std::int64_t>(row.number(next++), 0)};
  if (const auto limit = row.number_if_any(next++)) record.output_limit = Tokens{*limit};
  record.prompt_key = std::bit_cast<std::uint64_t>(row.number_if_any(next++).value_or(0));
  record.opening_key = std::bit_cast<std::uint64_t>(row.number_if_any(next++).value_or(0));
  if (const auto cached = row.number_if_any(next++)) record.cached = Tokens{*cached};
  return record;
}

std::optional<std::int64_t> ms_of(const std::optional<UnixTime>& time) {
  return time ? std::optional<std::int64_t>{time->time_since_epoch().count()} : std::nullopt;
}

void bind(Statement& statement, const Selection& selection) {
  statement.bind(0, selection.fleet);
  statement.bind(1, ms_of(selection.since));
  statement.bind(2, ms_of(selection.until));
}

// Calls use(row) for each.
template <class Use>
Result<void> for_each_row(Statement& statement, const Use& use) {
  for (;;) {
    const auto row = statement.step();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
    use(statement);
  }
}

Fault named(const std::filesystem::path& path, const Fault& fault) {
  return {fault.kind, path.string() + ": " + fault.message};
}

}  // namespace

Result<Reader> Reader::open(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) {
    return std::unexpected(Fault{FaultKind::io, path.string() + ": is not there, or no file"});
  }
  auto database = Database::open(path, Database::Use::read_or_write, kBusy);
  if (!database) return std::unexpected(named(path, database.error()));
  // An empty file would become an empty history.
  const auto tables = database->number("SELECT count(*) FROM sqlite_master");
  if (!tables) return std::unexpected(named(path, tables.error()));
  if (*tables == 0) return std::unexpected(Fault{FaultKind::foreign, path.string() + ": is empty: expected a history"});
  if (const auto done = migrate(*database); !done) return std::unexpected(named(path, done.error()));
  return Reader{*std::move(database)};
}

Result<void> Reader::each(const Selection& selection, const std::function<void(const Record&)>& use) {
  auto statement = database_.prepare(std::string{"SELECT "} + kColumns + kSelected + " ORDER BY arrived_unix_ms, id");
  if (!statement) return std::unexpected(std::move(statement).error());
  bind(*statement, selection);
  return for_each_row(*statement, [&use](const Statement& row) { use(record_at(row)); });
}

Result<std::vector<Record>> Reader::latest(const std::string& fleet, std::int64_t count) {
  auto statement = database_.prepare(std::string{"SELECT "} + kColumns +
                                     " FROM requests WHERE fleet = ?1 ORDER BY id DESC LIMIT ?2");
  if (!statement) return std::unexpected(std::move(statement).error());
  statement->bind(0, fleet);
  statement->bind(1, count);
  std::vector<Record> records;
  const auto done = for_each_row(*statement, [&](const Statement& row) { records.push_back(record_at(row)); });
  if (!done) return std::unexpected(done.error());
  std::ranges::reverse(records);
  return records;
}

Result<Summary> Reader::summary(const Selection& selection) {
  Summary summary{.schema_version = kSchemaVersion};
  auto totals = database_.prepare(
      std::string{"SELECT count(*), count(DISTINCT prompt_key), min(arrived_unix_ms), max(arrived_unix_ms)"} +
      kSelected);
  if (!totals) return std::unexpected(std::move(totals).error());
  bind(*totals, selection);
  auto done = for_each_row(*totals, [&](const Statement& row) {
    summary.requests = row.number(0);
    summary.prompts = row.number(1);
    if (const auto first = row.number_if_any(2)) summary.first_arrival = unix_time(*first);
    if (const auto last = row.number_if_any(3)) summary.last_arrival = unix_time(*last);
  });
  if (!done) return std::unexpected(std::move(done).error());
  auto outcomes = database_.prepare(
      std::string{"SELECT fleet, outcome, count(*), sum(sequences), sum(prompt_tokens), sum(output_tokens)"} +
      kSelected + " GROUP BY fleet, outcome ORDER BY fleet, outcome");
  if (!outcomes) return std::unexpected(std::move(outcomes).error());
  bind(*outcomes, selection);
  done = for_each_row(*outcomes, [&](const Statement& row) {
    summary.outcomes.push_back({row.text(0), row.text(1), row.number(2), row.number(3), row.number(4), row.number(5)});
  });
  if (!done) return std::unexpected(std::move(done).error());
  const auto bytes = database_.number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
  if (!bytes) return std::unexpected(bytes.error());
  summary.file_bytes = *bytes;
  return summary;
}

}  // namespace balanceroute::history
