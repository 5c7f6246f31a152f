#include "proxy/fleet.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "policy/registry.hpp"

namespace balanceroute::proxy {

namespace {

net::Duration milliseconds(double count) {
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{count});
}

net::ClientOptions client_options_of(const ServeParams& serve) {
  return {.connect_timeout = milliseconds(serve.timeouts.connect_ms),
          .idle_limit = milliseconds(serve.timeouts.worker_idle_ms)};
}

// Whether every group has workers that wait for each other.
bool all_wait(const FleetParams& fleet) {
  return fleet.barrier && std::ranges::all_of(fleet.groups, [](const GroupParams& group) {
           std::int64_t workers = 0;
           for (const WorkerParams& worker : group.workers) workers += worker.ranks;
           return workers > 1;
         });
}

}  // namespace

Fleet::Fleet(FleetParams params)
    : params_{std::move(params)},
      dialect_{make_dialect(params_.dialect_kind())},
      token_progress_{params_.token_progress_mode()} {}

std::expected<std::unique_ptr<Fleet>, std::string> Fleet::make(const FleetParams& params, const ServeParams& serve,
                                                               net::IoThread& decider, net::IoThreads& threads) {
  const PolicyParams chosen = chosen_for(params.policy, all_wait(params));
  auto policy = make_policy(chosen, {.load_model = params.load_model.model()});
  if (!policy) return std::unexpected(policy.error());
  std::unique_ptr<Fleet> fleet{new Fleet{params}};
  std::vector<GroupSpec> groups;
  for (const GroupParams& group : params.groups) {
    GroupSpec spec{
        .name = group.name, .slots = static_cast<std::int32_t>(group.slots), .kv = group.kv.space(), .workers = {}};
    for (const WorkerParams& worker : group.workers) {
      auto addresses = addresses_of(worker);
      if (!addresses) return std::unexpected(worker.url + ": " + addresses.error());
      for (WorkerAddress& address : *addresses) {
        spec.workers.push_back({"http://" + address.endpoint.authority(), address.rank});
        fleet->workers_.push_back(std::move(address));
      }
    }
    fleet->largest_slots_ = std::max(fleet->largest_slots_, spec.slots);
    groups.push_back(std::move(spec));
  }
  for (const ModelParams& model : params.models) {
    fleet->models_[model.name] = model.name;
    for (const std::string& alias : model.aliases) fleet->models_[alias] = model.name;
    for (const std::string& adapter : model.adapters) fleet->models_[adapter] = adapter;
  }
  const std::uint64_t seed = std::random_device{}();
  const std::int64_t kv_block = params.groups.front().kv.block_size;
  if (!params.decision_log.path.empty()) {
    auto log = DecisionLog::open(
        params.decision_log,
        {.fleet = params.name, .seed = seed, .kv_block = kv_block, .policy = chosen, .load_model = params.load_model});
    if (!log) return std::unexpected(log.error());
    fleet->decision_log_ = *std::move(log);
  }
  fleet->dispatcher_ = std::make_unique<Dispatcher>(
      decider, threads.size(), std::move(*policy),
      DispatcherOptions{.fleet = params.name,
                        .router = {.books = {.load_model = params.load_model.model(), .kv_block = Tokens{kv_block}},
                                   .max_wait = params.policy.max_wait(),
                                   .listener = fleet->decision_log_.get()},
                        .barrier = params.barrier,
                        .round_delay = milliseconds(params.round_delay_ms),
                        .waiting_limit = static_cast<std::size_t>(serve.limits.waiting_requests),
                        .overcommit = static_cast<std::int32_t>(params.prefill.overcommit),
                        .transfers_limit = static_cast<std::size_t>(params.prefill.max_transfers_in_flight),
                        .seed = seed},
      groups);
  const net::ClientOptions client_options = client_options_of(serve);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    fleet->clients_.emplace_back(threads.at(i), fleet->workers_, client_options);
  }
  if (const auto added = fleet->add_prefill_side(serve, threads); !added) return std::unexpected(added.error());
  return fleet;
}

std::expected<void, std::string> Fleet::add_prefill_side(const ServeParams& serve, net::IoThreads& threads) {
  if (dialect_->order() == LegOrder::DecodeOnly) return {};
  const PrefillParams& prefill = params_.prefill;
  for (const PrefillInstanceParams& instance : prefill.instances) {
    const auto endpoint = net::parse_http_url(instance.url);
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
  const net::ClientOptions client_options = client_options_of(serve);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    prefill_clients_.emplace_back(threads.at(i), prefill_peers_, client_options);
  }
  return {};
}

void Fleet::rename_model(BodyEdit& edit, std::string_view asked) const {
  const auto model = engine_model(asked);
  if (model && *model != asked) edit.set(Member::Model, nlohmann::json(*model).dump());
}

void Fleet::name_rank(net::HttpRequest& request, BodyEdit& edit, WorkerId worker) const {
  const WorkerAddress& to = address(worker);
  if (to.naming == RankNaming::Header) request.headers.add("X-data-parallel-rank", std::to_string(to.rank));
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
