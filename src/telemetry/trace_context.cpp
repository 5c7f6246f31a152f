#include "telemetry/trace_context.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <span>

namespace balanceroute::telemetry {

namespace {

constexpr std::size_t kLength = 55;  // of version 00
constexpr std::uint8_t kSampled = 1;

void fill_with_chance(std::span<std::uint8_t> id) {
  thread_local std::random_device device;
  do {
    for (std::uint8_t& byte : id) byte = static_cast<std::uint8_t>(device());
  } while (std::ranges::all_of(id, [](std::uint8_t byte) { return byte == 0; }));
}

// Upper case is not allowed here.
std::optional<std::uint8_t> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

bool read_hex(std::string_view text, std::span<std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = digit(text[2 * i]);
    const auto low = digit(text[2 * i + 1]);
    if (!high || !low) return false;
    bytes[i] = static_cast<std::uint8_t>(*high * 16 + *low);
  }
  return true;
}

bool is_zero(std::span<const std::uint8_t> id) {
  return std::ranges::all_of(id, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

TraceContext TraceContext::child() const {
  TraceContext next = *this;
  fill_with_chance(next.span);
  return next;
}

std::string TraceContext::to_string() const {
  return fmt::format("00-{}-{}-{}", to_hex(trace), to_hex(span), sampled ? "01" : "00");
}

TraceContext new_trace(bool sampled) {
  TraceContext context{.sampled = sampled};
  fill_with_chance(context.trace);
  fill_with_chance(context.span);
  return context;
}

std::optional<TraceContext> parse_traceparent(std::string_view header) {
  if (header.size() < kLength || header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  std::array<std::uint8_t, 1> version{};
  std::array<std::uint8_t, 1> flags{};
  TraceContext context;
  const bool well_formed = read_hex(header.substr(0, 2), version) && read_hex(header.substr(3, 32), context.trace) &&
                           read_hex(header.substr(36, 16), context.span) && read_hex(header.substr(53, 2), flags);
  if (!well_formed || version[0] == 0xff || is_zero(context.trace) || is_zero(context.span)) return std::nullopt;
  // More may only follow in later versions, and only after another dash.
  if (header.size() > kLength && (version[0] == 0 || header[kLength] != '-')) return std::nullopt;
  context.sampled = (flags[0] & kSampled) != 0;
  return context;
}

std::string to_hex(const TraceId& id) {
  return fmt::format("{:02x}", fmt::join(id, ""));
}

std::string to_hex(const SpanId& id) {
  return fmt::format("{:02x}", fmt::join(id, ""));
}

}  // namespace balanceroute::telemetry
