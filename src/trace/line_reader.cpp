#include "trace/line_reader.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace balanceroute::trace {
namespace {

constexpr std::size_t kFirstBufferBytes = std::size_t{1} << 16;

}  // namespace

LineReader::LineReader(ByteSource& source) : source_{&source}, buffer_(kFirstBufferBytes + kPadding) {}

std::expected<std::optional<std::string_view>, std::string> LineReader::next() {
  std::size_t searched = 0;  // bytes of this line known to hold no line end
  while (true) {
    const std::string_view pending{buffer_.data() + begin_, end_ - begin_};
    const auto line_end = pending.find('\n', searched);
    const auto length = std::min(line_end, pending.size());
    if (length > kMaxLineBytes) {
      ++line_number_;
      return std::unexpected{"line is longer than " + std::to_string(kMaxLineBytes) + " bytes: expected a trace row"};
    }
    if (line_end != std::string_view::npos) return take(length, 1);
    searched = length;
    const auto more = fill();
    if (!more) {
      ++line_number_;
      return std::unexpected{more.error()};
    }
    if (!*more) break;
  }
  if (begin_ == end_) return std::nullopt;
  return take(end_ - begin_, 0);
}

std::expected<bool, std::string> LineReader::fill() {
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
            buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (end_ + kPadding == buffer_.size()) buffer_.resize(2 * end_ + kPadding);
  const auto count = source_->read(std::span{buffer_}.subspan(end_, buffer_.size() - kPadding - end_));
  if (!count) return std::unexpected{count.error()};
  end_ += *count;
  return *count > 0;
}

std::string_view LineReader::take(std::size_t length, std::size_t line_end) {
  std::string_view line{buffer_.data() + begin_, length};
  begin_ += length + line_end;
  ++line_number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace balanceroute::trace
