// sse_fuzz.cpp - the first byte says where the rest is cut; events and rest are the bytes, whatever the cuts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/sse.hpp"
#include "require.hpp"

namespace {

using namespace balanceroute;

std::vector<std::string> split(std::string_view stream, std::size_t piece) {
  net::SseSplitter splitter;
  std::vector<std::string> parts;
  std::string scratch;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    splitter.feed(stream.substr(at, piece), [&](std::string_view event) {
      parts.emplace_back(event);
      require(net::sse_data(event, scratch).size() <= event.size());
    });
  }
  parts.emplace_back(splitter.rest());
  return parts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream{reinterpret_cast<const char*>(data) + 1, size - 1};
  const auto whole = split(stream, stream.size() + 1);
  std::string joined;
  for (const std::string& part : whole) joined += part;
  require(joined == stream);
  require(split(stream, 1 + data[0] % 7) == whole);
  return 0;
}
