// fleet.hpp - one fleet as the proxy runs it: its dispatcher, the connections to its workers, its models.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/prompt_estimator.hpp"
#include "proxy/serve_params.hpp"
#include "proxy/worker_clients.hpp"

namespace balanceroute::proxy {

// Fleet is everything that requests for one set of models share.
//   Threads  clients(i) only on I/O thread i; estimator from any; dispatcher as it says.
class Fleet {
 public:
  // `params` has passed problems_of().
  static std::expected<std::unique_ptr<Fleet>, std::string> make(const FleetParams& params, const ServeParams& serve,
                                                                 net::IoThread& decider, net::IoThreads& threads);

  const std::string& name() const { return params_.name; }
  const FleetParams& params() const { return params_; }
  // The engine's name of the model that a client asks for; nothing if the fleet does not serve it. A fleet without a
  // list of models passes every name on.
  std::optional<std::string_view> engine_model(std::string_view asked) const;

  Dispatcher& dispatcher() { return *dispatcher_; }
  WorkerClients& clients(std::size_t thread) { return clients_[thread]; }
  PromptEstimator& estimator() { return estimator_; }
  const net::Endpoint& endpoint(WorkerId worker) const { return workers_[worker.value()]; }
  std::size_t worker_count() const { return workers_.size(); }
  // What requests bring before a worker is known to be too small.
  std::int32_t largest_slots() const { return largest_slots_; }

 private:
  explicit Fleet(FleetParams params) : params_{std::move(params)} {}

  FleetParams params_;
  std::vector<net::Endpoint> workers_;  // by WorkerId
  std::int32_t largest_slots_ = 0;
  std::unordered_map<std::string, std::string> models_;  // asked name -> engine's name
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<WorkerClients> clients_;  // one for each I/O thread
  PromptEstimator estimator_;
};

}  // namespace balanceroute::proxy
