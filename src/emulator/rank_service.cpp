#include "emulator/rank_service.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "emulator/answer.hpp"

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

net::HttpResponse error_response(const ApiError& error) {
  return net::json_response(error.status, to_json(error));
}

net::HttpResponse stream_head() {
  net::HttpResponse head;
  head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
  return head;
}

}  // namespace

const RankService::Route RankService::kRoutes[] = {
    {"POST", "/v1/chat/completions", &RankService::chat}, {"POST", "/v1/completions", &RankService::completions},
    {"GET", "/v1/models", &RankService::models},          {"GET", "/health", &RankService::health},
    {"GET", "/version", &RankService::version},           {"GET", "/metrics", &RankService::metrics},
    {"GET", "/emulator/stats", &RankService::stats},      {"POST", "/emulator/reset", &RankService::reset},
};

RankService::RankService(Fleet& fleet, std::size_t group, std::size_t rank, const EmulatorParams& params)
    : fleet_{fleet},
      group_{fleet.group(group)},
      rank_{rank},
      model_{params.model},
      law_{Tokens{params.max_model_len}, params.mean_output_tokens},
      random_{mix_bits(static_cast<std::uint64_t>(params.seed)) + group * static_cast<std::size_t>(params.ranks) +
              rank} {}

asio::awaitable<void> RankService::handle(net::HttpExchange& exchange) {
  ApiError problem{.status = 404, .type = "NotFoundError", .message = "Not Found"};
  for (const auto& route : kRoutes) {
    if (exchange.request().path() != route.path) continue;
    if (exchange.request().method == route.method) {
      co_await (this->*route.handler)(exchange);
      co_return;
    }
    problem = {.status = 405, .type = "MethodNotAllowedError", .message = "Method Not Allowed"};
  }
  co_await exchange.respond(error_response(problem));
}

asio::awaitable<void> RankService::chat(net::HttpExchange& exchange) {
  return generate(Api::chat, exchange);
}

asio::awaitable<void> RankService::completions(net::HttpExchange& exchange) {
  return generate(Api::completions, exchange);
}

asio::awaitable<void> RankService::generate(Api api, net::HttpExchange& exchange) {
  auto request = accept(api, exchange.request());
  if (!request) {
    co_await exchange.respond(error_response(request.error()));
    co_return;
  }
  auto lengths = lengths_of(*request);
  if (!lengths) {
    co_await exchange.respond(error_response(lengths.error()));
    co_return;
  }
  const bool streamed = request->stream;
  const auto sequences = lengths->size();
  if (streamed) exchange.start(stream_head());
  Answer answer{fleet_.thread(), *std::move(request), *std::move(lengths),
                AnswerFormat{api, request_id(exchange.request()), unix_seconds(), model_},
                streamed ? &exchange : nullptr};
  exchange.request().body = {};  // long prompts are not kept while their answers run
  answer.start(group_, rank_, RequestId{std::exchange(next_sequence_, next_sequence_ + sequences)});
  const auto ended = co_await answer.done().wait();
  if (ended != net::WaitResult::Set) {
    finished_.abort += static_cast<std::int64_t>(sequences);
    if (exchange.client_left()) group_.note_client_close();
    co_return;
  }
  count_finished(answer.lengths());
  if (streamed) {
    exchange.write(answer.tail());
    co_await exchange.finish();
  } else {
    co_await exchange.respond(net::json_response(200, answer.whole()));
  }
}

std::expected<GenerationRequest, ApiError> RankService::accept(Api api, const net::HttpRequest& request) const {
  auto parsed = parse_generation_request(api, request.body);
  if (parsed && !parsed->model.empty() && parsed->model != model_) {
    return std::unexpected{ApiError{.status = 404,
                                    .type = "NotFoundError",
                                    .message = "The model `" + parsed->model + "` does not exist.",
                                    .param = "model"}};
  }
  return parsed;
}

std::expected<std::vector<AnswerLength>, ApiError> RankService::lengths_of(const GenerationRequest& request) {
  std::vector<AnswerLength> lengths;
  for (const Tokens prompt : request.prompts) {
    for (std::int64_t i = 0; i < request.answers_per_prompt; ++i) {
      const auto length = choose_length(request, prompt, law_, random_);
      if (!length) return std::unexpected{length.error()};
      lengths.push_back(*length);
    }
  }
  return lengths;
}

std::string RankService::request_id(const net::HttpRequest& request) {
  if (const auto given = request.headers.find("X-Request-Id")) return std::string{*given};
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 32; ++i) id += kHex[random_.below(16)];
  return id;
}

void RankService::count_finished(const std::vector<AnswerLength>& lengths) {
  for (const auto& length : lengths) ++(length.finish_reason == "stop" ? finished_.stop : finished_.length);
}

asio::awaitable<void> RankService::models(net::HttpExchange& exchange) {
  const nlohmann::ordered_json body{{"object", "list"},
                                    {"data",
                                     {{{"id", model_},
                                       {"object", "model"},
                                       {"created", unix_seconds()},
                                       {"owned_by", "balanceroute"},
                                       {"root", model_},
                                       {"parent", nullptr},
                                       {"max_model_len", law_.max_model_len.count()}}}}};
  co_await exchange.respond(net::json_response(200, body.dump()));
}

asio::awaitable<void> RankService::health(net::HttpExchange& exchange) {
  co_await exchange.respond(net::text_response(200, ""));
}

asio::awaitable<void> RankService::version(net::HttpExchange& exchange) {
  co_await exchange.respond(net::json_response(200, R"({"version":"0.11.0+balanceroute.emulator"})"));
}

asio::awaitable<void> RankService::metrics(net::HttpExchange& exchange) {
  co_await exchange.respond(
      net::text_response(200, rank_metrics(group_, rank_, model_, law_.max_model_len, finished_)));
}

asio::awaitable<void> RankService::stats(net::HttpExchange& exchange) {
  co_await exchange.respond(net::json_response(200, fleet_.stats_json()));
}

asio::awaitable<void> RankService::reset(net::HttpExchange& exchange) {
  fleet_.reset_measures();
  co_await exchange.respond(net::json_response(200, "{}"));
}

}  // namespace balanceroute::emulator
