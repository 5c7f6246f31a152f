#include "proxy/serve_params.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "net/client.hpp"
#include "net/networks.hpp"

namespace balanceroute::proxy {

namespace {

constexpr std::array<std::string_view, 6> kDialects{"aggregated",    "vllm_nixl",        "ascend_mooncake",
                                                    "vllm_mooncake", "ascend_layerwise", "sglang"};
constexpr std::array<std::string_view, 3> kTokenProgress{"auto", "events", "usage"};
constexpr std::array<std::string_view, 3> kAddressings{"port", "header", "body"};
constexpr std::array<std::string_view, 5> kLogLevels{"debug", "info", "warn", "error", "off"};
constexpr std::array<std::string_view, 2> kLogFormats{"text", "json"};
constexpr double kHourMs = 3'600'000;
constexpr double kDayMs = 24 * kHourMs;

}  // namespace

void WorkerParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"url", "Address of the engine server, as http://host:port or https://host:port.", true}, url);
  visitor.integer({"ranks", "Decode ranks behind it."}, ranks, {1, 4096});
  visitor.choice({"addressing",
                  "How a rank is named: port means consecutive ports from the URL's on; header means one port and "
                  "X-data-parallel-rank, counted from 0 within the port; body means one port and routed_dp_rank "
                  "(dialect sglang)."},
                 addressing, kAddressings);
  visitor.integer({"start_rank", "The engine's own number of the first of them: its label in the engine's metrics."},
                  start_rank, {0, 65'535});
}

void GroupParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"name", "Name of the group in logs and metrics.", true}, name);
  visitor.integer({"slots", "Sequences that one worker decodes at once: the engine's --max-num-seqs.", true}, slots,
                  {1, 65'536});
  visitor.integer({"slots_ahead",
                   "Sequences that may wait inside a worker besides, so that it has the next one when one ends and "
                   "transfers overlap decoding; what waits there can be placed no better any more."},
                  slots_ahead, {0, 65'536});
  kv.visit_params(visitor);
  visitor.nested_list({"workers", "The decode workers that step together at one barrier."}, workers);
  visitor.nested({"discovery", "Where more workers of the group are found while the router runs."}, discovery);
}

void ModelParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"name", "Model name as the engine knows it.", true}, name);
  visitor.texts({"aliases", "Other names under which clients may ask for it."}, aliases);
  visitor.texts({"adapters", "Names of the adapters (LoRA) of it that the engines serve."}, adapters);
}

void FleetParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"name", "Name of the fleet in logs and metrics."}, name);
  visitor.nested_list({"models", "Models that the fleet serves; none means every model name is passed on."}, models);
  visitor.choice({"dialect",
                  "How prefill and decode are arranged, and what engines want of a router to hand KV over "
                  "(docs/dialects.md); aggregated means both in one engine."},
                 dialect, kDialects);
  visitor.choice({"token_progress",
                  "How tokens of running streams are counted: events takes one for each event with content, usage asks "
                  "engines for usage in every event and takes it out again, auto does so once events are seen to carry "
                  "more than 1.05 tokens."},
                 token_progress, kTokenProgress);
  visitor.flag({"barrier", "Whether the workers of a group wait for each other in every decode step."}, barrier);
  visitor.nested({"policy", "How requests are given to workers."}, policy);
  visitor.nested({"shadow", "Another policy, to compare with."}, shadow);
  visitor.nested({"load_model", "What a sequence makes its worker read in a step."}, load_model);
  visitor.real({"round_delay_ms",
                "Longest wait, after a slot is freed, for the other departures of the same step; a tenth of the step "
                "time if that is less."},
               round_delay_ms, {0, 100});
  visitor.nested({"engine_key", "The key that its engines want; it takes the place of what clients send."}, engine_key);
  visitor.nested({"tls", "What its engines with https URLs must show, and are shown."}, tls);
  visitor.nested_list({"groups", "Groups of decode workers.", true}, groups);
  visitor.nested({"prefill", "The prefill side; none with dialect aggregated."}, prefill);
  visitor.nested({"decision_log", "A log that `balanceroute verify-decisions` decides again."}, decision_log);
}

