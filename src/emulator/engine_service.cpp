#include "emulator/engine_service.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "emulator/messages_writer.hpp"
#include "emulator/side_answers.hpp"
#include "net/client.hpp"
#include "net/event.hpp"

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kDefaultSlowMs = 1000;
constexpr net::Duration kRetryListening = std::chrono::milliseconds{10};

std::string_view role_name(Role role) {
  switch (role) {
    case Role::aggregated:
      return "aggregated";
    case Role::prefill:
      return "prefill";
    case Role::decode:
      return "decode";
  }
  std::unreachable();
}

ApiError bad_request(std::string message, std::string param) {
  return {.message = std::move(message), .param = std::move(param)};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  return whole ? std::optional{number} : std::nullopt;
}

// A number in the query, as in "group=1&last=10".
std::optional<std::int64_t> query_number(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto part = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (part.starts_with(name) && part.substr(name.size()).starts_with('=')) {
      return whole_number(part.substr(name.size() + 1));
    }
  }
  return std::nullopt;
}

}  // namespace

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

net::HttpResponse error_response(const ApiError& error, Api api) {
  return net::json_response(error.status, api == Api::messages ? messages_error_json(error) : to_json(error));
}

net::HttpResponse stream_head() {
  net::HttpResponse head;
  head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
  return head;
}

const EngineService::Route EngineService::kRoutes[] = {
    {"GET", "/v1/models", &EngineService::models},
    {"GET", "/health", &EngineService::health},
    {"GET", "/version", &EngineService::version},
    {"GET", "/metrics", &EngineService::metrics},
    {"GET", "/emulator/stats", &EngineService::stats},
    {"GET", "/emulator/state", &EngineService::state},
    {"GET", "/emulator/steps", &EngineService::steps},
    {"POST", "/emulator/reset", &EngineService::reset},
    {"POST", "/emulator/faults", &EngineService::arm_fault},
    {"DELETE", "/emulator/faults", &EngineService::clear_faults},
    {"POST", "/emulator/restart", &EngineService::restart},
};

EngineService::Settlement::~Settlement() {
  if (settled_) return;
  service_.finished_[rank_].abort += static_cast<std::int64_t>(sequences_);
  if (exchange_.client_left()) service_.note_client_close();
}

EngineService::EngineService(Fleet& fleet, std::vector<EngineIdentity> ranks)
    : fleet_{fleet},
      finished_(ranks.size()),
      ranks_{std::move(ranks)},
      law_{Tokens{fleet.params().max_model_len}, fleet.params().mean_output_tokens},
      random_{mix_bits(static_cast<std::uint64_t>(fleet.params().seed)) +
              ranks_.front().engine * static_cast<std::size_t>(fleet.params().ranks) + ranks_.front().rank},
      up_{fleet.thread().timers()} {
  name_engines();
  fleet_.add(*this);
}

void EngineService::attach(net::HttpServer& server, std::uint16_t port, std::uint16_t bootstrap_port) {
  server_ = &server;
  for (auto& rank : ranks_) {
    rank.port = port;
    rank.bootstrap_port = bootstrap_port;
  }
}

