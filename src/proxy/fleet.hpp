// fleet.hpp - one fleet as the proxy runs it: its dispatcher, the connections to its workers, its models.
#pragma once

#include <atomic>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/random.hpp"
#include "explain/fleet_state.hpp"
#include "history/record.hpp"
#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "proxy/decision_log.hpp"
#include "proxy/dialects/dialect.hpp"
#include "proxy/discovery.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/engine_key.hpp"
#include "proxy/fleet_shadow.hpp"
#include "proxy/membership.hpp"
#include "proxy/policy_watch.hpp"
#include "proxy/prefill_clients.hpp"
#include "proxy/prefill_dispatcher.hpp"
#include "proxy/prefill_health.hpp"
#include "proxy/prompt_estimator.hpp"
#include "proxy/retry.hpp"
#include "proxy/serve_params.hpp"
#include "proxy/worker_clients.hpp"
#include "proxy/worker_directory.hpp"

namespace balanceroute::proxy {

// The workers that one entry of the settings stands for, one for each rank.
std::expected<std::vector<WorkerSpec>, std::string> ranks_of(const WorkerParams& params);
// Of a list whose addresses have been checked.
std::vector<WorkerSpec> ranks_of(const std::vector<WorkerParams>& workers);

// What files hold that a fleet shows to its engines, and what they must show.
struct FleetSecrets {
  std::string engine_key;
  std::shared_ptr<const net::TlsContext> tls;
};

// Fleet is everything that requests for one set of models share.
//   Threads  clients(i) and random(i) only on I/O thread i; estimator from any; dispatcher and membership as they say.
class Fleet {
 public:
  // `params` has passed problems_of().
  static std::expected<std::unique_ptr<Fleet>, std::string> make(const FleetParams& params, const ServeParams& serve,
                                                                 FleetSecrets secrets, net::IoThread& decider,
                                                                 net::IoThreads& threads, spdlog::logger& log);

  const std::string& name() const { return params_.name; }
  const FleetParams& params() const { return params_; }
  // Any thread.
  const std::string& group_name(GroupId group) const { return group_names_[group.value()]; }
  // The engine's name of the model that a client asks for; nothing if the fleet does not serve it. A fleet without a
  // list of models passes every name on.
  std::optional<std::string_view> engine_model(std::string_view asked) const;

  Dispatcher& dispatcher() { return *dispatcher_; }
  Membership& membership() { return *membership_; }
  // Ends what runs on the I/O threads by itself, while they still run.
  void stop();
  WorkerClients& clients(std::size_t thread) { return clients_[thread]; }
  EngineKey& engine_key() { return engine_key_; }
  // For connections from now on; whether it is of other content than before. Any thread.
  bool use_tls(std::shared_ptr<const net::TlsContext> context, std::string server_name) {
    return tls_->replace(std::move(context), std::move(server_name));
  }
  PromptEstimator& estimator() { return estimator_; }
  TokenProgress& token_progress() { return token_progress_; }
  RetryBudget& retry_budget() { return retry_budget_; }
  // For draws of that I/O thread.
  Random& random(std::size_t thread) { return randoms_[thread]; }
  const WorkerAddress& address(WorkerId worker) const { return workers_.address(worker); }
  // Makes the body name the model as the engine does, and the request or the body the worker's rank.
  void rename_model(BodyEdit& edit, std::string_view asked) const;
  void name_rank(net::HttpRequest& request, BodyEdit& edit, WorkerId worker) const;

  const Dialect& dialect() const { return *dialect_; }
  // None with a dialect that has no prefill side.
  PrefillDispatcher* prefills() { return prefills_.get(); }
  PrefillClients& prefill_clients(std::size_t thread) { return prefill_clients_[thread]; }
  const std::vector<PrefillPeer>& prefill_peers() const { return prefill_peers_; }
  const PrefillPeer& peer(PrefillId id) const { return prefill_peers_[id.value()]; }
  void name_prefill_rank(net::HttpRequest& request, PrefillId id) const;

  // Every id ever given, removed workers too.
  std::size_t worker_count() const { return workers_.size(); }
  // A request met this at its worker. Any thread.
  void worker_failed(WorkerId worker, const net::NetError& fault);
  void worker_answered(WorkerId worker, int status);
  // Its engine does not know the rank by that number: a fault of the settings.
  void rank_rejected(WorkerId worker, const std::string& answer);

  // On the deciding thread, or before it runs: who shares it from now on.
  void set_tenants(const std::vector<TenantParams>& tenants);
  // Before the deciding thread runs: what these requests of an earlier time say of those to come.
  void learn(const std::vector<history::Record>& past);
  // On the deciding thread: what it is now, what decides, and a change of that.
  FleetSnapshot snapshot(bool with_leases);
  explain::FleetState state_now();
  const PolicyParams& policy() const { return policy_; }
  FallbackStatus fallback() const { return policy_watch_->status(); }
  // Whether its predictor knows prompts again, so that they are worth hashing. Any thread.
  bool looks_at_prompts() const { return looks_at_prompts_.load(std::memory_order_relaxed); }
  // An error, and nothing changed, for a policy that has no sense here.
  std::expected<void, std::string> set_policy(const PolicyParams& policy);
  // Other settings: whether change() could put them in effect, and that. Only policy, workers and health may differ,
  // and how many requests may wait.
  std::expected<void, std::string> check_change(const FleetParams& next) const;
  void change(const FleetParams& next, const ServeParams& serve);

 private:
  Fleet(FleetParams params, const RetryParams& retries, FleetSecrets secrets, spdlog::logger& log);
  net::ClientOptions client_options(const ServeParams& serve) const;
  std::expected<void, std::string> make_listeners(std::uint64_t seed, const RouterSettings& settings);
  std::expected<void, std::string> add_prefill_side(const ServeParams& serve, net::IoThreads& threads);

  std::expected<std::unique_ptr<Policy>, std::string> make_fitting(const PolicyParams& chosen) const;
  void discover(const GroupParams& group, net::IoThread& thread);
  void change_workers(const std::string& group, const GroupParams& before, const GroupParams& after);

  FleetParams params_;
  const std::vector<std::string> group_names_;
  EngineKey engine_key_;
  std::shared_ptr<net::TlsInUse> tls_;
  spdlog::logger& log_;
  PolicyParams policy_;  // in effect
  std::atomic<bool> looks_at_prompts_;
  WorkerDirectory workers_;
  std::unordered_map<std::string, std::string> models_;  // asked name -> engine's name
  // These outlive the dispatcher, whose router they hear.
  std::unique_ptr<DecisionLog> decision_log_;  // none: off
  std::unique_ptr<FleetShadow> shadow_;        // none: off
  RouterListeners listeners_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<PolicyWatch> policy_watch_;
  std::vector<std::unique_ptr<Discovery>> discoveries_;
  std::vector<WorkerClients> clients_;  // one for each I/O thread
  std::unique_ptr<Dialect> dialect_;
  std::vector<PrefillPeer> prefill_peers_;  // by PrefillId
  std::unique_ptr<PrefillDispatcher> prefills_;
  std::unique_ptr<PrefillHealth> prefill_health_;
  std::vector<PrefillClients> prefill_clients_;  // one for each I/O thread
  PromptEstimator estimator_;
  TokenProgress token_progress_;
  RetryBudget retry_budget_;
  std::vector<Random> randoms_;  // one for each I/O thread
};

}  // namespace balanceroute::proxy
