// live_history.hpp - the last minutes of figures that somebody may come to look at.
//
// Columns of numbers by name over common points in time. Leaves out which figures, and how they are shown.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace balanceroute::proxy {

// LiveHistory keeps the latest rows.
//   Shape    a column is as long as the times; where a row did not name it, it has no number.
//   Bounds   `rows` rows, and the columns that have a number in one of them.
//   Threads  not synchronised.
class LiveHistory {
 public:
  using Row = std::vector<std::pair<std::string, double>>;

  explicit LiveHistory(std::size_t rows) : rows_{rows} {}

  void add(double at_s, const Row& row);
  // {"at_s": [...], "columns": {"name": [...]}}, null where there is no number.
  [[nodiscard]] nlohmann::json as_json() const;

 private:
  struct Column {
    std::deque<double> values;  // NaN: none
    std::size_t numbers = 0;
  };

  std::size_t rows_;
  std::deque<double> times_;
  std::map<std::string, Column> columns_;
};

}  // namespace balanceroute::proxy
