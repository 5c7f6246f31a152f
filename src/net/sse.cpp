#include "net/sse.hpp"

namespace balanceroute::net {

namespace {

// The end of the first event in `bytes`, npos when it is not there; looks for line ends from `from` on.
std::size_t find_event_end(std::string_view bytes, std::size_t from) {
  for (std::size_t line_end = bytes.find('\n', from); line_end != std::string_view::npos;
       line_end = bytes.find('\n', line_end + 1)) {
    std::size_t text_end = line_end;
    if (text_end > 0 && bytes[text_end - 1] == '\r') --text_end;
    if (text_end == 0 || bytes[text_end - 1] == '\n') return line_end + 1;
  }
  return std::string_view::npos;
}

}  // namespace

void SseSplitter::feed(std::string_view bytes, const OnEvent& on_event) {
  const bool joined = !rest_.empty();
  if (joined) bytes = rest_.append(bytes);
  std::size_t start = 0;
  std::size_t from = scanned_;
  for (;;) {
    const std::string_view open = bytes.substr(start);
    const std::size_t end = find_event_end(open, from);
    if (end == std::string_view::npos) break;
    on_event(open.substr(0, end));
    start += end;
    from = 0;
  }
  if (joined) {
    rest_.erase(0, start);
  } else {
    rest_.assign(bytes.substr(start));
  }
  scanned_ = rest_.size();
}

std::string_view sse_data(std::string_view event, std::string& scratch) {
  std::string_view data;
  bool found = false;
  while (!event.empty()) {
    const std::size_t end = event.find('\n');
    std::string_view line = event.substr(0, end);
    event.remove_prefix(end == std::string_view::npos ? event.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (!found) {
      data = line;
    } else {
      if (data.data() != scratch.data()) scratch.assign(data);
      data = scratch.append("\n").append(line);
    }
    found = true;
  }
  return data;
}

}  // namespace balanceroute::net
