// text_table.hpp - a table for a terminal.
#pragma once

#include <string>
#include <vector>

namespace balanceroute::sim {

// TextTable is rows of texts in aligned columns, the first to the left and the others to the right.
class TextTable {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  // A line a row.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace balanceroute::sim
