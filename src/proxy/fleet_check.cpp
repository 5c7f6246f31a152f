#include "proxy/fleet_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <latch>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "net/networks.hpp"
#include "net/task_group.hpp"
#include "proxy/engine_metrics.hpp"
#include "proxy/fleet.hpp"

namespace balanceroute::proxy {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "ok";
    case Verdict::doubtful:
      return "doubt";
    case Verdict::wrong:
      return "WRONG";
  }
  std::unreachable();
}

namespace {

constexpr std::size_t kPageBytes = 16 * 1024 * 1024;
// Of the prompt tokens of a worker that gets its KV from prefill instances: more than this share computed by itself is
// no accident.
constexpr double kRecomputedShare = 0.05;

// --- judging ---

using FindingList = std::vector<Finding>;

// The size of the KV cache as vLLM tells it.
struct CacheInfo {
  std::int64_t block_size = 0;
  std::int64_t blocks = 0;
};

std::optional<CacheInfo> cache_info(std::string_view page) {
  std::optional<CacheInfo> info;
  read_metric_samples(page, [&](const MetricSample& sample) {
    if (sample.name != "vllm:cache_config_info") return;
    const auto number = [&sample](std::string_view label) {
      const std::string text = sample.label(label).value_or("");
      std::int64_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    };
    info = CacheInfo{number("block_size"), number("num_gpu_blocks")};
  });
  return info;
}

void judge_reach(const std::string& url, const EnginePages& pages, FindingList& findings) {
  if (!pages.unreachable.empty()) {
    findings.push_back(
        {Verdict::wrong, url, "cannot be reached: " + pages.unreachable,
         "start the engine, or correct its url; several ranks behind one port need addressing: header or body"});
  } else if (pages.health >= 500) {
    findings.push_back({Verdict::wrong, url, fmt::format("GET /health answers {}", pages.health),
                        "see the engine's log: it says itself that it is not well"});
  } else {
    findings.push_back(
        {Verdict::good, url, fmt::format("answers{}", pages.version.empty() ? "" : ", version " + pages.version), ""});
  }
}

void judge_models(const FleetParams& fleet, const std::string& url, const EnginePages& pages, FindingList& findings) {
  if (pages.models.empty()) return;
  for (const ModelParams& model : fleet.models) {
    if (std::ranges::find(pages.models, model.name) != pages.models.end()) continue;
    findings.push_back({Verdict::wrong, url,
                        fmt::format("serves {} and not {}", fmt::join(pages.models, ", "), model.name),
                        "correct models[].name; other names for it go to aliases"});
  }
}

void judge_dialect(const FleetParams& fleet, const std::string& url, const EnginePages& pages, FindingList& findings) {
  const bool is_sglang = pages.metrics.find("\nsglang:") != std::string::npos || pages.metrics.starts_with("sglang:");
  const bool is_vllm = pages.metrics.find("\nvllm:") != std::string::npos || pages.metrics.starts_with("vllm:");
  const bool fits = fleet.dialect == "aggregated" || (fleet.dialect == "sglang" ? !is_vllm : !is_sglang);
  if (fits) return;
  findings.push_back({Verdict::wrong, url,
                      fmt::format("is {} and the fleet's dialect is {}", is_sglang ? "SGLang" : "vLLM", fleet.dialect),
                      "set dialect to that of the engines"});
}

// How far the engine's own figures go with the slots that it was given.
void judge_slots(const GroupParams& group, const std::string& url, const RankReading& rank, FindingList& findings) {
  const std::int64_t running = rank.running.value_or(0);
  const std::int64_t waiting = rank.waiting.value_or(0);
  if (running > group.slots) {
    findings.push_back({Verdict::wrong, url, fmt::format("runs {} sequences and slots is {}", running, group.slots),
                        "set slots to the engine's --max-num-seqs, or find who else sends it requests"});
  } else if (waiting > 0 && running < group.slots) {
    findings.push_back({Verdict::doubtful, url,
                        fmt::format("lets {} sequences wait and runs {} in {} slots", waiting, running, group.slots),
                        "slots may be more than the engine's --max-num-seqs; look again under load"});
  }
}

// The rank that the worker is, as the engine numbers them; none if that cannot be.
const RankReading* judge_ranks(const WorkerSpec& worker, const EngineReading& reading, FindingList& findings) {
  if (!reading.says_something()) {
    findings.push_back({Verdict::doubtful, worker.url, "has no metrics of vLLM or SGLang",
                        "restarts between two probes and wrong slots cannot be seen there; SGLang needs "
                        "--enable-metrics"});
    return nullptr;
  }
  if (worker.address.naming == RankNaming::Port) {
    if (reading.ranks.size() == 1) return &reading.ranks.begin()->second;
    findings.push_back(
        {Verdict::wrong, worker.url,
         fmt::format("{} ranks share this address and the router takes it for one", reading.ranks.size()),
         fmt::format("set ranks: {} and addressing: header (body for SGLang), and start_rank: {}", reading.ranks.size(),
                     reading.ranks.begin()->first)});
    return nullptr;
  }
  const auto own = reading.ranks.find(worker.address.engine_rank);
  if (own != reading.ranks.end()) return &own->second;
  findings.push_back(
      {Verdict::wrong, worker.url,
       fmt::format("has no rank {}; it has {} to {}", worker.address.engine_rank, reading.ranks.begin()->first,
                   reading.ranks.rbegin()->first),
       fmt::format("set start_rank: {} and ranks: {}", reading.ranks.begin()->first, reading.ranks.size())});
  return nullptr;
}

void judge_cache(const GroupParams& group, const std::string& url, const EnginePages& pages, FindingList& findings) {
  const auto info = cache_info(pages.metrics);
  if (!info || info->block_size == 0 || info->blocks == 0) return;
  const std::int64_t tokens = info->block_size * info->blocks;
  const KvSpace space = group.kv.space();
  if (space.capacity == kUnlimitedKv) {
    findings.push_back({Verdict::doubtful, url, fmt::format("holds {} tokens of KV; no limit is set", tokens),
                        fmt::format("set kv_capacity_tokens: {} and block_size: {}", tokens, info->block_size)});
  } else if (space.capacity > Tokens{tokens}) {
    findings.push_back(
        {Verdict::wrong, url,
         fmt::format("holds {} tokens of KV and kv_capacity_tokens is {}", tokens, space.capacity.count()),
         fmt::format("set kv_capacity_tokens: {} or less, else the engine preempts", tokens)});
  }
}

void judge_transfer(const FleetParams& fleet, const std::string& url, const EngineReading& reading,
                    FindingList& findings) {
  if (fleet.dialect == "aggregated") return;
  double computed = 0;
  double transferred = 0;
  for (const auto& [number, rank] : reading.ranks) {
    computed += rank.prompt_tokens_computed;
    transferred += rank.prompt_tokens_transferred;
  }
  const double all = computed + transferred;
  if (all <= 0 || computed <= kRecomputedShare * all) return;
  findings.push_back(
      {Verdict::wrong, url,
       fmt::format("computed {:.0f} % of its prompt tokens itself since its start", 100 * computed / all),
       "KV from prefill instances does not arrive and is computed anew in silence: see the engine's log "
       "for failed transfers, and whether kv_load_failure_policy is recompute"});
}

void judge_versions(const GroupParams& group, const std::vector<EnginePages>& pages, FindingList& findings) {
  std::set<std::string> versions;
  for (const EnginePages& one : pages) {
    if (!one.version.empty()) versions.insert(one.version);
  }
  if (versions.size() < 2) return;
  findings.push_back({Verdict::doubtful, "group " + group.name,
                      fmt::format("has versions {}", fmt::join(versions, ", ")),
                      "workers that step together should be of one version"});
}

// Ranks of one deployment have different numbers; servers that are none do not wait for each other.
void judge_barrier(const FleetParams& fleet, const GroupParams& group, const std::vector<WorkerSpec>& workers,
                   const std::vector<EnginePages>& pages, FindingList& findings) {
  if (!fleet.barrier) return;
  std::map<std::int64_t, std::string> first_of;  // url, by the engine's own number of a rank
  for (std::size_t i = 0; i < workers.size(); ++i) {
    for (const auto& [number, rank] : read_engine_metrics(pages[i].metrics).ranks) {
      const auto [before, is_first] = first_of.emplace(number, workers[i].url);
      if (is_first || before->second == workers[i].url) continue;
      findings.push_back({Verdict::doubtful, "group " + group.name,
                          fmt::format("has two servers whose engines call themselves rank {}: {} and {}", number,
                                      before->second, workers[i].url),
                          "such servers do not wait for each other in every step; set barrier: false, else one that "
                          "fails stops the group"});
      return;
    }
  }
}

// The prefill instances, which have been checked, as what can be asked.
std::vector<WorkerSpec> prefill_side(const FleetParams& fleet) {
  std::vector<WorkerSpec> instances;
  for (const PrefillInstanceParams& instance : fleet.prefill.instances) {
    if (const auto endpoint = net::parse_http_url(instance.url, net::Schemes::http_and_https)) {
      instances.push_back({.url = instance.url, .address = {.endpoint = *endpoint}});
    }
  }
  return instances;
}

// --- asking ---

// How the engines of a fleet are asked.
struct EngineAccess {
  EngineKey key;
  net::ClientOptions clients;
};

net::asio::awaitable<std::optional<std::string>> ask(net::HttpClient& client, const EngineKey& key,
                                                     std::string_view target, int& status, std::string& fault,
                                                     net::TimePoint deadline) {
  net::HttpRequest request;
  request.target = target;
  key.sign(request.headers);
  auto call = co_await client.send(request, deadline);
  if (!call) {
    fault = call.error().detail;
    co_return std::nullopt;
  }
  status = call->head().status;
  auto body = co_await call->read_all(kPageBytes, deadline);
  if (!body) {
    fault = body.error().detail;
    co_return std::nullopt;
  }
  co_return *std::move(body);
}

void read_version(const std::string& body, EnginePages& pages) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("version") && json["version"].is_string()) {
    pages.version = json["version"].get<std::string>();
  }
}

