#include "cli/output_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace balanceroute::cli {

std::expected<void, Failure> check_output(const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return bad_usage(path + ": is a folder: expected a file to write");
  const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return {};
  return bad_usage(path + ": cannot be written: " + std::strerror(errno));
}

std::expected<void, Failure> write_output(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  const std::string beside = path + "." + std::to_string(getpid()) + ".part";
  {
    std::ofstream file{beside, std::ios::binary};
    file << text;
    if (!file.flush()) {
      std::remove(beside.c_str());
      return run_failed(path + ": cannot be written");
    }
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    std::remove(beside.c_str());
    return run_failed(path + ": cannot be written");
  }
  return {};
}

}  // namespace balanceroute::cli
