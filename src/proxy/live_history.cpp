#include "proxy/live_history.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace balanceroute::proxy {

void LiveHistory::add(double at_s, const Row& row) {
  const std::size_t before = times_.size();
  times_.push_back(at_s);
  for (const auto& [name, value] : row) {
    Column& column = columns_[name];
    column.values.resize(before, std::numeric_limits<double>::quiet_NaN());
    column.values.push_back(value);
    ++column.numbers;
  }
  const bool full = times_.size() > rows_;
  if (full) times_.pop_front();
  for (auto at = columns_.begin(); at != columns_.end();) {
    Column& column = at->second;
    column.values.resize(before + 1, std::numeric_limits<double>::quiet_NaN());
    if (full) {
      if (!std::isnan(column.values.front())) --column.numbers;
      column.values.pop_front();
    }
    at = column.numbers == 0 ? columns_.erase(at) : std::next(at);
  }
}

nlohmann::json LiveHistory::as_json() const {
  nlohmann::json columns = nlohmann::json::object();
  for (const auto& [name, column] : columns_) {
    nlohmann::json values = nlohmann::json::array();
    for (const double value : column.values) {
      if (std::isnan(value)) {
        values.push_back(nullptr);
      } else if (value == std::trunc(value)) {
        values.push_back(static_cast<std::int64_t>(value));  // without ".0", which is most of what is sent
      } else {
        values.push_back(value);
      }
    }
    columns[name] = std::move(values);
  }
  return {{"at_s", times_}, {"columns", std::move(columns)}};
}

}  // namespace balanceroute::proxy
