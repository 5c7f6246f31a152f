#include "trace/byte_source.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

namespace balanceroute::trace {
namespace {

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzipHandle = std::unique_ptr<gzFile_s, CloseGzip>;

std::string describe(gzFile file) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  if (code == Z_BUF_ERROR) return "gzip stream ends early: expected a complete file";
  return std::string{"cannot read: "} + text;
}

class FileSource final : public ByteSource {
 public:
  explicit FileSource(GzipHandle file) : file_{std::move(file)} {}

  std::expected<std::size_t, std::string> read(std::span<char> room) override {
    if (failed_) return std::unexpected{describe(file_.get())};
    const auto wanted = std::min<std::size_t>(room.size(), std::numeric_limits<int>::max());
    const int count = gzread(file_.get(), room.data(), static_cast<unsigned>(wanted));
    if (count < 0) return std::unexpected{describe(file_.get())};
    int code = Z_OK;
    gzerror(file_.get(), &code);
    // A cut stream still yields what came before the cut; those rows are read first, then the error is told.
    failed_ = code != Z_OK && code != Z_STREAM_END;
    if (count == 0 && failed_) return std::unexpected{describe(file_.get())};
    return static_cast<std::size_t>(count);
  }

 private:
  GzipHandle file_;
  bool failed_ = false;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_{bytes} {}

  std::expected<std::size_t, std::string> read(std::span<char> room) override {
    const auto count = rest_.copy(room.data(), room.size());
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

}  // namespace

std::expected<std::unique_ptr<ByteSource>, std::string> open_file(const std::filesystem::path& path) {
  std::error_code problem;
  const auto status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) return std::unexpected{path.string() + ": no such file: expected a trace"};
  if (std::filesystem::is_directory(status)) {
    return std::unexpected{path.string() + ": is a directory: expected a trace file"};
  }
  GzipHandle file{gzopen(path.c_str(), "rb")};
  if (!file) {
    return std::unexpected{path.string() + ": cannot open: " + std::generic_category().message(errno)};
  }
  return std::make_unique<FileSource>(std::move(file));
}

std::unique_ptr<ByteSource> from_memory(std::string_view bytes) {
  return std::make_unique<MemorySource>(bytes);
}

}  // namespace balanceroute::trace
