// store.hpp - the writing side of a history file: rows in, the oldest out.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>

#include "history/database.hpp"
#include "history/record.hpp"

namespace balanceroute::history {

struct StoreLimits {
  std::chrono::milliseconds max_age = std::chrono::days{30};
  std::int64_t max_bytes = std::int64_t{1} << 30;
};

// Store writes the rows of one history file.
//   Bounds    of the database file max_bytes is never passed; its write-ahead log adds a few MiB. Of several bounds the
//             tighter one counts, and the oldest rows go first.
//   Safety    what append() has said yes to outlives the process; the last of it may not outlive the machine's power.
//   The
//             file is always whole.
//   Threads   one at a time.
class Store {
 public:
  // Makes the file, for its owner alone, or brings an earlier one up to date.
  [[nodiscard]] static Result<Store> open(const std::filesystem::path& path, const StoreLimits& limits,
                                          std::chrono::milliseconds busy);

  // All of them or none.
  [[nodiscard]] Result<void> append(std::span<const Record> records);
  // Takes out what is too old at `now`, and the oldest rows where the file is nearly full.
  [[nodiscard]] Result<void> prune(UnixTime now);
  // Takes out the oldest tenth.
  [[nodiscard]] Result<void> make_room();
  // Of the database file in use.
  [[nodiscard]] Result<std::int64_t> used_bytes();

 private:
  Store(Database database, Statement insert, const StoreLimits& limits, std::int64_t page_bytes)
      : database_{std::move(database)}, insert_{std::move(insert)}, limits_{limits}, page_bytes_{page_bytes} {}

  [[nodiscard]] Result<void> insert_all(std::span<const Record> records);
  [[nodiscard]] Result<std::int64_t> drop_oldest(std::int64_t rows, UnixTime older_than);
  [[nodiscard]] Result<void> give_back_pages();

  Database database_;
  Statement insert_;
  StoreLimits limits_;
  std::int64_t page_bytes_;
};

}  // namespace balanceroute::history