void read_models(const std::string& body, EnginePages& pages) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object() || !json.contains("data") || !json["data"].is_array()) return;
  for (const auto& model : json["data"]) {
    if (model.is_object() && model.contains("id") && model["id"].is_string()) {
      pages.models.push_back(model["id"].get<std::string>());
    }
  }
}

// Counts down `answered` however it ends.
net::asio::awaitable<void> ask_engine(net::IoThread& thread, net::Endpoint endpoint, const EngineAccess& access,
                                      EnginePages& pages, std::latch& answered) {
  const std::unique_ptr<std::latch, void (*)(std::latch*)> at_end{&answered,
                                                                  [](std::latch* one) { one->count_down(); }};
  const net::Duration timeout = access.clients.connect_timeout;
  const EngineKey& key = access.key;
  net::HttpClient client{thread, std::move(endpoint), access.clients};
  std::string fault;
  int status = 0;
  const auto health = co_await ask(client, key, "/health", pages.health, pages.unreachable, thread.now() + timeout);
  if (!health) co_return;
  const auto version = co_await ask(client, key, "/version", status, fault, thread.now() + timeout);
  if (version && status == 200) read_version(*version, pages);
  const auto models = co_await ask(client, key, "/v1/models", status, fault, thread.now() + timeout);
  if (models && status == 200) read_models(*models, pages);
  auto metrics = co_await ask(client, key, "/metrics", status, fault, thread.now() + timeout);
  if (metrics && status == 200) pages.metrics = *std::move(metrics);
}

