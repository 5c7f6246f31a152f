// prefill_service.hpp - what prefill engines answer: prompts computed, one token, and where their KV is.
#pragma once

#include "emulator/engine_service.hpp"

namespace balanceroute::emulator {

// PrefillService computes the prompts of requests that are for prefill; others are refused.
class PrefillService final : public EngineService {
 public:
  using EngineService::EngineService;

 private:
  boost::asio::awaitable<void> generate(Api api, net::HttpExchange& exchange, std::optional<Fault> fault) override;
  [[nodiscard]] RankFigures figures(std::size_t rank) const override;
  void forget_counters() override {}

  [[nodiscard]] std::expected<std::size_t, ApiError> choose_rank(const net::HttpRequest& http,
                                                                 const GenerationRequest& request) const;
  [[nodiscard]] PrefillEngine& engine(std::size_t rank) const;
  boost::asio::awaitable<ComputedPrompts> compute(std::size_t rank, const GenerationRequest& request);
};

}  // namespace balanceroute::emulator
