// dialect.hpp - how prefill and decode engines of one kind hand KV over, and what they want of the router for it.
//
// Leaves out HTTP and time of computing: services call it once a request has been read (Dialect::check_prefill), once a
// prompt is computed (prefilled) and before a decode rank takes a request (receive).
// Source: the engines' connectors; docs/emulator.md lists what each one checks.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/emulator_params.hpp"
#include "emulator/engine_identity.hpp"
#include "emulator/generation_request.hpp"
#include "emulator/kv_exchange.hpp"
#include "net/io_thread.hpp"
#include "net/task_group.hpp"

namespace balanceroute::emulator {

// One request at one rank, as a dialect sees it.
struct Leg {
  const GenerationRequest& request;
  const EngineIdentity& engine;
  std::string request_id;  // basis of the answer's id
  std::string_view body;   // as it came
  bool lose_kv = false;    // a fault on demand
};

// The prompts of a request at its prefill rank.
using ComputedPrompts = std::vector<std::unique_ptr<PrefillEngine::Prompt>>;

// Where the KV of a request's prompts is, before a decode rank takes it.
struct Received {
  // What arrived, kept by its prefill engine until the transfer is over; empty: computed here.
  std::vector<std::unique_ptr<PrefillEngine::Prompt>> kv;
  bool transferred = false;
};

// Dialect is one kind of engine's way of handing KV over.
//   Faults   a request that no right router sends is refused, and counted as a relay fault.
//   Threads  only on the fleet's thread.
class Dialect {
 public:
  virtual ~Dialect() = default;

  // Whether a prefill engine may take the request.
  [[nodiscard]] virtual std::expected<void, ApiError> check_prefill(const Leg& leg) = 0;
  // The rank of a prefill engine that the request itself says; nothing: the engine chooses.
  [[nodiscard]] virtual std::optional<std::int64_t> prefill_rank(const GenerationRequest& request,
                                                                 std::int64_t ranks) const;
  // Whether the KV of a prompt gets to a decode engine whose prefill answer ended for that reason.
  [[nodiscard]] virtual bool keeps_kv(std::string_view finish_reason) const { return finish_reason == "length"; }
  // Offers the KV of computed prompts. The result is what the answer tells as kv_transfer_params, or is empty.
  virtual boost::asio::awaitable<std::expected<std::string, ApiError>> prefilled(const Leg& leg,
                                                                                 ComputedPrompts prompts) = 0;
  // Gets the KV of a decode request, or finds that it has to be computed here.
  virtual boost::asio::awaitable<std::expected<Received, ApiError>> receive(const Leg& leg) = 0;
};

[[nodiscard]] std::unique_ptr<Dialect> make_dialect(const EmulatorParams& params, net::IoThread& thread,
                                                    net::TaskGroup& tasks, KvExchange& exchange);

// Parts that dialects share.

[[nodiscard]] ApiError relay_fault(KvExchange& exchange, std::string message, std::string param);
// A member of the text of an object: its string, or nothing.
[[nodiscard]] std::optional<std::string> string_member(const std::string& object, std::string_view name);
[[nodiscard]] bool flag_member(const std::string& object, std::string_view name);
// The six-key prefill contract of vLLM's connectors: not streamed, one token, one answer, do_remote_decode.
[[nodiscard]] std::expected<void, ApiError> check_vllm_prefill(const Leg& leg, KvExchange& exchange);

// KvLoss decides what a decode rank does about KV that it cannot have, by kv_load_failure_policy.
class KvLoss {
 public:
  KvLoss(bool recompute, KvExchange& exchange) : recompute_{recompute}, exchange_{exchange} {}

  // The request is wrong or late: a relay fault, and then failure or recomputation.
  [[nodiscard]] std::expected<Received, ApiError> faulty_relay(std::string message) const;
  // The transfer broke for no fault of the router.
  [[nodiscard]] std::expected<Received, ApiError> broken_transfer() const;
  [[nodiscard]] bool recompute() const { return recompute_; }

 private:
  [[nodiscard]] std::expected<Received, ApiError> decide(std::string message) const;

  bool recompute_;
  KvExchange& exchange_;
};

}  // namespace balanceroute::emulator
