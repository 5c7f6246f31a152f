#include "proxy/prober.hpp"

#include <algorithm>
#include <utility>

#include "net/event.hpp"

namespace balanceroute::proxy {

namespace {

constexpr std::size_t kHealthAnswerBytes = 1024 * 1024;
constexpr std::size_t kMetricsBytes = 16 * 1024 * 1024;

net::Duration milliseconds(double count) {
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{count});
}

// None for a probe that we gave up ourselves.
std::optional<ProbeAnswer> not_answered(const net::NetError& error) {
  if (error.fault == net::NetFault::Cancelled) return std::nullopt;
  const bool late = error.fault == net::NetFault::Timeout;
  return ProbeAnswer{late ? Evidence::probe_late : Evidence::probe_failed, error.detail, std::nullopt};
}

}  // namespace

struct Prober::Watched {
  Watched(net::IoThread& thread, net::Endpoint address, const net::ClientOptions& clients)
      : endpoint{std::move(address)}, client{thread, endpoint, clients}, wake{thread} {}

  net::Endpoint endpoint;
  net::HttpClient client;
  net::Event wake;
  net::TaskGroup::Handle task;
  bool asking = false;
};

Prober::Prober(net::IoThread& thread, const HealthParams& params, net::ClientOptions clients, const EngineKey& key,
               OnAsk on_ask, OnAnswer on_answer, net::TaskGroup::OnFailure on_failure)
    : thread_{thread},
      params_{params},
      clients_{std::move(clients)},
      key_{key},
      on_ask_{std::move(on_ask)},
      on_answer_{std::move(on_answer)},
      tasks_{thread, std::move(on_failure)} {}

Prober::~Prober() = default;

std::shared_ptr<Prober::Watched> Prober::find(const net::Endpoint& endpoint) {
  const auto found = std::ranges::find_if(watched_, [&](const auto& one) { return one->endpoint == endpoint; });
  return found == watched_.end() ? nullptr : *found;
}

void Prober::watch(net::Endpoint endpoint) {
  thread_.dispatch([this, endpoint = std::move(endpoint)] {
    if (!params_.probes() || find(endpoint)) return;
    net::ClientOptions clients = clients_;
    clients.connect_timeout = milliseconds(params_.timeout_ms);
    clients.idle_limit = net::ClientOptions{}.idle_limit;
    auto watched = std::make_shared<Watched>(thread_, endpoint, clients);
    watched_.push_back(watched);
    watched->task = tasks_.spawn(run(watched));
  });
}

void Prober::forget(net::Endpoint endpoint) {
  thread_.dispatch([this, endpoint = std::move(endpoint)] {
    if (const auto watched = find(endpoint)) {
      watched->task.cancel();
      watched_.remove(watched);
    }
  });
}

void Prober::look_now(net::Endpoint endpoint) {
  thread_.dispatch([this, endpoint = std::move(endpoint)] {
    if (const auto watched = find(endpoint); watched && !watched->asking) watched->wake.set();
  });
}

void Prober::set(const HealthParams& params) {
  thread_.dispatch([this, params] {
    params_ = params;
    for (const auto& watched : watched_) watched->wake.set();  // whoever waits may have to wait for less
  });
}

void Prober::stop() {
  thread_.call([this] { tasks_.cancel_all(); });
  bool ended = false;
  while (!ended) thread_.call([&] { ended = tasks_.size() == 0; });
}

net::asio::awaitable<void> Prober::run(std::shared_ptr<Watched> watched) {
  for (;;) {
    watched->asking = true;
    std::optional<ProbeAnswer> answer = co_await probe(*watched);
    watched->asking = false;
    if (!answer) co_return;
    on_answer_(watched->endpoint, *std::move(answer));
    watched->wake.reset();
    const net::TimePoint next = params_.probes() ? thread_.now() + milliseconds(params_.interval_ms) : net::kNever;
    const net::WaitResult waited = co_await watched->wake.wait(next);
    if (waited == net::WaitResult::Cancelled) co_return;
  }
}

// Any answer below 500 shows an engine that lives; one without the path, or behind a password, is no reason to doubt.
net::asio::awaitable<std::optional<ProbeAnswer>> Prober::probe(Watched& watched) {
  net::HttpRequest request;
  request.target = "/health";
  key_.sign(request.headers);
  on_ask_(watched.endpoint);
  const net::TimePoint deadline = thread_.now() + milliseconds(params_.timeout_ms);
  auto call = co_await watched.client.send(request, deadline);
  if (!call) co_return not_answered(call.error());
  const auto body = co_await call->read_all(kHealthAnswerBytes, deadline);
  if (!body) co_return not_answered(body.error());
  const int status = call->head().status;
  if (status >= 500)
    co_return ProbeAnswer{Evidence::probe_failed, "GET /health: status " + std::to_string(status), std::nullopt};
  ProbeAnswer answer{Evidence::probe_answered, {}, std::nullopt};
  if (params_.metrics) answer.reading = co_await read_metrics(watched, deadline);
  co_return answer;
}

// An engine without the page, or whose page is late, is none the worse for it.
net::asio::awaitable<std::optional<EngineReading>> Prober::read_metrics(Watched& watched, net::TimePoint deadline) {
  net::HttpRequest request;
  request.target = "/metrics";
  key_.sign(request.headers);
  auto call = co_await watched.client.send(request, deadline);
  if (!call || call->head().status != 200) co_return std::nullopt;
  const auto page = co_await call->read_all(kMetricsBytes, deadline);
  if (!page) co_return std::nullopt;
  EngineReading reading = read_engine_metrics(*page);
  if (!reading.says_something()) co_return std::nullopt;
  co_return reading;
}

}  // namespace balanceroute::proxy
