// schema.hpp - the tables of a history file, and how files of earlier versions of them become files of this one.
#pragma once

#include "history/database.hpp"

namespace balanceroute::history {

// In PRAGMA user_version; PRAGMA application_id says that the file is a history at all.
inline constexpr std::int64_t kSchemaVersion = 2;

// Makes the tables of an empty file and brings earlier ones up to date, whole or not at all. A file of a later version,
// or of another program, is refused as `foreign` and stays as it is.
[[nodiscard]] Result<void> migrate(Database& database);

}  // namespace balanceroute::history
