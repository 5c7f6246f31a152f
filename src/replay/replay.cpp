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
#include "trace/arrivals.hpp"
#include "trace/reader.hpp"
#include "trace/stationary_law.hpp"

namespace balanceroute::replay {
namespace {

namespace asio = boost::asio;

constexpr net::Duration kWarmTime = std::chrono::seconds{10};
constexpr std::size_t kMostErrorsKept = 5;

double milliseconds(net::Duration duration) {
  return std::chrono::duration<double, std::milli>{duration}.count();
}

// Base URLs of SDKs end with the API's version; the paths here carry it already.
std::string without_api_version(const std::string& url) {
  for (const std::string_view end : {"/v1/", "/v1"}) {
    if (url.ends_with(end)) return url.substr(0, url.size() - end.size());
  }
  return url;
}

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// ResultBuilder collects outcomes.
class ResultBuilder {
 public:
  void begin(net::TimePoint now) { begin_ = end_ = now; }

  void add(net::TimePoint due, const Outcome& outcome) {
    ++counts_.requests;
    counts_.retries += outcome.retries;
    if (outcome.fault && cut_) {
      ++counts_.unfinished;
      if (outcome.first_token) ttft_ms_.push_back(milliseconds(*outcome.first_token - due));
      return;
    }
    if (outcome.fault) {
      ++counts_.errors;
      note(*outcome.fault);
      return;
    }
    ++counts_.completed;
    counts_.tokens += outcome.tokens.count();
    end_ = std::max(end_, outcome.end);
    e2e_ms_.push_back(milliseconds(outcome.end - due));
    if (!outcome.first_token) return;
    ttft_ms_.push_back(milliseconds(*outcome.first_token - due));
    if (outcome.tokens <= Tokens{1}) return;
    tpot_ms_.push_back(milliseconds(outcome.last_token - *outcome.first_token) /
                       static_cast<double>(outcome.tokens.count() - 1));
  }

  // From now on requests end because we end them.
  void cut() { cut_ = true; }

  void note(std::string error) {
    if (counts_.first_errors.size() < kMostErrorsKept) counts_.first_errors.push_back(std::move(error));
  }

  [[nodiscard]] ReplayResult result() const {
    ReplayResult result = counts_;
    const double seconds = milliseconds(end_ - begin_) / 1e3;
    result.throughput_tokens_per_s = seconds > 0 ? static_cast<double>(result.tokens) / seconds : 0;
    result.ttft_ms = summarize(ttft_ms_);
    result.tpot_ms = summarize(tpot_ms_);
    result.e2e_ms = summarize(e2e_ms_);
    return result;
  }

 private:
  ReplayResult counts_;
  bool cut_ = false;
  std::vector<double> ttft_ms_;
  std::vector<double> tpot_ms_;
  std::vector<double> e2e_ms_;
  net::TimePoint begin_{};
  net::TimePoint end_{};
};

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
    auto endpoint = net::parse_http_url(without_api_version(params_.url));
    if (!endpoint) return std::unexpected{"url = " + params_.url + ": " + endpoint.error()};
    sender_.emplace(thread_, *std::move(endpoint), params_);
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
    if (!model) co_return std::unexpected{params_.url + ": " + model.error()};
    sender_->set_model(*std::move(model));
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
                                     .seed = random.bits()}));
      hooks.request_sent(++sent);
    }
  }

  // Counts a request when its task ends, however it ends.
  asio::awaitable<void> send_measured(PlannedRequest planned) {
    struct Recording {
      ~Recording() { result.add(due, outcome); }
      ResultBuilder& result;
      net::TimePoint due;
      Outcome outcome;
    } recording{result_, planned.due, {}};
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
    if (outcome.fault) result_.note("warm request: " + *outcome.fault);
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
