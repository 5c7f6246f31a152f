// rank_service.hpp - the HTTP routes of one emulated rank, as one vLLM server of an external load balancer has them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/random.hpp"
#include "emulator/answer_length.hpp"
#include "emulator/emulator_params.hpp"
#include "emulator/fleet.hpp"
#include "emulator/rank_metrics.hpp"
#include "emulator/stepping_group.hpp"
#include "net/server.hpp"

namespace balanceroute::emulator {

// RankService answers what comes to the port of one rank.
//   Routes   chat and text completions, models, health, version, metrics; /emulator/stats and /emulator/reset speak of
//            the whole fleet on every rank.
//   Threads  only on the fleet's thread.
class RankService {
 public:
  RankService(Fleet& fleet, std::size_t group, std::size_t rank, const EmulatorParams& params);

  boost::asio::awaitable<void> handle(net::HttpExchange& exchange);

 private:
  using Handler = boost::asio::awaitable<void> (RankService::*)(net::HttpExchange&);
  struct Route {
    std::string_view method;
    std::string_view path;
    Handler handler;
  };
  static const Route kRoutes[];

  boost::asio::awaitable<void> chat(net::HttpExchange& exchange);
  boost::asio::awaitable<void> completions(net::HttpExchange& exchange);
  boost::asio::awaitable<void> generate(Api api, net::HttpExchange& exchange);
  boost::asio::awaitable<void> models(net::HttpExchange& exchange);
  boost::asio::awaitable<void> health(net::HttpExchange& exchange);
  boost::asio::awaitable<void> version(net::HttpExchange& exchange);
  boost::asio::awaitable<void> metrics(net::HttpExchange& exchange);
  boost::asio::awaitable<void> stats(net::HttpExchange& exchange);
  boost::asio::awaitable<void> reset(net::HttpExchange& exchange);

  [[nodiscard]] std::expected<GenerationRequest, ApiError> accept(Api api, const net::HttpRequest& request) const;
  [[nodiscard]] std::expected<std::vector<AnswerLength>, ApiError> lengths_of(const GenerationRequest& request);
  [[nodiscard]] std::string request_id(const net::HttpRequest& request);
  void count_finished(const std::vector<AnswerLength>& lengths);

  Fleet& fleet_;
  SteppingGroup& group_;
  std::size_t rank_;
  std::string model_;
  LengthLaw law_;
  Random random_;
  std::uint64_t next_sequence_ = 0;
  FinishedCounters finished_;
};

}  // namespace balanceroute::emulator
