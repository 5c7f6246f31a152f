#include "proxy/admin.hpp"

#include <fmt/format.h>

#include <boost/url/encoding_opts.hpp>
#include <boost/url/parse_query.hpp>
#include <charconv>
#include <expected>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explain/fleet_state_json.hpp"
#include "proxy/admin_guard.hpp"
#include "proxy/admin_request.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/snapshots.hpp"
#include "proxy/state_report.hpp"

namespace balanceroute::proxy {
namespace {

struct SnapshotQuestion {
  std::string fleet;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({"fleet", "Name of the fleet; may be left out where there is one."}, fleet);
  }
};

std::expected<std::int64_t, std::string> read_count(std::string_view name, std::string_view text, std::int64_t most) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc{} && end == text.data() + text.size() && count >= 1 && count <= most) return count;
  return std::unexpected(std::string{name} + " = '" + std::string{text} + "': expected a whole number from 1 to " +
                         std::to_string(most));
}

// The request that ?prompt_tokens=N&sequences=K describes.
std::expected<RequestSize, std::string> read_size(std::string_view query) {
  constexpr std::string_view kMissing = "prompt_tokens is missing: expected prompt_tokens=N";
  if (query.empty()) return std::unexpected(std::string{kMissing});  // Boost.URL 1.81 reads past an empty view
  RequestSize size{.prompt = Tokens{0}, .sequences = 1};
  const auto fields = boost::urls::parse_query(boost::urls::string_view{query.data(), query.size()});
  if (!fields) return std::unexpected("the query cannot be read: expected prompt_tokens=N&sequences=K");
  for (const auto& field : *fields) {
    const std::string name = field.key.decode();
    const bool tokens = name == "prompt_tokens";
    if (!tokens && name != "sequences") {
      return std::unexpected("'" + name + "': expected prompt_tokens or sequences");
    }
    const auto count = read_count(name, field.value.decode(), tokens ? kMaxTokens.count() : 65'536);
    if (!count) return std::unexpected(count.error());
    if (tokens) {
      size.prompt = Tokens{*count};
    } else {
      size.sequences = static_cast<std::int32_t>(*count);
    }
  }
  if (size.prompt == Tokens{0}) return std::unexpected(std::string{kMissing});
  return size;
}

}  // namespace

bool Admin::is_known(const net::HttpRequest& request) const {
  const std::string& token = service_.params->admin.token;
  if (token.empty() || request.path().starts_with("/health")) return true;
  const std::string expected = "Bearer " + token;
  const std::string_view given = request.headers.find("Authorization").value_or("");
  // Every byte is looked at, so that the time it takes tells nothing of the token but its length.
  unsigned difference = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference |= static_cast<unsigned>(expected[i] ^ (i < given.size() ? given[i] : '\0'));
  }
  return difference == 0;
}

net::asio::awaitable<void> Admin::handle(net::HttpExchange& exchange) {
  const std::string_view path = exchange.request().path();
  if (auto why = foreign_page(exchange.request(), !service_.params->admin.token.empty())) {
    const ApiError refusal{403, "invalid_request_error", "foreign_page", *std::move(why)};
    co_await exchange.respond(error_response(refusal));
    co_return;
  }
  if (dashboard_.has(path)) {
    co_await dashboard_.serve(exchange, path);
    co_return;
  }
  if (!is_known(exchange.request())) {
    net::HttpResponse refusal =
        error_response({401, "invalid_request_error", "unauthorized",
                        "the admin token is missing or wrong: expected Authorization: Bearer TOKEN"});
    refusal.headers.add("WWW-Authenticate", "Bearer");
    co_await exchange.respond(std::move(refusal));
    co_return;
  }
  if (WorkerRoutes::has(path)) {
    co_await workers_.serve(exchange, path);
  } else if (PolicyRoutes::has(path)) {
    co_await policy_.serve(exchange, path);
  } else {
    co_await show(exchange, path);
  }
}

