#include "emulator/fault_plan.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace balanceroute::emulator {
namespace {

constexpr std::string_view kExpected =
    "expected refuse, reset, stall[:events], slow[:milliseconds], garbage, die_mid_stream[:events], status:<400..599> "
    "or kv_loss[:events]";

bool takes_number(FaultKind kind) {
  return kind == FaultKind::stall || kind == FaultKind::slow || kind == FaultKind::die_mid_stream ||
         kind == FaultKind::status || kind == FaultKind::kv_loss;
}

std::optional<std::int64_t> parse_number(std::string_view digits) {
  std::int64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = read.ec == std::errc{} && read.ptr == digits.data() + digits.size() && number >= 0;
  return whole ? std::optional{number} : std::nullopt;
}

}  // namespace

std::optional<Api> api_of(std::string_view path) {
  if (path == "/v1/chat/completions") return Api::chat;
  if (path == "/v1/completions") return Api::completions;
  if (path == "/v1/responses") return Api::responses;
  if (path == "/v1/messages") return Api::messages;
  return std::nullopt;
}

std::expected<Fault, std::string> parse_fault(std::string_view text) {
  const auto refuse = [&] { return std::unexpected{"fault '" + std::string{text} + "': " + std::string{kExpected}}; };
  const auto colon = text.find(':');
  const auto name = std::ranges::find(kFaultNames, text.substr(0, colon));
  if (name == kFaultNames.end()) return refuse();
  Fault fault{.kind = static_cast<FaultKind>(name - kFaultNames.begin()), .number = {}};
  if (colon != std::string_view::npos) {
    fault.number = parse_number(text.substr(colon + 1));
    if (!fault.number || !takes_number(fault.kind)) return refuse();
  }
  if (fault.kind == FaultKind::status && (fault.number.value_or(0) < 400 || *fault.number > 599)) return refuse();
  return fault;
}

void FaultPlan::arm(const Fault& fault, std::int64_t count, std::string path) {
  armed_.push_back({fault, count, std::move(path)});
}

std::expected<std::optional<Fault>, std::string> FaultPlan::take(const net::HttpRequest& request) {
  if (const auto header = request.headers.find("X-Emulator-Fault")) {
    const auto fault = parse_fault(*header);
    if (!fault) return std::unexpected{fault.error()};
    count(*fault);
    return *fault;
  }
  const auto meets = [&](const Armed& armed) {
    return armed.path.empty() ? api_of(request.path()).has_value() : armed.path == request.path();
  };
  const auto found = std::ranges::find_if(armed_, meets);
  if (found == armed_.end()) return std::nullopt;
  const Fault fault = found->fault;
  if (--found->left == 0) armed_.erase(found);
  count(fault);
  return fault;
}

}  // namespace balanceroute::emulator
