#include "proxy/admin.hpp"

#include <boost/url/encoding_opts.hpp>
#include <boost/url/parse_query.hpp>
#include <charconv>
#include <expected>
#include <string>
#include <string_view>

#include "proxy/openai_error.hpp"
#include "proxy/snapshots.hpp"
#include "proxy/state_report.hpp"

namespace balanceroute::proxy {
namespace {

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

net::asio::awaitable<void> Admin::handle(net::HttpExchange& exchange) {
  const std::string_view path = exchange.request().path();
  const std::string& method = exchange.request().method;
  const bool known = path == "/debug/ledger" || path == "/debug/explain" || StatusRoutes::has(path);
  if (!known) {
    co_await exchange.respond(
        error_response({404, "invalid_request_error", "unknown_path", "this path is not served here"}));
  } else if (method != "GET" && method != "HEAD") {
    co_await exchange.respond(
        error_response({405, "invalid_request_error", "method_not_allowed", "this path takes GET"}));
  } else if (path == "/debug/ledger") {
    co_await show_ledger(exchange);
  } else if (path == "/debug/explain") {
    co_await explain(exchange);
  } else {
    co_await status_.serve(exchange, path);
  }
}

net::asio::awaitable<void> Admin::show_ledger(net::HttpExchange& exchange) {
  const auto snapshots = co_await take_snapshots(exchange.thread(), service_.fleets, true);
  co_await exchange.respond(ledger_response(service_, snapshots));
}

net::asio::awaitable<void> Admin::explain(net::HttpExchange& exchange) {
  const auto size = read_size(exchange.request().query());
  if (!size) {
    const ApiError refusal{400, "invalid_request_error", "bad_query", size.error()};
    co_await exchange.respond(error_response(refusal));
    co_return;
  }
  const auto explanations = co_await ask_fleets(
      exchange.thread(), service_.fleets, [size = *size](Fleet& fleet) { return fleet.dispatcher().explain(size); });
  co_await exchange.respond(explain_response(explanations));
}

}  // namespace balanceroute::proxy
