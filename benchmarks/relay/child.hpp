// child.hpp - a relay under measurement: a process of its own, whose CPU time and memory the system counts.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace balanceroute::relay_bench {

// Child is a process that ends with this object.
class Child {
 public:
  // Runs `body` in a fork; it must not return.
  explicit Child(const std::function<void()>& body);
  // Runs a command with its output in `log`.
  Child(const std::vector<std::string>& command, const std::string& log);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  // Of all its threads, user and system, since it began.
  [[nodiscard]] std::chrono::nanoseconds cpu_time() const;
  [[nodiscard]] std::int64_t resident_kib() const;

 private:
  pid_t pid_;
};

}  // namespace balanceroute::relay_bench
