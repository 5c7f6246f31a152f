#include "proxy/fleet.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include <spdlog/spdlog.h>

#include "config/setting_values.hpp"
#include "net/networks.hpp"
#include "policy/registry.hpp"
#include "predict/exact_match.hpp"

namespace balanceroute::proxy {

namespace {

net::Duration milliseconds(double count) {
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{count});
}

bool knows_prompts_again(const PolicyParams& policy) {
  return policy.predictor.name == ExactMatch::kName;
}

// Whether every group has workers that wait for each other.
bool all_wait(const FleetParams& fleet) {
  return fleet.barrier && std::ranges::all_of(fleet.groups, [](const GroupParams& group) {
           std::int64_t workers = 0;
           for (const WorkerParams& worker : group.workers) workers += worker.ranks;
           return workers > 1 || group.discovery.looks();
         });
}

std::vector<std::string> names_of(const std::vector<GroupParams>& groups) {
  std::vector<std::string> names;
  for (const GroupParams& group : groups) names.push_back(group.name);
  return names;
}

std::vector<GroupSpec> specs_of(const std::vector<GroupParams>& groups) {
  std::vector<GroupSpec> specs;
  for (const GroupParams& group : groups) {
    specs.push_back({.name = group.name,
                     .slots = {static_cast<std::int32_t>(group.slots), static_cast<std::int32_t>(group.slots_ahead)},
                     .kv = group.kv.space()});
  }
  return specs;
}

}  // namespace

std::expected<std::vector<WorkerSpec>, std::string> ranks_of(const WorkerParams& params) {
  auto addresses = addresses_of(params);
  if (!addresses) return std::unexpected(net::without_userinfo(params.url) + ": " + addresses.error());
  std::vector<WorkerSpec> specs;
  for (WorkerAddress& address : *addresses) {
    const std::string url = address.endpoint.url();
    specs.push_back({.url = url, .address = std::move(address)});
  }
  return specs;
}

std::vector<WorkerSpec> ranks_of(const std::vector<WorkerParams>& workers) {
  std::vector<WorkerSpec> all;
  for (const WorkerParams& worker : workers) {
    if (const auto specs = ranks_of(worker)) all.insert(all.end(), specs->begin(), specs->end());
  }
  return all;
}

std::expected<std::unique_ptr<Fleet>, std::string> Fleet::make(const FleetParams& params, const ServeParams& serve,
                                                               FleetSecrets secrets, net::IoThread& decider,
                                                               net::IoThreads& threads, spdlog::logger& log) {
  std::unique_ptr<Fleet> fleet{new Fleet{params, serve.retries, std::move(secrets), log}};
  auto policy = make_policy(fleet->policy_, {.load_model = params.load_model.model()});
  if (!policy) return std::unexpected(policy.error());
  for (const ModelParams& model : params.models) {
    fleet->models_[model.name] = model.name;
    for (const std::string& alias : model.aliases) fleet->models_[alias] = model.name;
    for (const std::string& adapter : model.adapters) fleet->models_[adapter] = adapter;
  }
  const std::uint64_t seed = std::random_device{}();
  const std::int64_t kv_block = params.groups.front().kv.block_size;
  RouterSettings router{.books = {.load_model = params.load_model.model(), .kv_block = Tokens{kv_block}},
                        .max_wait = params.policy.max_wait()};
  auto shadow = FleetShadow::make(params, fleet->policy_, seed, router, decider, log);
  if (!shadow) return std::unexpected(shadow.error());
  fleet->shadow_ = *std::move(shadow);
  if (const auto made = fleet->make_listeners(seed, router); !made) return std::unexpected(made.error());
  router.listener = fleet->listeners_.as_one();
  fleet->dispatcher_ = std::make_unique<Dispatcher>(
      decider, threads.size(), std::move(*policy),
      DispatcherOptions{.fleet = params.name,
                        .router = router,
                        .barrier = params.barrier,
                        .round_delay = milliseconds(params.round_delay_ms),
                        .waiting_limit = static_cast<std::size_t>(serve.limits.waiting_requests),
                        .overcommit = static_cast<std::int32_t>(params.prefill.overcommit),
                        .transfers_limit = static_cast<std::size_t>(params.prefill.max_transfers_in_flight),
                        .seed = seed},
      names_of(params.groups));
  if (fleet->shadow_) fleet->shadow_->join(*fleet->dispatcher_);
  const net::ClientOptions client_options = fleet->client_options(serve);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    fleet->clients_.emplace_back(threads.at(i), fleet->workers_, client_options);
    fleet->randoms_.emplace_back(seed + i);
  }
  fleet->membership_ = std::make_unique<Membership>(
      MembershipOptions{
          .fleet = params.name, .groups = specs_of(params.groups), .health = serve.health, .clients = client_options},
      *fleet->dispatcher_, fleet->workers_, fleet->engine_key_, threads.at(0), log);
  fleet->policy_watch_ =
      std::make_unique<PolicyWatch>(params.name, serve.fallback, fleet->policy_, params.load_model.model(),
                                    *fleet->dispatcher_, *fleet->membership_, log);
  for (const GroupParams& group : params.groups) {
    const auto joined = fleet->membership_->add(group.name, ranks_of(group.workers));
    if (!joined) return std::unexpected(joined.error().message);
    if (group.discovery.looks()) fleet->discover(group, threads.at(0));
  }
  if (const auto added = fleet->add_prefill_side(serve, threads); !added) return std::unexpected(added.error());
  return fleet;
}

