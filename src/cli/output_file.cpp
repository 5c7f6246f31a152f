#include "cli/output_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace balanceroute::cli {

namespace {

std::expected<void, Failure> check_output(const std::string& path) {
  if (path.empty() || path == kStandardOutput) return {};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return bad_usage(path + ": is a folder: expected a file to write");
  const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return {};
  return bad_usage(path + ": cannot be written: " + std::strerror(errno));
}

}  // namespace

std::expected<void, Failure> check_outputs(std::initializer_list<std::string_view> paths) {
  for (const std::string_view path : paths) {
    if (auto writable = check_output(std::string{path}); !writable) return writable;
  }
  if (std::ranges::count(paths, kStandardOutput) <= 1) return {};
  return bad_usage("-: expected at most one file to be standard output");
}

std::expected<void, Failure> write_output(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  if (path == kStandardOutput) {
    if (std::cout << text << std::flush) return {};
    return run_failed("standard output: cannot be written");
  }
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

std::ostream& words_beside(std::initializer_list<std::string_view> paths) {
  return std::ranges::find(paths, kStandardOutput) != paths.end() ? std::cerr : std::cout;
}

}  // namespace balanceroute::cli