// Such an id says enough for a person, and is another one in the next life.
void EngineService::name_engines() {
  for (auto& rank : ranks_) {
    rank.engine_id = std::string{role_name(rank.role)} + "-" + std::to_string(rank.engine) + "-" +
                     std::to_string(rank.rank) + "-" + std::to_string(incarnation_) + "-" +
                     std::to_string(random_.below(1'000'000'000));
  }
}

asio::awaitable<void> EngineService::handle(net::HttpExchange& exchange) {
  auto fault = faults_.take(exchange.request());
  if (!fault) {
    const auto problem = bad_request("X-Emulator-Fault: " + fault.error(), "");
    co_await exchange.respond(error_response(problem));
    co_return;
  }
  if (*fault) {
    const bool goes_on = co_await meet(**fault, exchange);
    if (!goes_on) co_return;
  }
  co_await route(exchange, *fault);
}

asio::awaitable<void> EngineService::route(net::HttpExchange& exchange, std::optional<Fault> fault) {
  const auto& request = exchange.request();
  ApiError problem{.status = 404, .type = "NotFoundError", .message = "Not Found"};
  const ApiError wrong_method{.status = 405, .type = "MethodNotAllowedError", .message = "Method Not Allowed"};
  const auto api = api_of(request.path());
  if (api || is_side_path(request.path())) {
    if (request.method == "POST") {
      if (api) {
        co_await generate(*api, exchange, fault);
      } else {
        co_await answer_aside(exchange);
      }
      co_return;
    }
    problem = wrong_method;
  }
  for (const auto& route : kRoutes) {
    if (request.path() != route.path) continue;
    if (request.method == route.method) {
      co_await (this->*route.handler)(exchange);
      co_return;
    }
    problem = wrong_method;
  }
  co_await exchange.respond(error_response(problem));
}

// What happens before a request is looked at. The rest is for those who generate.
asio::awaitable<bool> EngineService::meet(const Fault& fault, net::HttpExchange& exchange) {
  switch (fault.kind) {
    case FaultKind::refuse:
      co_return false;  // the connection is closed without a byte
    case FaultKind::reset:
      exchange.reset();
      co_return false;
    case FaultKind::stall:
      if (fault.number) co_return true;
      co_await wait_for_client_to_leave();
      co_return false;
    case FaultKind::slow:
      co_await sleep(std::chrono::milliseconds{fault.number.value_or(kDefaultSlowMs)});
      co_return true;
    case FaultKind::garbage:
      co_await garbage(exchange);
      co_return false;
    case FaultKind::status:
      co_await fail(static_cast<int>(*fault.number), exchange);
      co_return false;
    case FaultKind::die_mid_stream:
    case FaultKind::kv_loss:
      co_return true;
  }
  std::unreachable();
}

asio::awaitable<void> EngineService::fail(int status, net::HttpExchange& exchange) {
  const ApiError error{.status = status, .type = "EmulatedError", .message = "fault on demand", .param = ""};
  co_await exchange.respond(error_response(error, api_of(exchange.request().path()).value_or(Api::chat)));
}

// Right as HTTP, and nothing that a client of the API can read.
asio::awaitable<void> EngineService::garbage(net::HttpExchange& exchange) {
  exchange.start(stream_head());
  exchange.write("data: {\"id\":\"cmpl-\xff\xfe, \"choices\":[{\n\n<html>502</html>\n\n");
  co_await exchange.finish();
}

asio::awaitable<void> EngineService::sleep(net::Duration time) {
  net::Event never{fleet_.thread()};
  co_await never.wait(fleet_.thread().now() + time);
}

asio::awaitable<void> EngineService::wait_for_client_to_leave() {
  net::Event never{fleet_.thread()};
  co_await never.wait();
}

std::expected<GenerationRequest, ApiError> EngineService::accept(Api api, const net::HttpRequest& request) const {
  auto parsed = parse_generation_request(api, request.body);
  if (parsed && !parsed->model.empty() && parsed->model != fleet_.params().model) {
    return std::unexpected{unknown_model(parsed->model)};
  }
  return parsed;
}

asio::awaitable<void> EngineService::answer_aside(net::HttpExchange& exchange) {
  const auto& request = exchange.request();
  const SideContext context{.model = fleet_.params().model,
                            .id = request_id(request),
                            .created = unix_seconds(),
                            .max_model_len = law_.max_model_len};
  const auto answer = side_answer(request.path(), request.body, context);
  if (!answer) {
    co_await exchange.respond(error_response(answer.error()));
    co_return;
  }
  co_await exchange.respond(net::json_response(200, *answer));
}

std::expected<std::vector<AnswerLength>, ApiError> EngineService::lengths_of(const GenerationRequest& request) {
  std::vector<AnswerLength> lengths;
  for (const Prompt& prompt : request.prompts) {
    for (std::int64_t i = 0; i < request.answers_per_prompt; ++i) {
      const auto length = choose_length(request, prompt, law_, random_);
      if (!length) return std::unexpected{length.error()};
      lengths.push_back(*length);
    }
  }
  return lengths;
}

std::expected<std::optional<std::size_t>, ApiError> EngineService::rank_by_header(
    const net::HttpRequest& request) const {
  const auto header = request.headers.find("X-data-parallel-rank");
  const auto wanted = header ? whole_number(*header) : std::nullopt;
  if (!wanted) return std::optional<std::size_t>{};
  const auto rank = checked_rank(*wanted);
  if (!rank) return std::unexpected{rank.error()};
  return std::optional{*rank};
}

std::expected<std::size_t, ApiError> EngineService::checked_rank(std::int64_t wanted) const {
  if (wanted >= 0 && wanted < std::ssize(ranks_)) return static_cast<std::size_t>(wanted);
  return std::unexpected{bad_request(
      "data_parallel_rank " + std::to_string(wanted) + " is out of range [0, " + std::to_string(ranks_.size()) + ").",
      "data_parallel_rank")};
}

std::size_t EngineService::least_busy_rank() const {
  constexpr std::int64_t kWaitingWeight = 4;
  std::size_t best = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto now = figures(rank);
    const auto score = kWaitingWeight * now.waiting + now.running;
    if (score >= least) continue;
    least = score;
    best = rank;
  }
  return best;
}

std::string EngineService::request_id(const net::HttpRequest& request) {
  if (const auto given = request.headers.find("X-Request-Id")) return std::string{*given};
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 32; ++i) id += kHex[random_.below(16)];
  return id;
}

