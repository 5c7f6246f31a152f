// prober.hpp - asks engines, again and again, whether they are well.
//
// Leaves out what the answers mean (endpoint_health.hpp) and who is asked (membership.hpp).
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "net/task_group.hpp"
#include "proxy/endpoint_health.hpp"
#include "proxy/engine_key.hpp"
#include "proxy/engine_metrics.hpp"

namespace balanceroute::proxy {

// What an engine said to one probe.
struct ProbeAnswer {
  Evidence evidence = Evidence::probe_failed;
  std::string fault;                     // of a probe that was not answered, in words
  std::optional<EngineReading> reading;  // of its /metrics page, if it has one
};

// Prober keeps a conversation with each endpoint that it was told to watch.
//   Order    on_ask comes before each probe, on_answer after it.
//   Threads  watch() and forget() on any; on_ask and on_answer are called on `thread`, as are the probes.
//   Ends     stop() before `thread` ends its loop.
class Prober {
 public:
  using OnAsk = std::function<void(const net::Endpoint&)>;
  using OnAnswer = std::function<void(const net::Endpoint&, ProbeAnswer)>;

  // `key` outlives it.
  Prober(net::IoThread& thread, const HealthParams& params, net::ClientOptions clients, const EngineKey& key,
         OnAsk on_ask, OnAnswer on_answer, net::TaskGroup::OnFailure on_failure);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Probes at once, and then every interval.
  void watch(net::Endpoint endpoint);
  void forget(net::Endpoint endpoint);
  // Probes the endpoint now, because something happened.
  void look_now(net::Endpoint endpoint);
  void set(const HealthParams& params);
  void stop();

 private:
  struct Watched;

  net::asio::awaitable<void> run(std::shared_ptr<Watched> watched);
  // None when it was given up.
  net::asio::awaitable<std::optional<ProbeAnswer>> probe(Watched& watched);
  net::asio::awaitable<std::optional<EngineReading>> read_metrics(Watched& watched, net::TimePoint deadline);
  std::shared_ptr<Watched> find(const net::Endpoint& endpoint);

  net::IoThread& thread_;
  HealthParams params_;
  net::ClientOptions clients_;
  const EngineKey& key_;
  OnAsk on_ask_;
  OnAnswer on_answer_;
  std::list<std::shared_ptr<Watched>> watched_;
  net::TaskGroup tasks_;
};

}  // namespace balanceroute::proxy