DialectKind FleetParams::dialect_kind() const {
  return static_cast<DialectKind>(std::ranges::find(kDialects, dialect) - kDialects.begin());
}

TokenProgressMode FleetParams::token_progress_mode() const {
  return static_cast<TokenProgressMode>(std::ranges::find(kTokenProgress, token_progress) - kTokenProgress.begin());
}

void LimitParams::visit_params(ParamVisitor& visitor) {
  visitor.integer({"head_bytes", "Largest request head; more is answered 431."}, head_bytes, {1024, 1024 * 1024});
  visitor.integer({"head_fields", "Most fields in a request's head; more is answered 431."}, head_fields, {16, 4096});
  visitor.integer({"body_bytes", "Largest request body; more is answered 413."}, body_bytes, {1024, 1'073'741'824});
  visitor.integer({"waiting_requests", "Requests that may wait for a worker; more are answered 429."}, waiting_requests,
                  {1, 10'000'000});
  visitor.integer_or_auto({"connections",
                           "Client connections at once; more wait to be accepted. auto means as many as descriptors "
                           "allow when each has a connection to a worker."},
                          connections, kAuto, {1, 10'000'000});
  visitor.integer({"connections_per_address",
                   "Client connections of one address at once; more are closed. 0 means no limit, as behind a proxy "
                   "all clients have one address."},
                  connections_per_address, {0, 10'000'000});
}

void TimeoutParams::visit_params(ParamVisitor& visitor) {
  visitor.real({"head_ms", "Longest time for the head of a request, and for a TLS handshake; then 408."}, head_ms,
               {1, kHourMs});
  visitor.real({"body_ms", "Longest time for the body of a request; then 408."}, body_ms, {1, kDayMs});
  visitor.real({"connect_ms", "Longest wait for a connection to a worker, its TLS handshake included."}, connect_ms,
               {1, kHourMs});
  visitor.real({"request_ms",
                "The whole time of a request, from its body to the end of its answer; then it is answered 504, or its "
                "stream ends with an error."},
               request_ms, {1, kDayMs});
  visitor.real({"arrival_ms", "Longest wait for a prefill instance; then 504."}, arrival_ms, {1, kDayMs});
  visitor.real({"prefill_ms",
                "Longest wait for a prefill instance's answer; then another one is asked, as prefill.retries says."},
               prefill_ms, {1, kDayMs});
  visitor.real({"admission_ms", "Longest wait for a decode worker; then 504."}, admission_ms, {1, kDayMs});
  visitor.real({"first_byte_ms",
                "Longest wait for a worker's first event that is more than a role, or for all of an answer that is not "
                "streamed; then 504."},
               first_byte_ms, {1, kDayMs});
  visitor.real({"stream_idle_ms", "Longest silence of a worker within an answer; then the stream ends with an error."},
               stream_idle_ms, {1, kDayMs});
  visitor.real({"client_stall_ms", "How long a client may take nothing while bytes wait for it."}, client_stall_ms,
               {1, kDayMs});
  visitor.real({"worker_idle_ms", "How long an idle connection to a worker is kept; engines close theirs after 5 s."},
               worker_idle_ms, {0, kHourMs});
  visitor.real({"drain_ms", "How long running requests may go on after a request to stop."}, drain_ms, {0, kDayMs});
}

void AdminParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"listen", "Its address, as host:port; loopback only, unless there is a token."}, listen);
  visitor.text(
      {"token", "What whoever asks it must send, as Authorization: Bearer TOKEN; health pages are open.", false, true},
      token);
  visitor.nested({"tls", "Its certificate; plaintext without one."}, tls);
}

void ServeParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"listen", "Address for clients, as host:port."}, listen);
  visitor.nested({"tls", "The certificate for clients; plaintext without one."}, tls);
  visitor.flag({"trusted",
                "Whether clients may reach into engines: members such as kv_transfer_params and headers such as "
                "X-data-parallel-rank are passed on to fleets with dialect aggregated instead of refused; for another "
                "router in front, never for the public."},
               trusted);
  visitor.nested({"admin", "The listener for metrics and administration."}, admin);
  visitor.nested({"keys", "Who may ask, and how much."}, keys);
  visitor.integer_or_auto({"io_threads", "Threads that own connections; auto means the cores less one."}, io_threads,
                          kAuto, {1, 1024});
  visitor.choice({"log_level", "Least severe log lines that are written."}, log_level, kLogLevels);
  visitor.choice({"log_format",
                  "Whether log lines are text, or JSON objects with a member for each field, the last line of every "
                  "request with all of its times among them."},
                 log_format, kLogFormats);
  visitor.flag(
      {"reload_on_change",
       "Whether the configuration file and those that it names are read again when one has changed; SIGHUP does that "
       "at any time."},
      reload_on_change);
  visitor.nested({"limits", "Bounds on what clients may send."}, limits);
  visitor.nested({"timeouts", "Longest waits."}, timeouts);
  visitor.nested({"retries", "Requests that another worker is given when one has failed them."}, retries);
  visitor.nested({"health", "When workers are given requests, and when not."}, health);
  visitor.nested({"fallback", "When a policy gives way to a simpler one."}, fallback);
  visitor.texts(
      {"worker_networks",
       "Networks in which engines may be, as 10.0.0.0/8, whatever configuration, administration, discovery or "
       "DNS say; none means anywhere."},
      worker_networks);
  visitor.nested(
      {"tracing", "Spans of requests for a collector; the traceparent of clients goes on to engines anyway."}, tracing);
  visitor.nested({"history", "Finished requests, kept for what is learned from them."}, history);
  visitor.nested_list({"fleets", "Fleets of workers; each serves one set of models.", true}, fleets);
}

std::expected<std::vector<WorkerAddress>, std::string> addresses_of(const WorkerParams& worker) {
  const auto first = net::parse_http_url(worker.url, net::Schemes::http_and_https);
  if (!first) return std::unexpected(first.error());
  const bool ports = worker.addressing == "port";
  if (ports && first->port + worker.ranks - 1 > 65'535) {
    return std::unexpected("expected ports up to 65535 for " + std::to_string(worker.ranks) + " ranks");
  }
  std::vector<WorkerAddress> addresses;
  for (std::int64_t rank = 0; rank < worker.ranks; ++rank) {
    WorkerAddress address{.endpoint = *first, .engine_rank = worker.start_rank + rank};
    if (ports) {
      address.endpoint.port = static_cast<std::uint16_t>(first->port + rank);
    } else {
      address.rank = static_cast<std::int32_t>(rank);
      address.naming = worker.addressing == "body" ? RankNaming::Body : RankNaming::Header;
    }
    addresses.push_back(std::move(address));
  }
  return addresses;
}

std::expected<ListenAddress, std::string> parse_listen_address(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return std::unexpected("expected host:port");
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code failure;
  boost::asio::ip::make_address(host, failure);
  if (failure) return std::unexpected("expected an IP address before the port");
  const std::string_view digits = std::string_view{text}.substr(colon + 1);
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size()) {
    return std::unexpected("expected a port 0..65535");
  }
  return ListenAddress{std::move(host), port};
}

