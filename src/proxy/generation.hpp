// generation.hpp - the life of one chat or text completion, response or message: read, prefill, place, send, relay,
// release.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/server.hpp"
#include "proxy/background_tasks.hpp"
#include "proxy/callback_board.hpp"
#include "proxy/continuation.hpp"
#include "proxy/decode_answer.hpp"
#include "proxy/event_edit.hpp"
#include "proxy/failure.hpp"
#include "proxy/fleet.hpp"
#include "proxy/leg_pair.hpp"
#include "proxy/live_settings.hpp"
#include "proxy/prefill_leg.hpp"
#include "proxy/request_body.hpp"
#include "proxy/request_history.hpp"
#include "proxy/request_record.hpp"
#include "proxy/retry.hpp"
#include "proxy/serve_params.hpp"
#include "proxy/stream_event.hpp"

namespace balanceroute::proxy {

// What every request needs of the service.
struct ServiceContext {
  const net::Clock& clock;
  net::IoThreads& threads;
  LiveSettings& params;
  telemetry::RouterMetrics& metrics;
  spdlog::logger& log;
  std::vector<std::unique_ptr<Fleet>>& fleets;
  BackgroundTasks& background;
  CallbackBoard& callbacks;
  SpanExporter& spans;
  const std::uint16_t& client_port;  // bound
  RequestHistory& history;

  std::size_t index_of(const net::IoThread& thread) const;
};

// Generation carries one request from its body to the last byte of its answer.
//   Order    the dialect of the fleet says it: a decode leg alone; a prefill leg and then a decode leg; both at once.
//            What waits for a worker is a prefilled request in the second case, an untouched one in the others.
//   Bytes    the body goes on unchanged but for an alias of the model, the wish for a usage event and what the dialect
//            wants; stream events come back as they were, but for the usage event that the client did not ask for.
//   Ends     one final log line and one metric; slots and load are given back at the last token, or when this object
//            ends, whatever happened. An answer that breaks off never looks like a whole one.
//   Threads  the exchange's thread.
class Generation {
 public:
  // `key`: whose request it is, where keys are needed.
  Generation(ServiceContext& service, net::HttpExchange& exchange, GenerationKind kind, const ApiKeyParams* key);

  net::asio::awaitable<void> run();

 private:
  class Relay;
  // What a stage of a request's life ends with: nothing, or why there will be no answer.
  using Stage = net::asio::awaitable<std::optional<Failure>>;

  // generation.cpp: the request as a whole.
  std::optional<Failure> read();
  // What it means that the worker failed, which its health hears of unless the request's own time was over.
  Failure worker_failure(const net::NetError& cause, Phase phase = Phase::first_token);
  Failure not_placed(PlacementError cause, Phase phase) const;
  [[nodiscard]] bool out_of_time() const { return service_.clock.now() >= deadline_; }
  // What reaches into an engine where the client may not, or where the router writes the same itself.
  std::optional<Failure> refused_reach() const;
  Fleet* find_fleet();
  void know_prompt();
  Stage serve();
  // Places the request and sends it, in the order of its dialect, until its answer has begun.
  Stage open();
  Stage place(Tokens prompt);
  net::TimePoint hold_until() const;
  bool is_nobodys(Failure& failure) const;
  net::asio::awaitable<void> fail(Failure failure);

  // generation_retries.cpp: other tries, before anything of an answer has gone out.
  std::optional<Failure> rejected_rank();
  [[nodiscard]] Retry retry_of_answer() const;
  Failure give_up_answer();
  [[nodiscard]] bool may_try_again(Retry retry);
  // Gives the place back, and what a prefill engine holds unless that is kept, and waits a little; false: the client
  // has left.
  net::asio::awaitable<bool> step_back(const Failure& failure, bool keeps_kv);

  // generation_legs.cpp: what is sent, in each order.
  Stage open_prefilled();
  Stage prefill_first();
  Stage decode_prefilled();
  Stage prefill_and_place(Turn first_turn);
  void leave_kv();
  Stage open_decode();
  Stage open_together();
  Stage open_on_callback();
  Stage until_decode_begins(LegPair& pair);
  Stage prefill_on(PrefillId instance);
  net::asio::awaitable<std::expected<PrefillId, Failure>> prefill_instance(Turn turn, std::optional<PrefillId> avoid);
  std::optional<Failure> without_prefill(std::string reason, bool late = false);
  bool kv_was_lost() const;
  Stage decode_dropped();
  Stage find_meeting_point(PrefillId instance);
  void begin_try();
  void wish_for_usage();
  std::string callback_url() const;
  // `engine`: its address, where it is known by now.
  net::HttpRequest leg_request(Leg leg, std::string engine);
  net::HttpRequest prefill_request(PrefillId instance);
  net::HttpRequest decode_request();

  // generation_relay.cpp: the answer.
  net::asio::awaitable<void> relay();
  net::asio::awaitable<void> relay_whole();
  net::asio::awaitable<void> relay_stream();
  net::asio::awaitable<std::optional<Failure>> pass_on(Relay& relay);
  net::asio::awaitable<void> end_stream(std::optional<Failure> failure, bool told);
  Stage go_on_elsewhere();
  // Whether another engine prefills: not responses and messages, which are one leg in every dialect.
  bool hands_over() const;
  ErrorShape error_shape() const;
  void learn(const std::optional<Usage>& usage);
  // What usage has to say of the prompt's cached tokens instead of the worker, where its KV came from elsewhere.
  std::optional<CachedPrompt> cached_prompt() const;
  void decode_has_begun();
  // Whether another worker can go on with the answer if this one gives it up.
  bool may_go_on() const { return fleet_->dialect().gives_answers_up() && can_go_on(body_, kind_); }

  // An estimate, of one prompt; exact for token ids.
  Tokens prompt_size() const;
  void forget_body();
  // Of so many tokens in all answers, those of one.
  std::int64_t tokens_each(std::int64_t tokens) const { return (tokens + body_.sequences - 1) / body_.sequences; }
  // Never beyond the request's whole time.
  net::TimePoint after(double milliseconds) const;
  net::IoThread& thread() { return exchange_.thread(); }

  ServiceContext& service_;
  net::HttpExchange& exchange_;
  GenerationKind kind_;
  const ApiKeyParams* key_;
  std::size_t thread_index_;
  RequestRecord record_;
  net::TimePoint deadline_ = net::kNever;
  GenerationBody body_;
  Fleet* fleet_ = nullptr;
  SharedClaim claim_ = std::make_shared<std::optional<PrefillClaim>>();
  std::optional<Placement> placement_;
  WorkerId worker_;
  std::vector<WorkerId> failed_workers_;
  std::int64_t tries_again_ = 0;
  bool broke_a_worker_ = false;
  Tokens placed_prompt_{0};
  Handover handover_;
  // Of the try: what the prefill engine said of the prompt, or will have said.
  std::optional<Usage> prefilled_;
  std::shared_ptr<LegPair> legs_;
  std::optional<DecodeAnswer> answer_;
  UsageWish usage_wish_ = UsageWish::None;
  Continuation so_far_;                       // of an answer that was given up
  std::optional<CachedPrompt> first_cached_;  // of its first worker
};

}  // namespace balanceroute::proxy