std::expected<void, std::string> Fleet::make_listeners(std::uint64_t seed, const RouterSettings& settings) {
  if (!params_.decision_log.path.empty()) {
    auto decisions = DecisionLog::open(params_.decision_log, {.fleet = params_.name,
                                                              .seed = seed,
                                                              .kv_block = settings.books.kv_block.count(),
                                                              .policy = policy_,
                                                              .load_model = params_.load_model});
    if (!decisions) return std::unexpected(decisions.error());
    decision_log_ = *std::move(decisions);
    listeners_.add(*decision_log_);
  }
  if (shadow_ && shadow_->listener() != nullptr) listeners_.add(*shadow_->listener());
  return {};
}

Fleet::Fleet(FleetParams params, const RetryParams& retries, FleetSecrets secrets, spdlog::logger& log)
    : params_{std::move(params)},
      group_names_{names_of(params_.groups)},
      engine_key_{std::move(secrets.engine_key)},
      tls_{std::make_shared<net::TlsInUse>(std::move(secrets.tls), params_.tls.server_name)},
      log_{log},
      policy_{chosen_for(params_.policy, all_wait(params_))},
      looks_at_prompts_{knows_prompts_again(policy_)},
      dialect_{make_dialect(params_.dialect_kind())},
      token_progress_{params_.token_progress_mode()},
      retry_budget_{retries} {}

net::ClientOptions Fleet::client_options(const ServeParams& serve) const {
  net::ClientOptions options{.connect_timeout = milliseconds(serve.timeouts.connect_ms),
                             .idle_limit = milliseconds(serve.timeouts.worker_idle_ms),
                             .tls = tls_};
  auto networks = net::Networks::parse(serve.worker_networks);
  if (networks && !serve.worker_networks.empty()) {
    options.networks = std::make_shared<const net::Networks>(*std::move(networks));
  }
  return options;
}

void Fleet::discover(const GroupParams& group, net::IoThread& thread) {
  const auto tell = [this, name = group.name](const WorkerSource::Found& found) {
    std::expected<std::vector<WorkerSpec>, std::string> specs;
    if (found) {
      specs = ranks_of(*found);
    } else {
      specs = std::unexpected(found.error());
    }
    dispatcher_->decider().dispatch([this, name, specs = std::move(specs)] { membership_->follow(name, specs); });
  };
  discoveries_.push_back(std::make_unique<Discovery>(
      thread, make_source(group.discovery, thread), group.discovery.interval_ms, tell,
      [this](const std::exception_ptr&) { log_.error("discovery of fleet {} has failed and is over", name()); }));
  discoveries_.back()->start();
}

void Fleet::stop() {
  for (const auto& discovery : discoveries_) discovery->stop();
  membership_->stop();
  if (prefill_health_) prefill_health_->stop();
}

std::expected<std::unique_ptr<Policy>, std::string> Fleet::make_fitting(const PolicyParams& chosen) const {
  if (const auto valid = validate(chosen, ""); !valid) return std::unexpected(valid.error());
  for (const GroupView& group : dispatcher_->router().ledger().groups()) {
    const std::string name{dispatcher_->router().ledger().group_name(group.group)};
    const auto fits = validate_for_group(chosen, name, std::max<std::size_t>(group.size(), 1), params_.barrier);
    if (!fits) return std::unexpected(fits.error());
  }
  return make_policy(chosen, {.load_model = params_.load_model.model()});
}

