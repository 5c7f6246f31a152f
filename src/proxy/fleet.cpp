#include "proxy/fleet.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "policy/registry.hpp"

namespace balanceroute::proxy {

namespace {

net::Duration milliseconds(double count) {
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{count});
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

std::expected<std::unique_ptr<Fleet>, std::string> Fleet::make(const FleetParams& params, const ServeParams& serve,
                                                               net::IoThread& decider, net::IoThreads& threads) {
  auto policy = make_policy(chosen_for(params.policy, all_wait(params)), {.load_model = params.load_model.model()});
  if (!policy) return std::unexpected(policy.error());
  std::unique_ptr<Fleet> fleet{new Fleet{params}};
  std::vector<GroupSpec> groups;
  for (const GroupParams& group : params.groups) {
    GroupSpec spec{
        .name = group.name, .slots = static_cast<std::int32_t>(group.slots), .kv = group.kv.space(), .worker_urls = {}};
    for (const WorkerParams& worker : group.workers) {
      const auto first = net::parse_http_url(worker.url);
      if (!first) return std::unexpected(worker.url + ": " + first.error());
      for (std::int64_t rank = 0; rank < worker.ranks; ++rank) {
        const net::Endpoint endpoint{first->host, static_cast<std::uint16_t>(first->port + rank)};
        spec.worker_urls.push_back("http://" + endpoint.authority());
        fleet->workers_.push_back(endpoint);
      }
    }
    fleet->largest_slots_ = std::max(fleet->largest_slots_, spec.slots);
    groups.push_back(std::move(spec));
  }
  for (const ModelParams& model : params.models) {
    fleet->models_[model.name] = model.name;
    for (const std::string& alias : model.aliases) fleet->models_[alias] = model.name;
  }
  fleet->dispatcher_ = std::make_unique<Dispatcher>(
      decider, threads.size(), std::move(*policy),
      DispatcherOptions{.fleet = params.name,
                        .router = {.books = {.load_model = params.load_model.model(),
                                             .kv_block = Tokens{params.groups.front().kv.block_size}},
                                   .max_wait = params.policy.max_wait()},
                        .barrier = params.barrier,
                        .round_delay = milliseconds(params.round_delay_ms),
                        .waiting_limit = static_cast<std::size_t>(serve.limits.waiting_requests),
                        .seed = std::random_device{}()},
      groups);
  const net::ClientOptions client_options{.connect_timeout = milliseconds(serve.timeouts.connect_ms),
                                          .idle_limit = milliseconds(serve.timeouts.worker_idle_ms)};
  for (std::size_t i = 0; i < threads.size(); ++i) {
    fleet->clients_.emplace_back(threads.at(i), fleet->workers_, client_options);
  }
  return fleet;
}

std::optional<std::string_view> Fleet::engine_model(std::string_view asked) const {
  if (models_.empty()) return asked;
  const auto found = models_.find(std::string{asked});
  if (found == models_.end()) return std::nullopt;
  return found->second;
}

}  // namespace balanceroute::proxy
