// sse.hpp - server-sent events out of bytes that arrive in any pieces.
//
// Splits only; what an event means is for its reader. Lines end with LF or CRLF, as every engine writes them; a bare CR
// is text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace balanceroute::net {

// SseSplitter cuts a stream into events.
//   Invariants  the events and rest() in order are exactly the bytes fed, wherever they were cut; each event ends with
//               its empty line.
//   Cost        O(bytes); an event that arrives in one piece is not copied.
class SseSplitter {
 public:
  using OnEvent = std::function<void(std::string_view)>;

  // Calls `on_event` with the bytes of each event that is now complete, as a view that is valid during the call.
  void feed(std::string_view bytes, const OnEvent& on_event);
  // What has come of the next event.
  std::string_view rest() const { return rest_; }

 private:
  std::string rest_;
  std::size_t scanned_ = 0;  // bytes of rest_ known to end no event
};

// The value of an event's data lines, joined with LF as the standard says, in `scratch` when there are several.
// Empty when the event has none (a comment or a keep-alive).
std::string_view sse_data(std::string_view event, std::string& scratch);

}  // namespace balanceroute::net