namespace {

using Problems = std::vector<std::string>;

void add_problem(Problems& problems, const std::string& key, const std::string& value, std::string_view expected) {
  problems.push_back(key + " = " + value + ": " + std::string{expected});
}

void check_addresses(const ServeParams& params, Problems& problems) {
  const auto listen = parse_listen_address(params.listen);
  if (!listen) add_problem(problems, "listen", params.listen, listen.error());
  const auto admin = parse_listen_address(params.admin.listen);
  if (!admin) {
    add_problem(problems, "admin.listen", params.admin.listen, admin.error());
  } else if (!boost::asio::ip::make_address(admin->host).is_loopback() && params.admin.token.empty()) {
    add_problem(problems, "admin.listen", params.admin.listen,
                "expected a loopback address, because no admin.token is set");
  }
}

// An address is one engine, wherever it is named.
void claim_address(const net::Endpoint& endpoint, const std::string& key, std::map<std::string, std::string>& seen,
                   Problems& problems) {
  const auto [earlier, fresh] = seen.emplace(endpoint.authority(), key);
  if (!fresh) add_problem(problems, key + ".url", endpoint.authority(), "is already the address of " + earlier->second);
}

// Returns the group's number of workers.
std::size_t check_workers(const GroupParams& group, const std::string& key, std::map<std::string, std::string>& seen,
                          Problems& problems) {
  std::size_t count = 0;
  for (std::size_t w = 0; w < group.workers.size(); ++w) {
    const WorkerParams& worker = group.workers[w];
    const std::string worker_key = key + ".workers[" + std::to_string(w) + "]";
    count += static_cast<std::size_t>(worker.ranks);
    const auto addresses = addresses_of(worker);
    if (!addresses) {
      add_problem(problems, worker_key + ".url", net::without_userinfo(worker.url), addresses.error());
      continue;
    }
    for (const WorkerAddress& address : *addresses) {
      if (address.rank > 0) continue;  // behind the same port as the one before
      claim_address(address.endpoint, worker_key, seen, problems);
    }
  }
  return count;
}

// A fleet has one block size, that of its first group: what a request needs must not depend on where it goes.
void check_kv(const KvParams& kv, const KvParams& first, const std::string& key, Problems& problems) {
  if (const KvSpace space = kv.space(); space.reserve >= space.capacity) {
    add_problem(problems, key + ".kv_reserve_tokens", std::to_string(kv.reserve_tokens),
                "expected less than kv_capacity_tokens");
  }
  if (kv.block_size != first.block_size) {
    add_problem(problems, key + ".block_size", std::to_string(kv.block_size),
                "expected " + std::to_string(first.block_size) + ", as in the fleet's first group");
  }
}

void check_addressing(const FleetParams& fleet, const GroupParams& group, const std::string& key, Problems& problems) {
  for (std::size_t w = 0; w < group.workers.size(); ++w) {
    const WorkerParams& worker = group.workers[w];
    if (worker.addressing == "body" && fleet.dialect_kind() != DialectKind::Sglang) {
      add_problem(problems, key + ".workers[" + std::to_string(w) + "].addressing", worker.addressing,
                  "expected port or header with dialect " + fleet.dialect);
    }
  }
}

void check_prefill(const ServeParams& params, const FleetParams& fleet, const std::string& key,
                   std::map<std::string, std::string>& seen, Problems& problems) {
  const PrefillParams& prefill = fleet.prefill;
  const bool aggregated = fleet.dialect_kind() == DialectKind::Aggregated;
  if (aggregated && !prefill.instances.empty()) {
    add_problem(problems, key + ".prefill.instances", std::to_string(prefill.instances.size()),
                "expected none with dialect aggregated, whose workers prefill by themselves");
  }
  if (!aggregated && prefill.instances.empty()) {
    add_problem(problems, key + ".prefill.instances", "[]",
                "expected at least one prefill instance with dialect " + fleet.dialect);
  }
  for (std::size_t i = 0; i < prefill.instances.size(); ++i) {
    const PrefillInstanceParams& instance = prefill.instances[i];
    const std::string instance_key = key + ".prefill.instances[" + std::to_string(i) + "]";
    const auto endpoint = net::parse_http_url(instance.url, net::Schemes::http_and_https);
    if (!endpoint) {
      add_problem(problems, instance_key + ".url", net::without_userinfo(instance.url), endpoint.error());
      continue;
    }
    claim_address(*endpoint, instance_key, seen, problems);
  }
  if (prefill.hold_limit_ms >= prefill.lease_ms) {
    add_problem(problems, key + ".prefill.hold_limit_ms", std::to_string(std::llround(prefill.hold_limit_ms)),
                "expected less than lease_ms, after which the KV is gone");
  }
  if (fleet.dialect_kind() != DialectKind::AscendLayerwise) return;
  const auto listen = parse_listen_address(params.listen);
  const bool wildcard = listen && boost::asio::ip::make_address(listen->host).is_unspecified();
  const auto callback = net::parse_http_url(prefill.callback_url, net::Schemes::http_and_https);
  if (prefill.callback_url.empty() && wildcard) {
    add_problem(problems, key + ".prefill.callback_url", "''",
                "expected http://host:port at which decode engines reach this router, since listen names no host");
  } else if (!prefill.callback_url.empty() && !callback) {
    add_problem(problems, key + ".prefill.callback_url", net::without_userinfo(prefill.callback_url), callback.error());
  }
}

// Engines outside of the networks that are allowed could never be connected to.
void check_tracing(const ServeParams& params, Problems& problems) {
  const std::string& collector = params.tracing.otlp_endpoint;
  if (collector.empty()) return;
  if (const auto endpoint = net::parse_http_url(collector); !endpoint) {
    add_problem(problems, "tracing.otlp_endpoint", collector, endpoint.error());
  }
}

void check_networks(const ServeParams& params, Problems& problems) {
  const auto networks = net::Networks::parse(params.worker_networks);
  if (!networks) {
    problems.push_back("worker_networks = " + networks.error());
    return;
  }
  const auto check = [&](const std::string& key, const std::string& url) {
    const auto endpoint = net::parse_http_url(url, net::Schemes::http_and_https);
    if (endpoint && networks->exclude(endpoint->host)) {
      add_problem(problems, key + ".url", url, "expected an address in worker_networks");
    }
  };
  for (std::size_t f = 0; f < params.fleets.size(); ++f) {
    const FleetParams& fleet = params.fleets[f];
    const std::string key = "fleets[" + std::to_string(f) + "]";
    for (std::size_t g = 0; g < fleet.groups.size(); ++g) {
      for (std::size_t w = 0; w < fleet.groups[g].workers.size(); ++w) {
        check(key + ".groups[" + std::to_string(g) + "].workers[" + std::to_string(w) + "]",
              fleet.groups[g].workers[w].url);
      }
    }
    for (std::size_t i = 0; i < fleet.prefill.instances.size(); ++i) {
      check(key + ".prefill.instances[" + std::to_string(i) + "]", fleet.prefill.instances[i].url);
    }
  }
}

void check_fleet(const FleetParams& fleet, const std::string& key, std::map<std::string, std::string>& seen,
                 Problems& problems) {
  if (fleet.groups.empty()) add_problem(problems, key + ".groups", "[]", "expected at least one group");
  if (const auto valid = validate(fleet.policy, key + ".policy."); !valid) problems.push_back(valid.error());
  if (const auto valid = validate(fleet.shadow.settings(fleet.policy), key + ".policy.");
      fleet.shadow.is_on() && !valid) {
    problems.push_back(key + ".shadow.policy = " + fleet.shadow.policy + ": " + valid.error());
  }
  std::set<std::string> names;
  for (std::size_t g = 0; g < fleet.groups.size(); ++g) {
    const GroupParams& group = fleet.groups[g];
    const std::string group_key = key + ".groups[" + std::to_string(g) + "]";
    if (!names.insert(group.name).second) add_problem(problems, group_key + ".name", group.name, "is given twice");
    check_kv(group.kv, fleet.groups.front().kv, group_key, problems);
    if (group.workers.empty() && !group.discovery.looks()) {
      add_problem(problems, group_key + ".workers", "[]", "expected at least one worker, or discovery");
    }
    if (const auto problem = problem_of(group.discovery)) {
      problems.push_back(group_key + ".discovery." + *problem);
    }
    const std::size_t workers = check_workers(group, group_key, seen, problems);
    check_addressing(fleet, group, group_key, problems);
    if (workers == 0 || group.discovery.looks()) continue;  // nobody knows yet how many there will be
    const auto fits = validate_for_group(fleet.policy, group.name, workers, fleet.barrier);
    if (!fits) problems.push_back(group_key + ": " + fits.error());
    const auto shadow = validate_for_group(fleet.shadow.settings(fleet.policy), group.name, workers, fleet.barrier);
    if (fleet.shadow.is_on() && !shadow) problems.push_back(group_key + ": shadow: " + shadow.error());
  }
}

}  // namespace

