// finished_requests.hpp - records of finished requests for tests of the history.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "history/record.hpp"

namespace balanceroute::testing_support {

inline constexpr history::UnixTime kNoon{std::chrono::milliseconds{1'750'000'000'000}};

// The number-th request of a busy second: it arrives so many milliseconds after kNoon.
inline history::Record finished_request(std::int64_t number, std::int64_t output = 20) {
  history::Record record;
  record.arrived = kNoon + std::chrono::milliseconds{number};
  record.total = std::chrono::milliseconds{500};
  record.first_token = std::chrono::milliseconds{80};
  record.pool_wait = history::Microseconds{1'234};
  record.fleet = "chat";
  record.group = "a";
  record.worker = "10.0.0.1:8000";
  record.rank = 3;
  record.policy = "br_h";
  record.outcome = "ok";
  record.complete = true;
  record.status = 200;
  record.prompt = Tokens{100 + number};
  record.output = Tokens{output};
  record.output_limit = Tokens{256};
  record.cached = Tokens{16};
  record.opening_key = 9;
  record.prompt_key = 0xffff'0000'0000'0001U + static_cast<std::uint64_t>(number);
  return record;
}

inline std::vector<history::Record> finished_requests(std::int64_t count) {
  std::vector<history::Record> records;
  for (std::int64_t i = 0; i < count; ++i) records.push_back(finished_request(i));
  return records;
}

}  // namespace balanceroute::testing_support
