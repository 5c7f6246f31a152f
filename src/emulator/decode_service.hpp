// decode_service.hpp - generation on decode ranks, and on ranks that prefill by themselves.
#pragma once

#include "emulator/answer.hpp"
#include "emulator/engine_service.hpp"

namespace balanceroute::emulator {

// DecodeService puts requests into the slots of some ranks of one group.
class DecodeService final : public EngineService {
 public:
  DecodeService(Fleet& fleet, std::vector<EngineIdentity> ranks);

 private:
  boost::asio::awaitable<void> generate(Api api, net::HttpExchange& exchange, std::optional<Fault> fault) override;
  [[nodiscard]] RankFigures figures(std::size_t rank) const override;
  void note_client_close() override { group_.note_client_close(); }
  void forget_counters() override;

  [[nodiscard]] std::expected<std::size_t, ApiError> choose_rank(const net::HttpRequest& http,
                                                                 const GenerationRequest& request) const;
  // Waits for the prompts' KV; true when it is there, false when the rank has to compute it.
  boost::asio::awaitable<std::expected<bool, ApiError>> obtain_kv(std::size_t rank, const Leg& leg);
  boost::asio::awaitable<void> fail_without_kv(net::HttpExchange& exchange, const GenerationRequest& request,
                                               std::string_view id, const ApiError& error);
  boost::asio::awaitable<void> break_off(Api api, net::HttpExchange& exchange, const Answer& answer);
  boost::asio::awaitable<void> deliver(net::HttpExchange& exchange, const Answer& answer, std::optional<Fault> fault);

  SteppingGroup& group_;
  std::size_t first_rank_;                  // of the group, that is ranks()[0]
  std::vector<std::int64_t> transferring_;  // sequences that wait for their KV, by rank
  std::uint64_t next_sequence_ = 0;
};

}  // namespace balanceroute::emulator
