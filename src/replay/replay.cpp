#include "replay/replay.hpp"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "net/client.hpp"
#include "net/event.hpp"
#include "net/io_thread.hpp"
#include "net/task_group.hpp"
#include "replay/request_sender.hpp"
#include "replay/result_builder.hpp"
#include "trace/arrivals.hpp"
#include "trace/reader.hpp"
#include "trace/stationary_law.hpp"

namespace balanceroute::replay {
namespace {

namespace asio = boost::asio;

constexpr net::Duration kWarmTime = std::chrono::seconds{10};
// Of the request that asks whether the server answers at all.
constexpr Tokens kProbePrompt{16};
constexpr Tokens kProbeOutput{2};

// A base URL in parts: where the server listens, and what stands before the API's own paths.
struct BaseUrl {
  std::string origin;
  std::string prefix;
};

// Base URLs of SDKs end with the API's version; the API's paths here carry it already.
BaseUrl parts_of(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  if (url.ends_with("/v1")) url.remove_suffix(3);
  const auto scheme = url.find("://");
  const auto path = scheme == std::string_view::npos ? scheme : url.find('/', scheme + 3);
  if (path == std::string_view::npos) return {std::string{url}, ""};
  return {std::string{url.substr(0, path)}, std::string{url.substr(path)}};
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

// Session is one run: its thread and its tasks.
class Replay::Session {
 public:
  Session(const ReplayParams& params, const net::Clock& clock)
      : params_{params},
        thread_{"replay", clock},
        control_{thread_, [this](const std::exception_ptr& failure) { result_.note(text_of(failure)); }},
        requests_{thread_, [this](const std::exception_ptr& failure) { result_.note(text_of(failure)); }},
        warm_requests_{thread_, [this](const std::exception_ptr& failure) { result_.note(text_of(failure)); }},
        cancelled_{thread_},
        warm_{thread_} {}
  ~Session() { thread_.stop(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::expected<ReplayResult, std::string> run(const trace::Trace& trace, const ReplayHooks& hooks) {
    const BaseUrl base = parts_of(params_.url);
    auto endpoint = net::parse_http_url(base.origin);
    if (!endpoint) return std::unexpected{"url = " + params_.url + ": " + endpoint.error()};
    sender_.emplace(thread_, *std::move(endpoint), base.prefix, params_);
    std::promise<std::expected<void, std::string>> ended;
    thread_.post([&] { control_.spawn(play(trace, hooks, ended)); });
    thread_.start();
    const auto played = ended.get_future().get();
    thread_.stop();
    if (!played) return std::unexpected{played.error()};
    return result_.result();
  }

  void cancel() {
    thread_.post([this] {
      cancelled_.set();
      warm_.set();
      warm_requests_.cancel_all();
      requests_.cancel_all();
    });
  }

 private:
  using Ended = std::promise<std::expected<void, std::string>>;

  asio::awaitable<void> play(const trace::Trace& trace, const ReplayHooks& hooks, Ended& ended) {
    try {
      auto played = co_await play_parts(trace, hooks);
      ended.set_value(std::move(played));
    } catch (...) {
      ended.set_exception(std::current_exception());
    }
  }

  asio::awaitable<std::expected<void, std::string>> play_parts(const trace::Trace& trace, const ReplayHooks& hooks) {
    auto model = co_await model_name();
    if (!model) co_return std::unexpected{params_.url + ": " + model.error().text};
    sender_->set_model(*std::move(model));
    if (params_.probe) {
      auto answered = co_await probe();
      if (!answered) co_return answered;
    }
    co_await warm_up(trace);
    hooks.trace_begins();
    co_await send_trace(trace, hooks);
    hooks.trace_sent();
    const bool all_ended = co_await requests_.join(thread_.now() + drain_time());
    if (!all_ended) {
      result_.cut();
      requests_.cancel_all();
      co_await requests_.join();
    }
    warm_requests_.cancel_all();
    co_await warm_requests_.join();
    co_return std::expected<void, std::string>{};
  }

  net::Duration drain_time() const {
    return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double>{params_.drain_s});
  }

  asio::awaitable<std::expected<std::string, Fault>> model_name() {
    if (!params_.model.empty()) co_return params_.model;
    auto listed = co_await sender_->first_model();
    co_return listed;
  }

  // One short request, so that a wrong model, key or route is one message and not one for each request.
  asio::awaitable<std::expected<void, std::string>> probe() {
    const PlannedRequest planned{.due = thread_.now(), .prompt = kProbePrompt, .output = kProbeOutput};
    Outcome outcome;
    co_await sender_->send(planned, outcome);
    if (!outcome.fault) co_return std::expected<void, std::string>{};
    co_return std::unexpected{params_.url + ": a first short request failed: " + outcome.fault->text};
  }

  asio::awaitable<void> warm_up(const trace::Trace& trace) {
    const trace::StationaryLaw law{trace.requests};
    Random random{mix_bits(static_cast<std::uint64_t>(params_.seed))};
    warm_missing_ = params_.warm_requests;
    for (std::int64_t i = 0; i < params_.warm_requests && !cancelled_.is_set(); ++i) {
      const auto running = law.draw(random);
      const auto& drawn = trace.requests[running.index];
      warm_requests_.spawn(send_warm({.due = thread_.now(),
                                      .prompt = drawn.prompt + running.age,
                                      .output = drawn.output - running.age,
                                      .prefix_blocks = drawn.prefix_blocks,
                                      .seed = random.bits()}));
    }
    if (warm_missing_ > 0) co_await warm_.wait(thread_.now() + kWarmTime);
  }

  asio::awaitable<void> send_trace(const trace::Trace& trace, const ReplayHooks& hooks) {
    Random random{static_cast<std::uint64_t>(params_.seed)};
    const auto start = thread_.now();
    result_.begin(start);
    std::size_t sent = 0;
    for (const auto& request : trace.requests) {
      const auto due = start + request.arrival;
      if (due > thread_.now()) co_await cancelled_.wait(due);
      if (cancelled_.is_set()) break;
      requests_.spawn(send_measured({.due = due,
                                     .prompt = request.prompt,
                                     .output = request.output,
                                     .prefix_blocks = request.prefix_blocks,
                                     .seed = random.bits(),
                                     .leaves = leaves(due)},
                                    hooks));
      hooks.request_sent(++sent);
    }
  }

  // When the client of a request that is due then leaves, if it does.
  std::optional<net::TimePoint> leaves(net::TimePoint due) {
    if (params_.leave_share == 0 || leaving_.uniform() >= params_.leave_share) return std::nullopt;
    const std::chrono::duration<double> after{leaving_.uniform() * params_.leave_within_s};
    return due + std::chrono::duration_cast<net::Duration>(after);
  }

  // Counts a request when its task ends, however it ends.
  asio::awaitable<void> send_measured(PlannedRequest planned, const ReplayHooks& hooks) {
    struct Recording {
      ~Recording() {
        result.add({.prompt = planned.prompt, .output = planned.output}, planned.due, outcome);
        hooks.request_ended(result.ended());
      }
      ResultBuilder& result;
      const ReplayHooks& hooks;
      const PlannedRequest& planned;
      Outcome outcome;
    } recording{result_, hooks, planned, {}};
    co_await sender_->send(planned, recording.outcome);
  }

  // Announces once that the request runs, or that it never will.
  asio::awaitable<void> send_warm(PlannedRequest planned) {
    struct Announcement {
      ~Announcement() { make(); }
      void make() {
        if (!std::exchange(made, true) && --session.warm_missing_ == 0) session.warm_.set();
      }
      Session& session;
      bool made = false;
    } announcement{*this};
    planned.on_first_token = [&announcement] { announcement.make(); };
    Outcome outcome;
    co_await sender_->send(planned, outcome);
    if (outcome.fault) result_.note("warm request: " + outcome.fault->text);
  }

  ReplayParams params_;
  net::IoThread thread_;
  std::optional<RequestSender> sender_;
  net::TaskGroup control_;
  net::TaskGroup requests_;
  net::TaskGroup warm_requests_;
  net::Event cancelled_;
  net::Event warm_;
  std::int64_t warm_missing_ = 0;
  Random leaving_{mix_bits(static_cast<std::uint64_t>(params_.seed) + 1)};
  ResultBuilder result_;
};

std::expected<trace::Trace, std::string> load_trace(const ReplayParams& params) {
  trace::ReadOptions options{.skip_bad_rows = params.skip_bad_rows};
  if (params.limit > 0) options.limit = params.limit;
  auto trace = trace::read_trace(params.trace, options);
  if (!trace) return trace;
  if (params.rate_per_s > 0) {
    Random random{static_cast<std::uint64_t>(params.seed)};
    trace->requests = trace::with_poisson_arrivals(std::move(trace->requests), params.rate_per_s, random);
  } else if (!trace->has_arrivals()) {
    return std::unexpected{params.trace + ": has no arrival times: expected rate_per_s above 0"};
  }
  trace->requests = trace::at_speed(std::move(trace->requests), params.speed);
  return trace;
}

Replay::Replay(const ReplayParams& params, const net::Clock& clock)
    : session_{std::make_unique<Session>(params, clock)} {}

Replay::~Replay() = default;

std::expected<ReplayResult, std::string> Replay::run(const trace::Trace& trace, const ReplayHooks& hooks) {
  return session_->run(trace, hooks);
}

void Replay::cancel() {
  session_->cancel();
}

}  // namespace balanceroute::replay
