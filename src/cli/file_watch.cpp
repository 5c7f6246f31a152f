#include "cli/file_watch.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

namespace balanceroute::cli {

bool FileWatch::has_changed() {
  struct stat now{};
  if (::stat(path_.c_str(), &now) != 0) return false;
  std::string look =
      fmt::format("{} {} {} {}.{}", now.st_dev, now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec);
  if (look == seen_) return false;
  seen_ = std::move(look);
  return true;
}

void FileWatches::follow(const std::vector<std::string>& paths) {
  std::map<std::string, FileWatch> next;
  for (const std::string& path : paths) {
    if (auto known = files_.extract(path)) {
      next.insert(std::move(known));
    } else {
      next.emplace(path, FileWatch{path});
    }
  }
  files_ = std::move(next);
}

bool FileWatches::has_changed() {
  bool any = false;
  for (auto& [path, file] : files_) {
    if (file.has_changed()) any = true;
  }
  return any;
}

}  // namespace balanceroute::cli
