#include "history/schema.hpp"

#include <array>
#include <string>

namespace balanceroute::history {
namespace {

constexpr std::int64_t kApplicationId = 0x42526869;  // "BRhi"

// What leads from version i to version i + 1. A step that has been released never changes.
constexpr std::array<const char*, kSchemaVersion> kSteps{
    R"(CREATE TABLE requests (
         id INTEGER PRIMARY KEY,
         arrived_unix_ms INTEGER NOT NULL,
         total_us INTEGER NOT NULL,
         first_token_us INTEGER,
         prefill_us INTEGER,
         pool_wait_us INTEGER,
         fleet TEXT NOT NULL,
         worker_group TEXT NOT NULL,
         worker TEXT NOT NULL,
         rank INTEGER NOT NULL,
         policy TEXT NOT NULL,
         outcome TEXT NOT NULL,
         complete INTEGER NOT NULL,
         status INTEGER NOT NULL,
         tries INTEGER NOT NULL,
         sequences INTEGER NOT NULL,
         prompt_tokens INTEGER NOT NULL,
         output_tokens INTEGER NOT NULL,
         output_limit_tokens INTEGER,
         prompt_key INTEGER
       ))",
    R"(ALTER TABLE requests ADD COLUMN opening_key INTEGER;
       ALTER TABLE requests ADD COLUMN cached_tokens INTEGER)",
};

std::unexpected<Fault> foreign(std::string message) {
  return std::unexpected(Fault{FaultKind::foreign, std::move(message)});
}

// The version that the file has; 0 for an empty one.
Result<std::int64_t> version_of(Database& database) {
  const auto application = database.number("PRAGMA application_id");
  if (!application) return application;
  const auto version = database.number("PRAGMA user_version");
  if (!version) return version;
  const auto tables = database.number("SELECT count(*) FROM sqlite_master");
  if (!tables) return tables;
  if (*application == kApplicationId ? *version < 1 : *tables > 0 || *version > 0) {
    return foreign("it is a database of another program: expected a history, or no file");
  }
  if (*version > kSchemaVersion) {
    return foreign("its schema has version " + std::to_string(*version) + ", and this program knows up to " +
                   std::to_string(kSchemaVersion) + ": it was written by a later release");
  }
  return *version;
}

Result<void> take_steps(Database& database, std::int64_t from) {
  for (auto version = static_cast<std::size_t>(from); version < kSteps.size(); ++version) {
    if (auto done = database.execute(kSteps[version]); !done) return done;
  }
  return database.execute("PRAGMA application_id = " + std::to_string(kApplicationId) +
                          "; PRAGMA user_version = " + std::to_string(kSchemaVersion));
}

}  // namespace

Result<void> migrate(Database& database) {
  const auto seen = version_of(database);
  if (!seen) return std::unexpected(seen.error());
  if (*seen == kSchemaVersion) return {};
  if (auto begun = database.execute("BEGIN IMMEDIATE"); !begun) return begun;
  // Another process may have been faster.
  const auto version = version_of(database);
  Result<void> done;
  if (!version) {
    done = std::unexpected(version.error());
  } else {
    done = take_steps(database, *version);
  }
  if (done) done = database.execute("COMMIT");
  if (!done) (void)database.execute("ROLLBACK");
  return done;
}

}  // namespace balanceroute::history
