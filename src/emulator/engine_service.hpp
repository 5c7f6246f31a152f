// engine_service.hpp - what every emulated engine answers on its port, whatever its role.
//
// Leaves out generation, which is DecodeService's and PrefillService's.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.hpp"
#include "emulator/answer_length.hpp"
#include "emulator/answer_writer.hpp"
#include "emulator/engine_identity.hpp"
#include "emulator/fault_plan.hpp"
#include "emulator/fleet.hpp"
#include "emulator/rank_metrics.hpp"
#include "net/server.hpp"

namespace balanceroute::emulator {

// EngineService answers what comes to one port, behind which there are one or more ranks.
//   Routes   those of a server of its kind: what generates, what answers at once (side_answers.hpp), models, health,
//            version, metrics.
//            /emulator/stats, state, steps and reset speak of the whole fleet on every port; /emulator/faults and
//            restart of this engine.
//   Threads  only on the fleet's thread, but for attach().
class EngineService : public Reporter {
 public:
  EngineService(Fleet& fleet, std::vector<EngineIdentity> ranks);

  // The server that calls handle(), once its port is known; before the fleet's thread runs.
  void attach(net::HttpServer& server, std::uint16_t port, std::uint16_t bootstrap_port);

  boost::asio::awaitable<void> handle(net::HttpExchange& exchange);

  [[nodiscard]] const FaultPlan& faults() const override { return faults_; }
  [[nodiscard]] std::int64_t sequences() const override;
  void append_state(std::vector<std::string>& ranks) const override;
  [[nodiscard]] const std::vector<EngineIdentity>& ranks() const { return ranks_; }

 protected:
  // Counts a request as aborted, and its client as gone, unless it was settled before.
  class Settlement {
   public:
    Settlement(EngineService& service, net::HttpExchange& exchange, std::size_t rank, std::size_t sequences)
        : service_{service}, exchange_{exchange}, rank_{rank}, sequences_{sequences} {}
    ~Settlement();
    Settlement(const Settlement&) = delete;
    Settlement& operator=(const Settlement&) = delete;
    void settle() { settled_ = true; }

   private:
    EngineService& service_;
    net::HttpExchange& exchange_;
    std::size_t rank_;
    std::size_t sequences_;
    bool settled_ = false;
  };

  virtual boost::asio::awaitable<void> generate(Api api, net::HttpExchange& exchange, std::optional<Fault> fault) = 0;
  [[nodiscard]] virtual RankFigures figures(std::size_t rank) const = 0;
  virtual void note_client_close() {}
  // A restart loses all counters of the engines.
  virtual void forget_counters() = 0;

  [[nodiscard]] std::expected<GenerationRequest, ApiError> accept(Api api, const net::HttpRequest& request) const;
  // The length of each answer, whatever `request` has as its limit.
  [[nodiscard]] std::expected<std::vector<AnswerLength>, ApiError> lengths_of(const GenerationRequest& request);
  // The rank that a request's header asks for, by vLLM's rules: no integer is no wish.
  [[nodiscard]] std::expected<std::optional<std::size_t>, ApiError> rank_by_header(
      const net::HttpRequest& request) const;
  // A wish for a rank by number; refused when there is none such.
  [[nodiscard]] std::expected<std::size_t, ApiError> checked_rank(std::int64_t wanted) const;
  // As engines balance by themselves: the least of 4 * waiting + running, the lowest of equals.
  [[nodiscard]] std::size_t least_busy_rank() const;
  [[nodiscard]] std::string request_id(const net::HttpRequest& request);
  [[nodiscard]] std::unique_ptr<AnswerWriter> writer_of(const GenerationRequest& request, std::string_view id) const;
  boost::asio::awaitable<void> sleep(net::Duration time);
  boost::asio::awaitable<void> wait_for_client_to_leave();

  Fleet& fleet_;
  std::vector<FinishedCounters> finished_;  // by rank

 private:
  using Handler = boost::asio::awaitable<void> (EngineService::*)(net::HttpExchange&);
  struct Route {
    std::string_view method;
    std::string_view path;
    Handler handler;
  };
  static const Route kRoutes[];

  boost::asio::awaitable<void> route(net::HttpExchange& exchange, std::optional<Fault> fault);
  boost::asio::awaitable<void> answer_aside(net::HttpExchange& exchange);
  // False when the fault has ended the request.
  boost::asio::awaitable<bool> meet(const Fault& fault, net::HttpExchange& exchange);
  boost::asio::awaitable<void> fail(int status, net::HttpExchange& exchange);
  boost::asio::awaitable<void> garbage(net::HttpExchange& exchange);
  boost::asio::awaitable<void> models(net::HttpExchange& exchange);
  boost::asio::awaitable<void> health(net::HttpExchange& exchange);
  boost::asio::awaitable<void> version(net::HttpExchange& exchange);
  boost::asio::awaitable<void> metrics(net::HttpExchange& exchange);
  boost::asio::awaitable<void> stats(net::HttpExchange& exchange);
  boost::asio::awaitable<void> state(net::HttpExchange& exchange);
  boost::asio::awaitable<void> steps(net::HttpExchange& exchange);
  boost::asio::awaitable<void> reset(net::HttpExchange& exchange);
  boost::asio::awaitable<void> arm_fault(net::HttpExchange& exchange);
  boost::asio::awaitable<void> clear_faults(net::HttpExchange& exchange);
  boost::asio::awaitable<void> restart(net::HttpExchange& exchange);

  void begin_anew(net::Duration down);
  void come_up();
  void name_engines();

  std::vector<EngineIdentity> ranks_;
  LengthLaw law_;
  Random random_;
  FaultPlan faults_;
  net::HttpServer* server_ = nullptr;
  net::Timer up_;
  std::int64_t incarnation_ = 0;
};

// Answers of every service.
[[nodiscard]] net::HttpResponse error_response(const ApiError& error, Api api = Api::chat);
[[nodiscard]] net::HttpResponse stream_head();
[[nodiscard]] std::int64_t unix_seconds();

}  // namespace balanceroute::emulator
