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

}  // namespace balanceroute::cli
