#include "history/database.hpp"

#include <sqlite3.h>

#include <utility>

namespace balanceroute::history {
namespace {

FaultKind kind_of(int code) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return FaultKind::busy;
    case SQLITE_FULL:
      return FaultKind::full;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return FaultKind::corrupt;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return FaultKind::io;
    default:
      return FaultKind::other;
  }
}

std::unexpected<Fault> fault_of(sqlite3* connection) {
  return std::unexpected(Fault{kind_of(sqlite3_errcode(connection)), sqlite3_errmsg(connection)});
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Statement::bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter + 1, value);
}

void Statement::bind(int parameter, std::optional<std::int64_t> value) {
  if (value) {
    bind(parameter, *value);
  } else {
    sqlite3_bind_null(statement_.get(), parameter + 1);
  }
}

void Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text(statement_.get(), parameter + 1, text.data(), static_cast<int>(text.size()), nullptr);
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  std::optional<std::unexpected<Fault>> failed;
  if (code != SQLITE_DONE) failed = fault_of(sqlite3_db_handle(statement_.get()));
  sqlite3_reset(statement_.get());
  if (failed) return *std::move(failed);
  return false;
}

Result<void> Statement::run() {
  const auto stepped = step();
  if (!stepped) return std::unexpected(stepped.error());
  return {};
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::optional<std::int64_t> Statement::number_if_any(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return number(column);
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void Database::Close::operator()(sqlite3* connection) const {
  sqlite3_close(connection);
}

Result<Database> Database::open(const std::filesystem::path& path, Use use, std::chrono::milliseconds busy) {
  const int create = use == Use::create ? SQLITE_OPEN_CREATE : 0;
  sqlite3* connection = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | create, nullptr);
  Database database{connection};
  if (connection == nullptr) return std::unexpected(Fault{FaultKind::other, "out of memory"});
  if (code != SQLITE_OK) return database.fault();
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, static_cast<int>(busy.count()));
  return database;
}

Result<void> Database::execute(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return fault();
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr) !=
      SQLITE_OK) {
    return fault();
  }
  return Statement{statement};
}

Result<std::int64_t> Database::number(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return std::unexpected(std::move(statement).error());
  const auto row = statement->step();
  if (!row) return std::unexpected(row.error());
  return *row ? statement->number(0) : 0;
}

std::unexpected<Fault> Database::fault() const {
  return fault_of(connection_.get());
}

}  // namespace balanceroute::history