// All of them at once.
std::vector<EnginePages> ask_engines(const std::vector<WorkerSpec>& workers, const EngineAccess& access) {
  const net::SteadyClock clock;
  net::IoThread thread{"br-check", clock};
  std::vector<EnginePages> pages(workers.size());
  std::latch answered{static_cast<std::ptrdiff_t>(workers.size())};
  {
    net::TaskGroup tasks{thread, [](const std::exception_ptr&) {}};
    thread.start();
    thread.call([&] {
      for (std::size_t i = 0; i < workers.size(); ++i) {
        tasks.spawn(ask_engine(thread, workers[i].address.endpoint, access, pages[i], answered));
      }
    });
    answered.wait();
    bool ended = false;
    while (!ended) thread.call([&] { ended = tasks.size() == 0; });
    thread.stop();
  }
  return pages;
}

}  // namespace

std::vector<Finding> judge_group(const FleetParams& fleet, const GroupParams& group,
                                 const std::vector<WorkerSpec>& workers, const std::vector<EnginePages>& pages) {
  FindingList findings;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const std::string& url = workers[i].url;
    const bool first_there = i == 0 || workers[i - 1].url != url;
    if (first_there) judge_reach(url, pages[i], findings);
    if (!pages[i].unreachable.empty()) continue;
    const EngineReading reading = read_engine_metrics(pages[i].metrics);
    if (first_there) {
      judge_models(fleet, url, pages[i], findings);
      judge_dialect(fleet, url, pages[i], findings);
      judge_cache(group, url, pages[i], findings);
      judge_transfer(fleet, url, reading, findings);
    }
    if (const RankReading* rank = judge_ranks(workers[i], reading, findings)) judge_slots(group, url, *rank, findings);
  }
  judge_versions(group, pages, findings);
  judge_barrier(fleet, group, workers, pages, findings);
  return findings;
}

std::vector<Finding> check_fleets(const ServeParams& params, const LoadedKeys& keys) {
  const auto timeout =
      std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{params.health.timeout_ms});
  FindingList all;
  for (std::size_t f = 0; f < params.fleets.size(); ++f) {
    const FleetParams& fleet = params.fleets[f];
    EngineAccess access{.key = EngineKey{keys.engines[f]}, .clients = {.connect_timeout = timeout}};
    access.clients.tls = std::make_shared<net::TlsInUse>(keys.workers[f], fleet.tls.server_name);
    if (auto networks = net::Networks::parse(params.worker_networks)) {
      access.clients.networks = std::make_shared<net::Networks>(*std::move(networks));
    }
    for (const GroupParams& group : fleet.groups) {
      const std::vector<WorkerSpec> workers = ranks_of(group.workers);
      const auto found = judge_group(fleet, group, workers, ask_engines(workers, access));
      all.insert(all.end(), found.begin(), found.end());
    }
    const std::vector<WorkerSpec> instances = prefill_side(fleet);
    const std::vector<EnginePages> pages = ask_engines(instances, access);
    for (std::size_t i = 0; i < instances.size(); ++i) {
      judge_reach(instances[i].url, pages[i], all);
      if (!pages[i].unreachable.empty()) continue;
      judge_models(fleet, instances[i].url, pages[i], all);
      judge_dialect(fleet, instances[i].url, pages[i], all);
    }
  }
  return all;
}

}  // namespace balanceroute::proxy
