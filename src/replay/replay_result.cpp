#include "replay/replay_result.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace balanceroute::replay {
namespace {

using Json = nlohmann::ordered_json;

Json summary_json(const Summary& summary) {
  return {{"mean", summary.mean}, {"p50", summary.p50}, {"p95", summary.p95}, {"p99", summary.p99}};
}

Json kinds_json(const ReplayPart& part) {
  Json kinds = Json::object();
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (part.errors_by_kind[i] > 0) kinds[std::string{kFaultNames[i]}] = part.errors_by_kind[i];
  }
  return kinds;
}

Json part_json(const ReplayPart& part) {
  return {{"requests", part.requests},
          {"completed", part.completed},
          {"errors", part.errors},
          {"errors_by_kind", kinds_json(part)},
          {"unfinished", part.unfinished},
          {"left", part.left},
          {"retries", part.retries},
          {"tokens", part.tokens},
          {"throughput_tokens_per_s", part.throughput_tokens_per_s},
          {"ttft_ms", summary_json(part.ttft_ms)},
          {"tpot_ms", summary_json(part.tpot_ms)},
          {"e2e_ms", summary_json(part.e2e_ms)}};
}

// "up_to_tokens" is the longest of its class, null for the last.
Json parts_json(const PartsByLength& parts, const LengthBucketEnds& ends) {
  Json told = Json::array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Json part{{"up_to_tokens", i < ends.size() ? Json(ends[i].count()) : Json(nullptr)}};
    part.update(part_json(parts[i]));
    told.push_back(std::move(part));
  }
  return told;
}

constexpr std::string_view kRow = "{:<16} {:>8} {:>9} {:>7} {:>10} {:>19} {:>17} {:>21}\n";

std::string shown(const Summary& summary, int digits) {
  if (summary.count == 0) return "-";
  return fmt::format("{:.{}f} / {:.{}f}", summary.p50, digits, summary.p95, digits);
}

std::string row(std::string_view title, const ReplayPart& part) {
  return fmt::format(kRow, title, part.requests, part.completed, part.errors,
                     fmt::format("{:.1f}", part.throughput_tokens_per_s), shown(part.ttft_ms, 1),
                     shown(part.tpot_ms, 2), shown(part.e2e_ms, 0));
}

std::string rows(std::string_view what, const PartsByLength& parts, const LengthBucketEnds& ends) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].requests == 0) continue;
    const bool last = i == ends.size();
    out += row(fmt::format("{} {} {}", what, last ? "> " : "<=", ends[last ? i - 1 : i].count()), parts[i]);
  }
  return out;
}

std::string troubles(const ReplayResult& result) {
  std::string out;
  for (std::size_t i = 0; i < kFaultKinds; ++i) {
    if (result.errors_by_kind[i] > 0) out += fmt::format(" {} {}", result.errors_by_kind[i], kFaultNames[i]);
  }
  if (!out.empty()) out = "errors:" + out + "\n";
  if (result.unfinished > 0) out += fmt::format("unfinished when the replay ended: {}\n", result.unfinished);
  if (result.left > 0) out += fmt::format("left by their clients: {}\n", result.left);
  if (result.retries > 0) out += fmt::format("sent again: {}\n", result.retries);
  return out;
}

std::string own_lateness(const ReplayResult& result) {
  const Summary& late = result.send_late_ms;
  std::string out =
      fmt::format("sent late by this client: P50 {:.2f} ms, P99 {:.2f} ms, {} of {} by more than {:.0f} ms\n", late.p50,
                  late.p99, result.late_sends, result.requests, ReplayResult::kLateMs);
  if (!result.client_was_late()) return out;
  return out + fmt::format(
                   "this client fell behind: more than {:.0f} % of its requests were late, so the times above "
                   "are its own as well as the server's\n",
                   100 * ReplayResult::kLateShare);
}

std::string prompt_count(const ReplayResult& result) {
  if (result.prompt_tokens_stated == Tokens{0}) return {};
  return fmt::format("prompts: the server counted {:.3f} tokens for each of the trace's\n",
                     static_cast<double>(result.prompt_tokens_counted.count()) /
                         static_cast<double>(result.prompt_tokens_stated.count()));
}

}  // namespace

std::string to_json(const ReplayResult& result) {
  Json told = part_json(result);
  told["send_late_ms"] = summary_json(result.send_late_ms);
  told["late_sends"] = result.late_sends;
  told["client_was_late"] = result.client_was_late();
  told["prompt_tokens_stated"] = result.prompt_tokens_stated.count();
  told["prompt_tokens_counted"] = result.prompt_tokens_counted.count();
  told["by_prompt"] = parts_json(result.by_prompt, kPromptBucketEnds);
  told["by_output"] = parts_json(result.by_output, kOutputBucketEnds);
  told["first_errors"] = result.first_errors;
  return told.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_table(const ReplayResult& result) {
  std::string out =
      fmt::format(kRow, "", "requests", "completed", "errors", "tokens/s", "TTFT ms", "TPOT ms", "end to end ms");
  out += fmt::format(kRow, "", "", "", "", "", "P50 / P95", "P50 / P95", "P50 / P95");
  out += row("all", result);
  out += rows("prompt", result.by_prompt, kPromptBucketEnds);
  out += rows("output", result.by_output, kOutputBucketEnds);
  return out + troubles(result) + own_lateness(result) + prompt_count(result);
}

}  // namespace balanceroute::replay
