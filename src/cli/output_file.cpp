#include "cli/output_file.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace balanceroute::cli {

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