net::asio::awaitable<void> Admin::show(net::HttpExchange& exchange, std::string_view path) {
  const std::string& method = exchange.request().method;
  const bool known = path == "/debug/ledger" || path == "/debug/explain" || path == "/debug/steps" ||
                     path == "/debug/snapshot" || path == "/live" || StatusRoutes::has(path);
  if (!known) {
    co_await exchange.respond(
        error_response({404, "invalid_request_error", "unknown_path", "this path is not served here"}));
  } else if (path == "/live" && method != "GET") {
    co_await exchange.respond(wrong_method("GET"));
  } else if (method != "GET" && method != "HEAD") {
    co_await exchange.respond(wrong_method("GET, HEAD"));
  } else if (path == "/live") {
    co_await feed_.serve(exchange);
  } else if (path == "/debug/ledger") {
    co_await show_ledger(exchange);
  } else if (path == "/debug/explain") {
    co_await explain(exchange);
  } else if (path == "/debug/snapshot") {
    co_await show_snapshot(exchange);
  } else if (path == "/debug/steps") {
    co_await show_steps(exchange);
  } else {
    co_await status_.serve(exchange, path);
  }
}

net::asio::awaitable<void> Admin::show_ledger(net::HttpExchange& exchange) {
  const auto snapshots = co_await take_snapshots(exchange.thread(), service_.fleets, true);
  co_await exchange.respond(ledger_response(service_, snapshots));
}

net::asio::awaitable<void> Admin::show_snapshot(net::HttpExchange& exchange) {
  const auto query = json_of_query(exchange.request().query());
  if (!query) {
    co_await exchange.respond(error_response(query.error()));
    co_return;
  }
  const auto asked = for_fleet(service_, read_admin_body<SnapshotQuestion>(*query));
  if (!asked) {
    co_await exchange.respond(error_response(asked.error()));
    co_return;
  }
  const auto ask = [](Fleet& fleet) { return fleet.state_now(); };
  const auto state = co_await ask_fleet(exchange.thread(), *asked->fleet, ask);
  co_await exchange.respond(net::json_response(200, explain::to_json(state)));
}

net::asio::awaitable<void> Admin::show_steps(net::HttpExchange& exchange) {
  struct Steps {
    std::vector<std::string> groups;
    std::vector<StepTrail> trails;
  };
  const auto ask = [](Fleet& fleet) {
    Steps steps{.groups = {}, .trails = fleet.dispatcher().step_trails()};
    for (const GroupView& group : fleet.dispatcher().router().ledger().groups()) {
      steps.groups.emplace_back(fleet.dispatcher().router().ledger().group_name(group.group));
    }
    return steps;
  };
  const auto fleets = co_await ask_fleets(exchange.thread(), service_.fleets, ask);
  std::string csv = "fleet,group,step_ms,max_tokens,sequences,total_tokens\n";
  for (std::size_t f = 0; f < fleets.size(); ++f) {
    for (std::size_t g = 0; g < fleets[f].trails.size(); ++g) {
      for (const StepBlock& block : fleets[f].trails[g].blocks()) {
        fmt::format_to(std::back_inserter(csv), "\"{}\",\"{}\",{:.4f},{:.1f},{:.2f},{:.1f}\n",
                       service_.fleets[f]->name(), fleets[f].groups[g], block.step_ms, block.max_tokens,
                       block.sequences, block.total_tokens);
      }
    }
  }
  net::HttpResponse response{.status = 200, .headers = {}, .body = std::move(csv)};
  response.headers.add("Content-Type", "text/csv; charset=utf-8");
  co_await exchange.respond(std::move(response));
}

net::asio::awaitable<void> Admin::explain(net::HttpExchange& exchange) {
  const auto size = read_size(exchange.request().query());
  if (!size) {
    const ApiError refusal{400, "invalid_request_error", "bad_query", size.error()};
    co_await exchange.respond(error_response(refusal));
    co_return;
  }
  const auto ask = [prompt = size->prompt, sequences = size->sequences](Fleet& fleet) {
    return fleet.dispatcher().explain({.prompt = prompt, .sequences = sequences});
  };
  const auto explanations = co_await ask_fleets(exchange.thread(), service_.fleets, ask);
  co_await exchange.respond(explain_response(explanations));
}

}  // namespace balanceroute::proxy