std::vector<std::string> problems_of(const ServeParams& params) {
  Problems problems;
  check_addresses(params, problems);
  check_networks(params, problems);
  check_tracing(params, problems);
  if (params.fleets.empty()) add_problem(problems, "fleets", "[]", "expected at least one fleet");
  std::map<std::string, std::string> worker_addresses;
  std::map<std::string, std::string> model_names;
  std::set<std::string> fleet_names;
  std::set<std::string> decision_logs;
  for (std::size_t f = 0; f < params.fleets.size(); ++f) {
    const FleetParams& fleet = params.fleets[f];
    const std::string key = "fleets[" + std::to_string(f) + "]";
    if (!fleet_names.insert(fleet.name).second) add_problem(problems, key + ".name", fleet.name, "is given twice");
    check_fleet(fleet, key, worker_addresses, problems);
    check_prefill(params, fleet, key, worker_addresses, problems);
    if (!fleet.decision_log.path.empty() && !decision_logs.insert(fleet.decision_log.path).second) {
      add_problem(problems, key + ".decision_log.path", fleet.decision_log.path, "is another fleet's");
    }
    if (fleet.models.empty() && params.fleets.size() > 1) {
      add_problem(problems, key + ".models", "[]", "expected the models of each fleet when there are several fleets");
    }
    for (const ModelParams& model : fleet.models) {
      std::vector<std::string> asked = model.aliases;
      asked.insert(asked.end(), model.adapters.begin(), model.adapters.end());
      asked.push_back(model.name);
      for (const std::string& name : asked) {
        const auto [earlier, fresh] = model_names.emplace(name, key);
        if (!fresh) add_problem(problems, key + ".models", name, "is already a name in " + earlier->second);
      }
    }
  }
  return problems;
}

