#include "emulator/decode_service.hpp"

#include <utility>

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;

// Some sequences more while it lives.
class Counted {
 public:
  Counted(std::int64_t& count, std::int64_t by) : count_{count}, by_{by} { count_ += by_; }
  ~Counted() { count_ -= by_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::int64_t& count_;
  std::int64_t by_;
};

AnswerDelivery delivery_of(const EmulatorParams& params, const std::optional<Fault>& fault, net::HttpExchange* stream) {
  AnswerDelivery delivery{.stream = stream,
                          .stream_interval = params.stream_interval,
                          .cached_by_prefill = params.dialect_kind() == DialectKind::sglang};
  const bool loses_kv = asks_for(fault, FaultKind::kv_loss) && fault->number;
  if (asks_for(fault, FaultKind::die_mid_stream) || (loses_kv && stream != nullptr)) {
    delivery.die_after_events = std::max<std::int64_t>(1, fault->number.value_or(1));
  }
  if (asks_for(fault, FaultKind::stall)) delivery.stall_after_events = fault->number;
  return delivery;
}

}  // namespace

DecodeService::DecodeService(Fleet& fleet, std::vector<EngineIdentity> ranks)
    : EngineService{fleet, std::move(ranks)},
      group_{fleet.group(this->ranks().front().engine)},
      first_rank_{this->ranks().front().rank},
      transferring_(this->ranks().size()) {}

asio::awaitable<void> DecodeService::generate(Api api, net::HttpExchange& exchange, std::optional<Fault> fault) {
  const auto& http = exchange.request();
  auto request = accept(api, http);
  if (!request) {
    co_await exchange.respond(error_response(request.error(), api));
    co_return;
  }
  const auto rank = choose_rank(http, *request);
  if (!rank) {
    co_await exchange.respond(error_response(rank.error(), api));
    co_return;
  }
  auto lengths = lengths_of(*request);
  if (!lengths) {
    co_await exchange.respond(error_response(lengths.error(), api));
    co_return;
  }
  Settlement settlement{*this, exchange, *rank, lengths->size()};
  const auto id = request_id(http);
  const Leg leg{.request = *request,
                .engine = ranks()[*rank],
                .request_id = id,
                .body = http.body,
                .lose_kv = asks_for(fault, FaultKind::kv_loss) && !fault->number};
  const auto computed = co_await obtain_kv(*rank, leg);
  if (!computed) {
    co_await fail_without_kv(exchange, *request, id, computed.error());
    co_return;
  }
  const bool streamed = request->stream;
  const auto sequences = lengths->size();
  if (streamed) exchange.start(stream_head());
  auto writer = writer_of(*request, id);
  Answer answer{fleet_.thread(), *std::move(request), *std::move(lengths), std::move(writer),
                delivery_of(fleet_.params(), fault, streamed ? &exchange : nullptr)};
  exchange.request().body = {};  // long prompts are not kept while their answers run
  answer.start(group_, first_rank_ + *rank, RequestId{std::exchange(next_sequence_, next_sequence_ + sequences)},
               *computed);
  const auto ended = co_await answer.done().wait();
  if (ended != net::WaitResult::Set) co_return;
  if (asks_for(fault, FaultKind::kv_loss) && fault->number) {
    co_await break_off(api, exchange, answer);
    co_return;
  }
  if (answer.died()) co_return;
  for (const auto reason : answer.finish_reasons()) finished_[*rank].count(reason);
  settlement.settle();
  co_await deliver(exchange, answer, fault);
}

std::expected<std::size_t, ApiError> DecodeService::choose_rank(const net::HttpRequest& http,
                                                                const GenerationRequest& request) const {
  const auto wanted = rank_by_header(http);
  if (!wanted) return std::unexpected{wanted.error()};
  if (*wanted) return **wanted;
  if (fleet_.params().dialect_kind() == DialectKind::sglang && request.transfer.routed_dp_rank) {
    return checked_rank(*request.transfer.routed_dp_rank);
  }
  return least_busy_rank();
}

