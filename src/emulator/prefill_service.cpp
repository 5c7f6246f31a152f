#include "emulator/prefill_service.hpp"

#include <utility>

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;

// The first token of each answer, and why it ends there.
std::vector<FinishedChoice> first_tokens(const GenerationRequest& request, const std::vector<AnswerLength>& lengths) {
  std::vector<FinishedChoice> choices;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Prompt& prompt = request.prompt_of(i);
    const Tokens number = prompt.answered + Tokens{1};
    choices.push_back({.tokens = {.first = number,
                                  .last = number,
                                  .opens = true,
                                  .opens_call = true,
                                  .finish_reason = lengths[i].output == Tokens{1} ? lengths[i].finish_reason : "length",
                                  .prompt = &prompt}});
  }
  return choices;
}

Usage usage_of(const GenerationRequest& request, std::size_t choices) {
  Usage usage{.prompt = Tokens{0}, .completion = Tokens{static_cast<std::int64_t>(choices)}};
  for (const Prompt& prompt : request.prompts) usage.prompt += prompt.tokens;
  if (request.cached) {
    usage.cached = Tokens{0};
    for (const Prompt& prompt : request.prompts) *usage.cached += request.cached_of(prompt.tokens);
  }
  return usage;
}

asio::awaitable<void> stream(net::HttpExchange& exchange, AnswerWriter& writer,
                             const std::vector<FinishedChoice>& choices, const Usage& usage) {
  std::string events;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    writer.append_opening(events, i, *choices[i].tokens.prompt, nullptr);
    writer.append_piece(events, i, choices[i].tokens, nullptr);
  }
  writer.append_end(events, choices, usage, false);
  exchange.start(stream_head());
  exchange.write(events);
  co_await exchange.finish();
}

}  // namespace

asio::awaitable<void> PrefillService::generate(Api api, net::HttpExchange& exchange, std::optional<Fault> fault) {
  const auto& http = exchange.request();
  const auto request = accept(api, http);
  if (!request) {
    co_await exchange.respond(error_response(request.error(), api));
    co_return;
  }
  const auto rank = choose_rank(http, *request);
  if (!rank) {
    co_await exchange.respond(error_response(rank.error(), api));
    co_return;
  }
  const Leg leg{.request = *request,
                .engine = ranks()[*rank],
                .request_id = request_id(http),
                .body = http.body,
                .lose_kv = asks_for(fault, FaultKind::kv_loss)};
  if (const auto right = fleet_.dialect().check_prefill(leg); !right) {
    co_await exchange.respond(error_response(right.error(), api));
    co_return;
  }
  const auto lengths = lengths_of(*request);
  if (!lengths) {
    co_await exchange.respond(error_response(lengths.error(), api));
    co_return;
  }
  Settlement settlement{*this, exchange, *rank, lengths->size()};
  auto prompts = co_await compute(*rank, *request);
  const auto choices = first_tokens(*request, *lengths);
  // Some engines drop the KV of an answer that ends by itself with its first token: nothing would be left to decode.
  std::expected<std::string, ApiError> params{std::string{}};
  if (fleet_.dialect().keeps_kv(choices.front().tokens.finish_reason)) {
    params = co_await fleet_.dialect().prefilled(leg, std::move(prompts));
  }
  prompts.clear();
  if (!params) {
    co_await exchange.respond(error_response(params.error(), api));
    co_return;
  }
  for (const auto& choice : choices) finished_[*rank].count(choice.tokens.finish_reason);
  settlement.settle();
  const auto writer = writer_of(*request, leg.request_id);
  const Usage usage = usage_of(*request, choices.size());
  if (request->stream) {
    co_await stream(exchange, *writer, choices, usage);
    co_return;
  }
  co_await exchange.respond(net::json_response(200, writer->whole(choices, usage, *params)));
}

std::expected<std::size_t, ApiError> PrefillService::choose_rank(const net::HttpRequest& http,
                                                                 const GenerationRequest& request) const {
  const auto wanted = rank_by_header(http);
  if (!wanted) return std::unexpected{wanted.error()};
  if (*wanted) return **wanted;
  const auto told = fleet_.dialect().prefill_rank(request, std::ssize(ranks()));
  return told ? checked_rank(*told) : least_busy_rank();
}

PrefillEngine& PrefillService::engine(std::size_t rank) const {
  return fleet_.prefill(ranks()[rank].engine, rank);
}

asio::awaitable<ComputedPrompts> PrefillService::compute(std::size_t rank, const GenerationRequest& request) {
  ComputedPrompts prompts;
  for (const Prompt& prompt : request.prompts) prompts.push_back(engine(rank).submit(prompt.tokens));
  for (const auto& prompt : prompts) co_await prompt->computed().wait();
  co_return prompts;
}

RankFigures PrefillService::figures(std::size_t rank) const {
  const auto& prefill = engine(rank);
  return {.engine = rank,
          .running = prefill.running(),
          .waiting = prefill.waiting(),
          .kv_used = prefill.held(),
          .kv_capacity = prefill.kv_capacity(),
          .prompt_tokens = prefill.computed_tokens(),
          .generated_tokens = prefill.computed_prompts(),
          .finished = finished_[rank]};
}

}  // namespace balanceroute::emulator
