// database.hpp - SQLite's C interface as owners and values: a connection, a statement, faults instead of codes.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "history/fault.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace balanceroute::history {

template <class T>
using Result = std::expected<T, Fault>;

// Statement is prepared once and run often.
//   Columns  and parameters count from 0.
//   Threads  one at a time, as its Database, which outlives it.
class Statement {
 public:
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, std::optional<std::int64_t> value);
  // The text must stay until the statement has run.
  void bind(int parameter, std::string_view text);

  // True: a row is there to be read. After false or a fault the statement can be bound and run anew.
  [[nodiscard]] Result<bool> step();
  // Of a statement without rows.
  [[nodiscard]] Result<void> run();

  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] std::optional<std::int64_t> number_if_any(int column) const;
  [[nodiscard]] std::string text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_{statement} {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Database is one connection to a file.
//   Threads  one at a time.
class Database {
 public:
  enum class Use : std::uint8_t { read_or_write, create };

  // Waits for others that hold the file, but no longer than `busy` an operation.
  [[nodiscard]] static Result<Database> open(const std::filesystem::path& path, Use use,
                                             std::chrono::milliseconds busy);

  // One or several statements whose rows, if any, are of no interest.
  [[nodiscard]] Result<void> execute(const std::string& sql);
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  // Of a statement with one number in one row.
  [[nodiscard]] Result<std::int64_t> number(std::string_view sql);

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  explicit Database(sqlite3* connection) : connection_{connection} {}
  [[nodiscard]] std::unexpected<Fault> fault() const;

  std::unique_ptr<sqlite3, Close> connection_;
};

}  // namespace balanceroute::history
