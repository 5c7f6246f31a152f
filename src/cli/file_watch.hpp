// file_watch.hpp - whether a file has changed since the last look.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

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

// FileWatches watches a list of files that may change.
class FileWatches {
 public:
  // From now on these; of those that were watched before no change is missed.
  void follow(const std::vector<std::string>& paths);
  // Any of them, since the last call.
  bool has_changed();

 private:
  std::map<std::string, FileWatch> files_;
};

}  // namespace balanceroute::cli