std::unique_ptr<AnswerWriter> EngineService::writer_of(const GenerationRequest& request, std::string_view id) const {
  const auto& params = fleet_.params();
  return make_answer_writer({.api = request.api,
                             .sglang = params.dialect_kind() == DialectKind::sglang,
                             .numbered = params.numbered_tokens,
                             .token_ids = request.return_token_ids,
                             .logprobs = request.logprobs,
                             .tool = request.tool},
                            id, unix_seconds(), params.model);
}

asio::awaitable<void> EngineService::models(net::HttpExchange& exchange) {
  const auto& model = fleet_.params().model;
  const Json body{{"object", "list"},
                  {"data",
                   {{{"id", model},
                     {"object", "model"},
                     {"created", unix_seconds()},
                     {"owned_by", "balanceroute"},
                     {"root", model},
                     {"parent", nullptr},
                     {"max_model_len", law_.max_model_len.count()}}}}};
  co_await exchange.respond(net::json_response(200, body.dump()));
}

asio::awaitable<void> EngineService::health(net::HttpExchange& exchange) {
  co_await exchange.respond(net::text_response(200, ""));
}

asio::awaitable<void> EngineService::version(net::HttpExchange& exchange) {
  co_await exchange.respond(net::json_response(200, R"({"version":"0.11.0+balanceroute.emulator"})"));
}

asio::awaitable<void> EngineService::metrics(net::HttpExchange& exchange) {
  std::vector<RankFigures> all;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) all.push_back(figures(rank));
  const auto& params = fleet_.params();
  const bool unified = ranks_.front().role == Role::aggregated;
  const MetricLabels labels{.model = params.model,
                            .engine_type = std::string{unified ? "unified" : role_name(ranks_.front().role)},
                            .block_size = params.block_size};
  const bool sglang = params.dialect_kind() == DialectKind::sglang;
  auto text = sglang ? sglang_metrics(labels, all) : vllm_metrics(labels, all);
  co_await exchange.respond(net::text_response(200, std::move(text)));
}

asio::awaitable<void> EngineService::stats(net::HttpExchange& exchange) {
  co_await exchange.respond(net::json_response(200, fleet_.stats_json()));
}

asio::awaitable<void> EngineService::state(net::HttpExchange& exchange) {
  co_await exchange.respond(net::json_response(200, fleet_.state_json()));
}

asio::awaitable<void> EngineService::steps(net::HttpExchange& exchange) {
  const auto query = exchange.request().query();
  const auto group = query_number(query, "group").value_or(0);
  const auto last = query_number(query, "last").value_or(fleet_.params().step_log);
  if (group < 0 || group >= fleet_.params().groups || last < 0) {
    const auto problem =
        bad_request("group = " + std::to_string(group) + ", last = " + std::to_string(last) + ": expected group 0.." +
                        std::to_string(fleet_.params().groups - 1) + " and last at least 0",
                    "group");
    co_await exchange.respond(error_response(problem));
    co_return;
  }
  co_await exchange.respond(
      net::json_response(200, fleet_.steps_json(static_cast<std::size_t>(group), static_cast<std::size_t>(last))));
}

