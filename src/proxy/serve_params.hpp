// serve_params.hpp - everything that `balanceroute serve` can be told, declared once.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/kv_params.hpp"
#include "core/load_model_params.hpp"
#include "core/params.hpp"
#include "history/history_params.hpp"
#include "policy/policy_params.hpp"
#include "proxy/api_keys.hpp"
#include "proxy/decision_log.hpp"
#include "proxy/discovery_params.hpp"
#include "proxy/engine_key.hpp"
#include "proxy/fallback.hpp"
#include "proxy/health_params.hpp"
#include "proxy/prefill_params.hpp"
#include "proxy/retry.hpp"
#include "proxy/shadow_params.hpp"
#include "proxy/tls_params.hpp"
#include "proxy/token_progress.hpp"
#include "proxy/tracing_params.hpp"
#include "proxy/worker_address.hpp"

namespace balanceroute::proxy {

// One decode engine server.
struct WorkerParams {
  std::string url;
  std::int64_t ranks = 1;
  std::string addressing = "port";
  std::int64_t start_rank = 0;

  void visit_params(ParamVisitor& visitor);
};

struct GroupParams {
  std::string name;
  std::int64_t slots = 0;
  std::int64_t slots_ahead = 0;
  KvParams kv;
  std::vector<WorkerParams> workers;
  DiscoveryParams discovery;

  void visit_params(ParamVisitor& visitor);
};

struct ModelParams {
  std::string name;
  std::vector<std::string> aliases;
  std::vector<std::string> adapters;

  void visit_params(ParamVisitor& visitor);
};

struct FleetParams {
  std::string name = "default";
  std::vector<ModelParams> models;
  std::string dialect = "aggregated";
  std::string token_progress = "auto";
  bool barrier = true;
  PolicyParams policy;
  ShadowParams shadow;
  LoadModelParams load_model;
  double round_delay_ms = 3;
  EngineKeyParams engine_key;
  WorkerTlsParams tls;
  std::vector<GroupParams> groups;
  PrefillParams prefill;
  DecisionLogParams decision_log;

  DialectKind dialect_kind() const;
  TokenProgressMode token_progress_mode() const;
  void visit_params(ParamVisitor& visitor);
};

struct LimitParams {
  std::int64_t head_bytes = 64 * 1024;
  std::int64_t head_fields = 128;
  std::int64_t body_bytes = 64 * 1024 * 1024;
  std::int64_t waiting_requests = 16'384;
  std::int64_t connections = kAuto;
  std::int64_t connections_per_address = 0;

  static constexpr std::int64_t kAuto = 0;
  void visit_params(ParamVisitor& visitor);
};

struct TimeoutParams {
  double head_ms = 10'000;
  double body_ms = 60'000;
  double connect_ms = 2'000;
  double request_ms = 3'600'000;
  double arrival_ms = 600'000;
  double prefill_ms = 120'000;
  double admission_ms = 600'000;
  double first_byte_ms = 300'000;
  double stream_idle_ms = 60'000;
  double client_stall_ms = 60'000;
  double worker_idle_ms = 4'000;
  double drain_ms = 30'000;

  void visit_params(ParamVisitor& visitor);
};

struct AdminParams {
  std::string listen = "127.0.0.1:8081";
  std::string token;
  ListenTlsParams tls;

  void visit_params(ParamVisitor& visitor);
};

struct ServeParams {
  std::string listen = "127.0.0.1:8080";
  ListenTlsParams tls;
  bool trusted = false;
  AdminParams admin;
  KeysParams keys;
  std::int64_t io_threads = kAuto;
  std::string log_level = "info";
  std::string log_format = "text";
  bool reload_on_change = true;
  LimitParams limits;
  TimeoutParams timeouts;
  RetryParams retries;
  HealthParams health;
  FallbackParams fallback;
  std::vector<std::string> worker_networks;
  TracingParams tracing;
  history::HistoryParams history;
  std::vector<FleetParams> fleets;

  static constexpr std::int64_t kAuto = -1;
  void visit_params(ParamVisitor& visitor);
};

// Every address of a server, in order of its ranks; the error says what is wrong with its URL.
std::expected<std::vector<WorkerAddress>, std::string> addresses_of(const WorkerParams& worker);

// What no single setting can say: every problem found, each naming its key, value and what was expected.
std::vector<std::string> problems_of(const ServeParams& params);

// The files with keys and certificates that settings name, which are in effect as the settings are.
std::vector<std::string> files_of(const ServeParams& params);

// The keys and certificates that settings name, read from where they are.
struct LoadedKeys {
  using Tls = std::shared_ptr<const net::TlsContext>;

  ApiKeys clients;
  std::vector<std::string> engines;  // one for each fleet, empty where there is none
  Tls listen;                        // none: plaintext
  Tls admin;
  std::vector<Tls> workers;  // one for each fleet

  // Of our own certificates.
  std::vector<CertificateEnd> certificate_ends(const ServeParams& params) const;
};
std::expected<LoadedKeys, std::string> load_keys(const ServeParams& params);

// "host:port" with an IP address, IPv6 in brackets; the error says what is wrong.
struct ListenAddress {
  std::string host;
  std::uint16_t port;
};
std::expected<ListenAddress, std::string> parse_listen_address(const std::string& text);

}  // namespace balanceroute::proxy
