// transfer_fuzz.cpp - what a prefill engine says of its KV reaches the decode engine as it was written, whatever it is,
// and the body around it stays JSON.
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "proxy/dialects/dialect.hpp"
#include "proxy/prefill_leg.hpp"
#include "require.hpp"

namespace {

using namespace balanceroute;

constexpr std::string_view kMember = "kv_transfer_params";

// As a reader finds it that has all of the answer before it; duplicates and other oddities aside, among them a NUL
// byte, which ends the text for the reader compared with.
void check_found(std::string_view answer, const std::string& object) {
  const auto plain = nlohmann::json::parse(answer, nullptr, false);
  if (!plain.is_object() || answer.contains('\\') || answer.contains('\0')) return;
  const std::string quoted = "\"" + std::string{kMember} + "\"";
  if (answer.find(quoted) != answer.rfind(quoted)) return;
  const bool has_object = plain.contains(kMember) && plain[kMember].is_object();
  require(object.empty() == !has_object);
  if (has_object) require(nlohmann::json::parse(object) == plain[kMember]);
}

void check_relayed(const proxy::Dialect& dialect, const std::string& object) {
  const std::string client = R"({"model":"m","prompt":"x","max_tokens":7,"stream":true})";
  const auto body = proxy::read_generation_body(client, proxy::GenerationKind::TextCompletion);
  require(body.has_value());
  const proxy::PrefillPeer peer{.endpoint = {"10.0.0.1", 8000}, .bootstrap_port = 8998};
  const proxy::Handover handover{
      .request_id = "id", .prefill = &peer, .object = object, .engine_id = "e", .callback = "http://a/b", .rooms = {7}};
  proxy::BodyEdit edit{client, *body};
  dialect.edit_decode(edit, *body, handover);
  const std::string relayed = std::move(edit).apply();
  if (!object.empty() && dialect.order() == proxy::LegOrder::PrefillFirst) {
    require(relayed.find(object) != std::string::npos);
  }
  require(!nlohmann::json::accept(object) || nlohmann::json::accept(relayed));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view answer{reinterpret_cast<const char*>(data), size};
  const std::string object = proxy::object_member(answer, kMember);
  check_found(answer, object);
  const auto lease =
      proxy::stated_lease(object, std::chrono::system_clock::time_point{std::chrono::seconds{1'700'000'000}});
  require(!lease || (*lease > net::Duration::zero() && *lease <= std::chrono::hours{1}));
  using enum proxy::DialectKind;
  for (const auto kind : std::array{VllmNixl, AscendMooncake, VllmMooncake, AscendLayerwise, Sglang}) {
    check_relayed(*proxy::make_dialect(kind), object);
  }
  return 0;
}
