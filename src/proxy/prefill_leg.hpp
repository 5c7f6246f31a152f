// prefill_leg.hpp - one request to a prefill engine, and what became of it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "net/client.hpp"
#include "proxy/stream_event.hpp"

namespace balanceroute::proxy {

enum class PrefillEnd : std::uint8_t {
  Computed,
  Refused,  // for what the request is: another engine would say the same
  Failed,   // another engine may do it
  Cancelled
};

struct PrefillOutcome {
  PrefillEnd end = PrefillEnd::Failed;
  std::string object;          // kv_transfer_params of the answer as it was written; empty: none
  std::optional<Usage> usage;  // of the answer
  std::string finish_reason;   // of the answer; empty: it named none
  net::HttpResponse answer;    // of a refusal
  std::string reason;          // of a failure
  bool late = false;           // that its deadline had passed
};

// Sends the request and reads the whole answer.
net::asio::awaitable<PrefillOutcome> prefill(net::HttpClient& engine, const net::HttpRequest& request,
                                             net::TimePoint deadline);

// How long, by the object itself, the engine still keeps the KV; nothing if it does not say, or says what cannot be. It
// is told as a time of day, so clocks that differ make it wrong by as much.
std::optional<net::Duration> stated_lease(std::string_view object, std::chrono::system_clock::time_point now);

// The text of a member of a JSON object that is itself an object; empty if it has none.
std::string object_member(std::string_view json, std::string_view name);

}  // namespace balanceroute::proxy