std::vector<std::string> files_of(const ServeParams& params) {
  std::vector<std::string> files;
  if (!params.keys.file.empty()) files.push_back(params.keys.file);
  for (const FleetParams& fleet : params.fleets) {
    if (!fleet.engine_key.file.empty()) files.push_back(fleet.engine_key.file);
    std::ranges::copy(fleet.tls.files(), std::back_inserter(files));
  }
  std::ranges::copy(params.tls.files(), std::back_inserter(files));
  std::ranges::copy(params.admin.tls.files(), std::back_inserter(files));
  return files;
}

std::expected<LoadedKeys, std::string> load_keys(const ServeParams& params) {
  auto clients = ApiKeys::load(params.keys);
  if (!clients) return std::unexpected(clients.error());
  LoadedKeys loaded{.clients = *std::move(clients)};
  auto listen = params.tls.load("tls");
  if (!listen) return std::unexpected(listen.error());
  loaded.listen = *std::move(listen);
  auto admin = params.admin.tls.load("admin.tls");
  if (!admin) return std::unexpected(admin.error());
  loaded.admin = *std::move(admin);
  for (std::size_t f = 0; f < params.fleets.size(); ++f) {
    auto key = read_engine_key(params.fleets[f].engine_key, "fleets[" + std::to_string(f) + "].engine_key");
    if (!key) return std::unexpected(key.error());
    loaded.engines.push_back(*std::move(key));
    auto workers = params.fleets[f].tls.load("fleets[" + std::to_string(f) + "].tls");
    if (!workers) return std::unexpected(workers.error());
    loaded.workers.push_back(*std::move(workers));
  }
  return loaded;
}

std::vector<CertificateEnd> LoadedKeys::certificate_ends(const ServeParams& params) const {
  std::vector<CertificateEnd> ends;
  const auto add = [&ends](const std::string& owner, const Tls& context) {
    const auto end = context ? context->expires() : std::nullopt;
    if (end) ends.push_back({owner, *end});
  };
  add("listen", listen);
  add("admin.listen", admin);
  for (std::size_t f = 0; f < workers.size(); ++f) add("fleet " + params.fleets[f].name, workers[f]);
  return ends;
}

}  // namespace balanceroute::proxy
