// byte_source.hpp - where the bytes of a trace come from: a file, plain or gzip, or memory.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace balanceroute::trace {

// ByteSource hands out the bytes of one trace in order, already decompressed.
//   Errors   read() gives a message without the source's name, such as "gzip stream ends early".
//   Threads  not synchronised.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Fills as much of `room` as it can; 0 means the end.
  [[nodiscard]] virtual std::expected<std::size_t, std::string> read(std::span<char> room) = 0;
};

// Opens a file; gzip is told by its first bytes, not by its name. The message of a failure names the file.
[[nodiscard]] std::expected<std::unique_ptr<ByteSource>, std::string> open_file(const std::filesystem::path& path);

// Reads from `bytes`, which must outlive the source.
[[nodiscard]] std::unique_ptr<ByteSource> from_memory(std::string_view bytes);

}  // namespace balanceroute::trace
