// generation.hpp - the life of one chat or text completion: read, place, send, relay, release.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/server.hpp"
#include "proxy/fleet.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/request_body.hpp"
#include "proxy/request_record.hpp"
#include "proxy/serve_params.hpp"
#include "proxy/stream_event.hpp"

namespace balanceroute::proxy {

// What every request needs of the service.
struct ServiceContext {
  const net::Clock& clock;
  net::IoThreads& threads;
  const ServeParams& params;
  telemetry::RouterMetrics& metrics;
  spdlog::logger& log;
  std::vector<std::unique_ptr<Fleet>>& fleets;

  std::size_t index_of(const net::IoThread& thread) const;
};

// Generation carries one request from its body to the last byte of its answer.
//   Bytes    the body goes on unchanged but for an alias of the model and the wish for a usage event; stream events
//   come
//            back as they were, but for the usage event that the client did not ask for.
//   Ends     one final log line and one metric; slots and load are given back at the last token, or when this object
//            ends, whatever happened. An answer that breaks off never looks like a whole one.
//   Threads  the exchange's thread.
class Generation {
 public:
  Generation(ServiceContext& service, net::HttpExchange& exchange, GenerationKind kind);

  net::asio::awaitable<void> run();

 private:
  class Relay;

  net::asio::awaitable<void> fail(telemetry::Outcome outcome, ApiError error, std::string log_reason = {});
  Fleet* find_fleet();
  RequestSize size() const;
  // Of so many tokens in all answers, those of one.
  std::int64_t tokens_each(std::int64_t tokens) const { return (tokens + body_.sequences - 1) / body_.sequences; }
  net::HttpRequest upstream_request() const;
  std::string upstream_body() const;
  std::optional<ApiError> refused_header() const;
  net::asio::awaitable<void> relay_whole(net::HttpCall& call);
  net::asio::awaitable<void> relay_stream(net::HttpCall& call);
  net::HttpResponse client_head(const net::HttpResponse& upstream) const;
  net::TimePoint after(double milliseconds) const;
  void learn(const std::optional<Usage>& usage);

  ServiceContext& service_;
  net::HttpExchange& exchange_;
  GenerationKind kind_;
  std::size_t thread_index_;
  RequestRecord record_;
  GenerationBody body_;
  std::string engine_model_;
  Fleet* fleet_ = nullptr;
  std::optional<Placement> placement_;
};

}  // namespace balanceroute::proxy