asio::awaitable<std::expected<bool, ApiError>> DecodeService::obtain_kv(std::size_t rank, const Leg& leg) {
  const Counted waits{transferring_[rank], std::ssize(leg.request.prompts) * leg.request.answers_per_prompt};
  auto received = co_await fleet_.dialect().receive(leg);
  if (!received) co_return std::unexpected{received.error()};
  if (!received->transferred) co_return false;
  Tokens tokens{0};
  for (const Prompt& prompt : leg.request.prompts) tokens += prompt.tokens;
  const auto time = fleet_.params().transfer_time.duration(tokens);
  if (time > net::Duration::zero()) co_await sleep(time);
  fleet_.exchange().counters().transferred += std::ssize(leg.request.prompts);
  co_return true;
}

// As vLLM does: of a stream the status, and in a chat the first event, have gone out before the KV is asked for.
asio::awaitable<void> DecodeService::fail_without_kv(net::HttpExchange& exchange, const GenerationRequest& request,
                                                     std::string_view id, const ApiError& error) {
  const bool is_sglang = fleet_.params().dialect_kind() == DialectKind::sglang;
  if (!request.stream || is_sglang || error.status < 500) {
    co_await exchange.respond(error_response(error, request.api));
    co_return;
  }
  const auto writer = writer_of(request, id);
  std::string events;
  writer->append_opening(events, 0, request.prompts.front(), nullptr);
  writer->append_failure(events, error);
  exchange.start(stream_head());
  exchange.write(events);
  co_await exchange.finish();
}

// As an engine that finds KV of a running sequence lost: the status has gone out, so the error is an event.
asio::awaitable<void> DecodeService::break_off(Api api, net::HttpExchange& exchange, const Answer& answer) {
  const ApiError error{
      .status = 500, .type = "InternalServerError", .message = "KV of the request was lost", .param = ""};
  if (!exchange.started()) {
    co_await exchange.respond(error_response(error, api));
    co_return;
  }
  exchange.write(answer.failure(error));
  co_await exchange.finish();
}

// What is left of an answer that is complete.
asio::awaitable<void> DecodeService::deliver(net::HttpExchange& exchange, const Answer& answer,
                                             std::optional<Fault> fault) {
  if (asks_for(fault, FaultKind::stall)) {
    co_await wait_for_client_to_leave();
    co_return;
  }
  if (exchange.started()) {
    exchange.write(answer.tail());
    co_await exchange.finish();
    co_return;
  }
  const auto whole = answer.whole();
  if (asks_for(fault, FaultKind::die_mid_stream)) {
    net::HttpResponse head;
    head.headers.add("Content-Type", "application/json");
    exchange.start(head);
    exchange.write(std::string_view{whole}.substr(0, whole.size() / 2));
    co_await exchange.flushed();
    co_return;
  }
  co_await exchange.respond(net::json_response(200, whole));
}

RankFigures DecodeService::figures(std::size_t rank) const {
  const auto in_group = first_rank_ + rank;
  const auto& model = group_.model();
  const auto& counters = group_.counters(in_group);
  return {.engine = static_cast<std::size_t>(fleet_.params().start_rank) + in_group,
          .running = model.active(in_group),
          .waiting = model.queued(in_group) + transferring_[rank],
          .kv_used = model.load(in_group),
          .kv_capacity = group_.kv_capacity(),
          .preemptions = counters.preemptions,
          .prompt_tokens = counters.prompt_tokens,
          .transferred_prompt_tokens = counters.prompt_tokens - counters.computed_prompt_tokens,
          .generated_tokens = counters.generated_tokens,
          .finished = finished_[rank],
          .step_tokens = counters.step_tokens};
}

void DecodeService::forget_counters() {
  for (std::size_t rank = 0; rank < ranks().size(); ++rank) group_.forget_counters(first_rank_ + rank);
}

}  // namespace balanceroute::emulator
