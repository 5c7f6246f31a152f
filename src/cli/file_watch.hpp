// file_watch.hpp - whether a file has changed since the last look.
#pragma once

#include <string>
#include <utility>

namespace balanceroute::cli {

// FileWatch remembers what a file looked like: which file it is, how long and how old. A file that is not there does
// not count as changed, because editors and Kubernetes put a new one in the place of the old.
class FileWatch {
 public:
  explicit FileWatch(std::string path) : path_{std::move(path)} { has_changed(); }

  // Since the last call.
  bool has_changed();

 private:
  std::string path_;
  std::string seen_;
};

}  // namespace balanceroute::cli
