#include "replay/replay_params.hpp"

#include <array>
#include <limits>
#include <string_view>

namespace balanceroute::replay {
namespace {

constexpr std::int64_t kAnyCount = std::numeric_limits<std::int64_t>::max();
constexpr std::array<std::string_view, 2> kRoutes{"completions", "chat"};
constexpr std::array<std::string_view, 3> kLengthMembers{"exact", "limit", "emulator"};

}  // namespace

void ReplayParams::visit_params(ParamVisitor& visitor) {
  visitor.text(
      {.name = "url",
       .doc = "Where to send: http://host:port of any OpenAI-compatible server, with or without a path and /v1.",
       .required = true},
      url);
  visitor.text({.name = "trace", .doc = "Trace file to send, plain or gzip.", .required = true}, trace);
  visitor.flag({"skip_bad_rows", "Leave bad rows of the trace out instead of refusing it."}, skip_bad_rows);
  visitor.real({"speed", "How many times faster than recorded requests are sent."}, speed, {1e-6, 1e6});
  visitor.real({"rate_per_s", "Poisson arrivals a second in place of the recorded times; 0 keeps those."}, rate_per_s,
               {0, 1e6});
  visitor.integer({"limit", "Send only the first requests of the trace; 0 sends all."}, limit, {0, kAnyCount});
  visitor.choice({"route",
                  "What is sent: text completions, with prompts of token ids and so of exact length, or chats, with "
                  "prompts of text of four bytes for each token of the trace."},
                 route, kRoutes);
  visitor.flag({"stream", "Ask for streamed answers; without, there is no time to first token."}, stream);
  visitor.choice({"length_member",
                  "How a request states the length of its answer: exact (max_tokens with ignore_eos, which vLLM and "
                  "SGLang know), limit (max_tokens alone; answers may end earlier), or emulator (the member that only "
                  "the emulator reads, so that no router can know it)."},
                 length_member, kLengthMembers);
  visitor.integer(
      {"warm_requests", "Requests drawn as if long running, sent before the trace and left out of the result."},
      warm_requests, {0, 1'000'000});
  visitor.text({"model", "Model to ask for; empty takes the first that the server lists."}, model);
  visitor.text({.name = "api_key",
                .doc = "Key sent as Authorization: Bearer; empty takes what the variable OPENAI_API_KEY has.",
                .secret = true},
               api_key);
  visitor.flag({"probe", "Send one short request first, and the trace only if it is answered."}, probe);
  visitor.integer({"retries", "How often a request is sent again after 408, 409, 429, 5xx or a failed connection."},
                  retries, {0, 100});
  visitor.real({"request_timeout_s", "Longest time for one request, retries included."}, request_timeout_s,
               {0.001, 86'400});
  visitor.real({"drain_s",
                "Longest time after the last request was sent for answers to end; what runs on is ended and counted as "
                "unfinished."},
               drain_s, {0, 86'400});
  visitor.real(
      {"leave_share",
       "Share of the requests whose client leaves at a random moment, as clients do; they are counted as left."},
      leave_share, {0, 1});
  visitor.real({"leave_within_s", "Longest time after which such a client has left; each moment is as likely."},
               leave_within_s, {0.001, 86'400});
  visitor.integer({"seed", "Seed of prompts, of the warm requests and of clients that leave."}, seed, {0, kAnyCount});
}

Route ReplayParams::chosen_route() const {
  return route == "chat" ? Route::chat : Route::completions;
}

LengthMember ReplayParams::chosen_length_member() const {
  if (length_member == "emulator") return LengthMember::emulator;
  return length_member == "limit" ? LengthMember::limit : LengthMember::exact;
}

}  // namespace balanceroute::replay