asio::awaitable<void> EngineService::reset(net::HttpExchange& exchange) {
  fleet_.reset_measures();
  co_await exchange.respond(net::json_response(200, "{}"));
}

std::int64_t EngineService::sequences() const {
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto now = figures(rank);
    sum += now.running + now.waiting;
  }
  return sum;
}

void EngineService::append_state(std::vector<std::string>& ranks) const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto& rank = ranks_[i];
    const auto now = figures(i);
    ranks.push_back(Json{{"role", role_name(rank.role)},
                         {rank.role == Role::prefill ? "instance" : "group", rank.engine},
                         {"rank", rank.rank},
                         {"url", "http://" + net::Endpoint{rank.host, rank.port}.authority()},
                         {"engine_id", rank.engine_id},
                         {"restarts", incarnation_},
                         {"running", now.running},
                         {"waiting", now.waiting},
                         {"kv_tokens", now.kv_used.count()},
                         {"kv_offers", fleet_.exchange().offers_of(rank.engine_id)}}
                        .dump());
  }
}

asio::awaitable<void> EngineService::arm_fault(net::HttpExchange& exchange) {
  const auto body = Json::parse(exchange.request().body, nullptr, false);
  std::string problem = R"(body: expected {"fault": "stall:2", "count": 1, "path": "/v1/completions"})";
  if (body.is_object() && body.contains("fault") && body["fault"].is_string()) {
    const auto fault = parse_fault(body["fault"].get<std::string>());
    const auto count = body.value("count", Json(1));
    const auto path = body.value("path", Json(""));
    if (!fault) {
      problem = fault.error();
    } else if (!count.is_number_integer() || count < 1 || !path.is_string()) {
      problem = "count: expected an integer of at least 1; path: expected a string";
    } else {
      faults_.arm(*fault, count.get<std::int64_t>(), path.get<std::string>());
      co_await exchange.respond(net::json_response(200, "{}"));
      co_return;
    }
  }
  const auto refusal = bad_request(std::move(problem), "");
  co_await exchange.respond(error_response(refusal));
}

asio::awaitable<void> EngineService::clear_faults(net::HttpExchange& exchange) {
  faults_.clear();
  co_await exchange.respond(net::json_response(200, "{}"));
}

// The answer goes out first: the restart breaks the connection it came on.
asio::awaitable<void> EngineService::restart(net::HttpExchange& exchange) {
  const auto body = Json::parse(exchange.request().body, nullptr, false);
  const auto down = body.is_object() ? body.value("down_ms", Json(0)) : Json(0);
  if (!down.is_number_integer() || down < 0) {
    const auto refusal = bad_request("down_ms = " + down.dump() + ": expected 0 or more", "down_ms");
    co_await exchange.respond(error_response(refusal));
    co_return;
  }
  co_await exchange.respond(net::json_response(200, "{}"));
  fleet_.thread().post([this, time = std::chrono::milliseconds{down.get<std::int64_t>()}] { begin_anew(time); });
}

void EngineService::begin_anew(net::Duration down) {
  for (const auto& rank : ranks_) fleet_.exchange().forget(rank.engine_id);
  server_->cut_connections();  // all that runs here belongs to a handler, and ends with it
  ++incarnation_;
  name_engines();
  std::ranges::fill(finished_, FinishedCounters{});
  forget_counters();
  if (down == net::Duration::zero()) return;
  server_->pause_accepting();
  up_.arm(fleet_.thread().now() + down, [this] { come_up(); });
}

// While somebody else has the port it stays down.
void EngineService::come_up() {
  if (server_->resume_accepting()) return;
  up_.arm(fleet_.thread().now() + kRetryListening, [this] { come_up(); });
}

}  // namespace balanceroute::emulator
