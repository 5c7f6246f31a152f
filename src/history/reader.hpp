// reader.hpp - the reading side of a history file, while a router writes it or not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "history/database.hpp"
#include "history/record.hpp"

namespace balanceroute::history {

// Which requests are read; all that is empty asks for nothing.
struct Selection {
  std::string fleet;
  std::optional<UnixTime> since{};  // arrived then or later
  std::optional<UnixTime> until{};  // arrived before
};

// Of the requests with one outcome at one fleet.
struct OutcomeSummary {
  std::string fleet;
  std::string outcome;
  std::int64_t requests = 0;
  std::int64_t sequences = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
};

struct Summary {
  std::int64_t requests = 0;
  std::int64_t prompts = 0;  // different ones, of those whose hash is known
  std::optional<UnixTime> first_arrival{};
  std::optional<UnixTime> last_arrival{};
  std::int64_t file_bytes = 0;
  std::int64_t schema_version = 0;
  std::vector<OutcomeSummary> outcomes{};  // by fleet, then outcome
};

// Reader reads one history file.
//   Schema   a file of an earlier version is brought up to date first, which takes the right to write it.
//   Threads  one at a time.
class Reader {
 public:
  // A fault names the file.
  [[nodiscard]] static Result<Reader> open(const std::filesystem::path& path);

  // In order of arrival.
  [[nodiscard]] Result<void> each(const Selection& selection, const std::function<void(const Record&)>& use);
  // The last so many that ended at the fleet, in order of their ends.
  [[nodiscard]] Result<std::vector<Record>> latest(const std::string& fleet, std::int64_t count);
  [[nodiscard]] Result<Summary> summary(const Selection& selection);

 private:
  explicit Reader(Database database) : database_{std::move(database)} {}

  Database database_;
};

}  // namespace balanceroute::history