std::expected<void, std::string> Fleet::set_policy(const PolicyParams& policy) {
  const PolicyParams chosen = chosen_for(policy, all_wait(params_));
  auto made = make_fitting(chosen);
  if (!made) return std::unexpected(made.error());
  dispatcher_->change([&](Router& router) {
    router.set_policy(*std::move(made), chosen);
    return true;
  });
  log_.info("policy fleet={} policy={} was={}", name(), chosen.name, policy_.name);
  policy_ = chosen;
  policy_watch_->choose(chosen);
  looks_at_prompts_ = knows_prompts_again(policy_);
  return {};
}

std::expected<void, std::string> Fleet::check_change(const FleetParams& next) const {
  if (differences(values_of(params_.policy), values_of(next.policy)).empty()) return {};
  const auto made = make_fitting(chosen_for(next.policy, all_wait(next)));
  if (!made) return std::unexpected(made.error());
  return {};
}

void Fleet::change(const FleetParams& next, const ServeParams& serve) {
  membership_->set_health(serve.health);
  policy_watch_->set(serve.fallback);
  if (prefill_health_) prefill_health_->set(serve.health);
  dispatcher_->set_waiting_limit(static_cast<std::size_t>(serve.limits.waiting_requests));
  for (std::size_t g = 0; g < next.groups.size(); ++g) {
    change_workers(next.groups[g].name, params_.groups[g], next.groups[g]);
  }
  const bool other_policy = !differences(values_of(params_.policy), values_of(next.policy)).empty();
  params_.groups = next.groups;
  params_.policy = next.policy;
  if (!other_policy) return;
  const auto done = set_policy(next.policy);
  if (!done) log_.error("policy fleet={} stays {}: {}", name(), policy_.name, done.error());
}

// Workers that an operator added beside the settings stay.
void Fleet::change_workers(const std::string& group, const GroupParams& before, const GroupParams& after) {
  const std::vector<WorkerSpec> old_ones = ranks_of(before.workers);
  const std::vector<WorkerSpec> new_ones = ranks_of(after.workers);
  const auto has = [](const std::vector<WorkerSpec>& list, const WorkerSpec& one) {
    return std::ranges::any_of(
        list, [&](const auto& other) { return other.url == one.url && other.address.rank == one.address.rank; });
  };
  std::vector<WorkerSpec> fresh;
  std::ranges::copy_if(new_ones, std::back_inserter(fresh), [&](const auto& one) { return !has(old_ones, one); });
  if (const auto added = membership_->add(group, fresh); !added) log_.error("{}", added.error().message);
  for (const WorkerSpec& one : old_ones) {
    if (has(new_ones, one)) continue;
    const auto gone = membership_->remove({.id = std::nullopt, .url = one.url, .rank = one.address.rank});
    if (!gone) log_.info("{}", gone.error().message);
  }
}

void Fleet::set_tenants(const std::vector<TenantParams>& tenants) {
  dispatcher_->set_tenants(tenants);
  if (prefills_) prefills_->set_tenants(tenants);
}

void Fleet::learn(const std::vector<history::Record>& past) {
  dispatcher_->change([&past](Router& router) {
    for (const history::Record& record : past) {
      const Request request{.id = {},
                            .prompt = record.prompt,
                            .output_limit = std::min(record.output_limit.value_or(kMaxTokens), kMaxTokens),
                            .prompt_key = record.prompt_key};
      const bool placed = !record.worker.empty();
      if (!placed || record.output_each() > kMaxTokens || !check(request)) continue;
      const LeaseEnd how = record.complete ? LeaseEnd::finished : LeaseEnd::cut;
      for (std::int32_t i = 0; i < record.sequences; ++i) router.learn(request, record.output_each(), how);
    }
    return true;
  });
}

void Fleet::worker_failed(WorkerId worker, const net::NetError& fault) {
  if (fault.fault == net::NetFault::Cancelled) return;
  const bool unreachable = fault.fault == net::NetFault::Connect || fault.fault == net::NetFault::Resolve;
  membership_->report(worker, unreachable ? Evidence::request_unreachable : Evidence::request_failed, fault.detail);
}

void Fleet::worker_answered(WorkerId worker, int status) {
  if (status < 500) return;
  membership_->report(worker, Evidence::request_failed, "it answered a request with status " + std::to_string(status));
}

