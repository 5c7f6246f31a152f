// dialect.hpp - what engines of one kind want of a router so that a prompt's KV comes from a prefill engine.
//
// A dialect says in which order the two legs of a request go out and what each leg's body says beside the client's own
// words; sending is the generation's business. One dialect serves all requests of a fleet.
// Source: engine-protocols 1 and 2.4; docs/dialects.md tells users.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/client.hpp"
#include "proxy/prefill_params.hpp"
#include "proxy/request_body.hpp"

namespace balanceroute::proxy {

// One data-parallel rank of a prefill engine.
struct PrefillPeer {
  net::Endpoint endpoint;
  std::int32_t rank = 0;   // among those behind the endpoint
  std::int32_t ranks = 1;  // behind the endpoint
  std::uint16_t bootstrap_port = 0;
};

// What a stream is asked to say of its tokens, beside what its client asks.
enum class UsageWish : std::uint8_t { None, AtTheEnd, Continuous };

// What one try of a request knows, beside its body, when a leg's body is made.
struct Handover {
  std::string request_id;  // of the try, on both legs
  UsageWish usage = UsageWish::None;
  const PrefillPeer* prefill = nullptr;
  std::string object;               // kv_transfer_params as the engine wrote them
  std::string batch;                // the same of several prompts, by id
  std::string engine_id;            // of the prefill rank
  std::string callback;             // where a decode engine calls the router
  std::vector<std::int64_t> rooms;  // one for each prompt
};

// In which order the legs go out.
enum class LegOrder : std::uint8_t {
  DecodeOnly,    // no prefill leg
  PrefillFirst,  // the prefill answer tells what the decode request says
  Together,      // engines meet by a name that the router makes up
  OnCallback     // the decode engine asks for the prefill
};

// Dialect is one kind of engine's way of handing KV over, for the router.
//   Threads  any; it has no state.
class Dialect {
 public:
  virtual ~Dialect() = default;

  [[nodiscard]] virtual LegOrder order() const = 0;
  // Whether the KV of all its prompts can be handed over; what cannot goes to a decode worker alone.
  [[nodiscard]] virtual bool hands_over(const GenerationBody& body) const = 0;
  // Why such a request cannot be served by these engines at all.
  [[nodiscard]] virtual std::optional<BodyError> refusal(const GenerationBody& /*body*/,
                                                         GenerationKind /*kind*/) const {
    return std::nullopt;
  }
  // Whether a decode worker can do without a prefill leg.
  [[nodiscard]] virtual bool decodes_alone() const { return true; }
  // Whether a decode engine may end an answer for want of KV space and have it gone on with (engine-protocols 1.7).
  [[nodiscard]] virtual bool gives_answers_up() const { return false; }
  // Whether the KV can be had of a prompt whose prefill answer ended for that reason; empty: it named none. Asked where
  // legs go out together.
  [[nodiscard]] virtual bool keeps_kv(std::string_view /*finish_reason*/) const { return true; }
  // Whether usage of the decode engine tells what the prefill engine had cached of the prompt.
  [[nodiscard]] virtual bool tells_cached_of_prefill() const { return false; }
  // Whether the decode leg names the prefill rank's engine id, which its bootstrap server tells.
  [[nodiscard]] virtual bool needs_engine_id() const { return false; }
  // What each leg's body says beside the client's words.
  virtual void edit_prefill(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const = 0;
  virtual void edit_decode(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const = 0;
};

[[nodiscard]] std::unique_ptr<Dialect> make_dialect(DialectKind kind);

// Whether the only token of a prefill answer may be the end of the whole answer, which makes some engines drop the KV.
enum class FirstToken : std::uint8_t { MayBeLast, IsNotLast };

// The client's request as one for the prompt's KV only: one token, one answer, in one piece.
void ask_for_one_token(BodyEdit& edit, FirstToken first);

}  // namespace balanceroute::proxy
