// replay.hpp - sends a trace to an OpenAI-compatible server and measures the answers.
//
// Open loop: each request is sent when the trace says, whether earlier ones were answered or not.
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "net/clock.hpp"
#include "replay/replay_params.hpp"
#include "replay/replay_result.hpp"
#include "trace/trace.hpp"

namespace balanceroute::replay {

// What may want to know how far a replay is; called on its thread.
struct ReplayHooks {
  std::function<void()> trace_begins = [] {};  // the warm requests run, the first request of the trace is next
  std::function<void(std::size_t)> request_sent = [](std::size_t) {};   // so many requests of the trace have been sent
  std::function<void()> trace_sent = [] {};                             // the last request has been sent
  std::function<void(std::size_t)> request_ended = [](std::size_t) {};  // so many have been answered, or failed
};

// Reads the trace that the settings name, with the arrival times that they ask for.
[[nodiscard]] std::expected<trace::Trace, std::string> load_trace(const ReplayParams& params);

// Replay sends one trace, once, from a thread of its own.
//   Warm start  warm_requests are drawn from the trace's stationary law, each as the rest of a request that has long
//               been running: a prompt as long as prompt and age, an answer as long as what is left. The trace begins
//               when each has its first token, at the latest after ten seconds. They are ended when the trace is done.
//   Threads     run() blocks; cancel() may be called from any other thread meanwhile.
class Replay {
 public:
  Replay(const ReplayParams& params, const net::Clock& clock);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Sends at the times of `trace` as they are. An error when nothing can be sent: a bad URL, no server, no
  // model, or a short first request (probe) that fails.
  [[nodiscard]] std::expected<ReplayResult, std::string> run(const trace::Trace& trace, const ReplayHooks& hooks = {});
  // Ends the run; requests under way count as errors.
  void cancel();

 private:
  class Session;

  std::unique_ptr<Session> session_;
};

}  // namespace balanceroute::replay