void Fleet::rank_rejected(WorkerId worker, const std::string& answer) {
  membership_->report(worker, Evidence::rank_rejected, "it rejects its rank: " + answer.substr(0, 300));
}

explain::FleetState Fleet::state_now() {
  return explain::state_of(dispatcher_->router_now(), dispatcher_->decider().now().time_since_epoch(),
                           {.fleet = params_.name,
                            .policy = policy_,
                            .load_model = params_.load_model,
                            .kv_block = params_.groups.front().kv.block_size,
                            .barrier = params_.barrier,
                            .groups = {},
                            .waiting = {}});
}

FleetSnapshot Fleet::snapshot(bool with_leases) {
  FleetSnapshot out = dispatcher_->snapshot(with_leases);
  out.members = membership_->statuses();
  out.chosen_policy = policy_.name;
  out.fallback = policy_watch_->status();
  if (shadow_) out.shadow = shadow_->report();
  if (!prefills_) return out;
  out.prefill = prefills_->snapshot(with_leases);
  out.prefill_health = prefill_health_->statuses();
  for (FleetSnapshot::Tenant& tenant : out.tenants) tenant.standing.parked += prefills_->parked(tenant.name);
  return out;
}

std::expected<void, std::string> Fleet::add_prefill_side(const ServeParams& serve, net::IoThreads& threads) {
  if (dialect_->order() == LegOrder::DecodeOnly) return {};
  const PrefillParams& prefill = params_.prefill;
  for (const PrefillInstanceParams& instance : prefill.instances) {
    const auto endpoint = net::parse_http_url(instance.url, net::Schemes::http_and_https);
    if (!endpoint) return std::unexpected(instance.url + ": " + endpoint.error());
    for (std::int64_t rank = 0; rank < instance.ranks; ++rank) {
      prefill_peers_.push_back({.endpoint = *endpoint,
                                .rank = static_cast<std::int32_t>(rank),
                                .ranks = static_cast<std::int32_t>(instance.ranks),
                                .bootstrap_port = static_cast<std::uint16_t>(instance.bootstrap_port)});
    }
  }
  PrefillOptions options{.book = {.instances = prefill_peers_.size(), .engine_lease = milliseconds(prefill.lease_ms)},
                         .waiting_limit = static_cast<std::size_t>(serve.limits.waiting_requests),
                         .hold_limit = milliseconds(prefill.hold_limit_ms)};
  const PolicyParams policy = with_preset(params_.policy);
  if (policy.r_max != PolicyParams::kAuto) options.candidates = static_cast<std::size_t>(policy.r_max);
  if (prefill.kv_high_water_tokens != PrefillParams::kUnlimited) {
    options.book.high_water = Tokens{prefill.kv_high_water_tokens};
  }
  prefills_ = std::make_unique<PrefillDispatcher>(*dispatcher_, options);
  prefill_health_ =
      std::make_unique<PrefillHealth>(name(), serve.health, prefill_peers_, *prefills_, client_options(serve),
                                      engine_key_, dispatcher_->decider(), threads.at(0), log_);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    prefill_clients_.emplace_back(threads.at(i), prefill_peers_, client_options(serve));
  }
  return {};
}

void Fleet::rename_model(BodyEdit& edit, std::string_view asked) const {
  const auto model = engine_model(asked);
  if (model && *model != asked) edit.set(Member::Model, nlohmann::json(*model).dump());
}

void Fleet::name_rank(net::HttpRequest& request, BodyEdit& edit, WorkerId worker) const {
  const WorkerAddress& to = address(worker);
  if (to.naming == RankNaming::Header) request.headers.set("X-data-parallel-rank", std::to_string(to.rank));
  if (to.naming == RankNaming::Body) edit.add("routed_dp_rank", std::to_string(to.rank));
}

void Fleet::name_prefill_rank(net::HttpRequest& request, PrefillId id) const {
  // SGLang's room says the rank already.
  const PrefillPeer& to = peer(id);
  if (to.ranks > 1 && params_.dialect_kind() != DialectKind::Sglang) {
    request.headers.add("X-data-parallel-rank", std::to_string(to.rank));
  }
}

std::optional<std::string_view> Fleet::engine_model(std::string_view asked) const {
  if (models_.empty()) return asked;
  const auto found = models_.find(std::string{asked});
  if (found == models_.end()) return std::nullopt;
  return found->second;
}

}  // namespace balanceroute::proxy
