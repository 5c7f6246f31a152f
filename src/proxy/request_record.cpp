#include "proxy/request_record.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "telemetry/log.hpp"

namespace balanceroute::proxy {

namespace {

// -1 stands for a time that never came, here too.
double milliseconds(double seconds) {
  return seconds < 0 ? -1 : seconds * 1000;
}

}  // namespace

RequestRecord::RequestRecord(telemetry::RouterMetrics& metrics, spdlog::logger& log, SpanExporter& spans,
                             const net::Clock& clock, const net::HeaderList& headers)
    : trace{spans, clock, headers}, metrics_{metrics}, log_{log}, clock_{clock}, arrived_{clock.now()} {}

RequestRecord::~RequestRecord() {
  const net::TimePoint now = clock_.now();
  const bool prefilled_first = prefill_ended_ != net::kNever && prefill_ended_ <= placed_;
  telemetry::RequestTimes times{.arrival_wait = seconds(arrived_, prefill_begun_),
                                .prefill = seconds(prefill_begun_, prefill_ended_),
                                .pool_wait = seconds(prefilled_first ? prefill_ended_ : arrived_, placed_),
                                .ttft = seconds(arrived_, first_token_)};
  times.e2e = seconds(arrived_, now);
  const std::int64_t tokens_each = output_tokens / sequences;
  if (tokens_each > 1) times.tpot = seconds(first_token_, last_token_) / static_cast<double>(tokens_each - 1);
  metrics_.request_finished({.outcome = outcome_,
                             .times = times,
                             .prompt_tokens = prompt_tokens,
                             .output_tokens = output_tokens,
                             .answers = sequences,
                             .tenant = tenant},
                            now.time_since_epoch());
  log_.info(
      "request id={} client={} tenant={} client_id={} path={} model={} outcome={} status={} worker={} rank={} stage={} "
      "score={} "
      "margin_tokens={} "
      "prompt_tokens={} "
      "output_tokens={} prefill={} arrival_wait_ms={:.1f} prefill_ms={:.1f} pool_wait_ms={:.1f} ttft_ms={:.1f} "
      "tpot_ms={:.2f} e2e_ms={:.1f} tries={} trace={} reason={}",
      id, telemetry::log_value(client), tenant, telemetry::log_value(client_id), telemetry::log_value(path),
      telemetry::log_value(model), telemetry::to_string(outcome_), status_, telemetry::log_value(worker_), rank_,
      where_ ? to_string(where_->stage) : "-", where_ ? where_->score : 0, where_ ? where_->margin.count() : 0,
      prompt_tokens, output_tokens, telemetry::log_value(prefill_), milliseconds(times.arrival_wait),
      milliseconds(times.prefill), milliseconds(times.pool_wait), milliseconds(times.ttft), milliseconds(times.tpot),
      milliseconds(times.e2e), tries, trace.id(), telemetry::log_value(reason_));
  if (trace.recorded()) trace.finish(summary(times));
  if (history_ != nullptr) history_->keep(for_history(now));
}

// Names of attributes are OpenTelemetry's where it has one (semantic conventions of HTTP and generative AI).
RequestTrace::Summary RequestRecord::summary(const telemetry::RequestTimes& times) const {
  RequestTrace::Summary all{.arrived = arrived_,
                            .pool_wait = std::nullopt,
                            .first_token = first_token_,
                            .name = "POST " + path,
                            .attributes = {{"http.response.status_code", std::int64_t{status_}},
                                           {"client.address", client},
                                           {"gen_ai.request.model", model},
                                           {"gen_ai.usage.input_tokens", prompt_tokens},
                                           {"gen_ai.usage.output_tokens", output_tokens},
                                           {"balanceroute.request.id", id},
                                           {"balanceroute.tenant", tenant},
                                           {"balanceroute.outcome", std::string{telemetry::to_string(outcome_)}},
                                           {"balanceroute.tries", std::int64_t{tries}}},
                            .error = std::nullopt};
  if (where_) {
    const std::vector<std::pair<std::string_view, telemetry::Span::Value>> placement{
        {"balanceroute.worker", worker_},
        {"balanceroute.rank", std::int64_t{rank_}},
        {"balanceroute.stage", std::string{to_string(where_->stage)}},
        {"balanceroute.score", where_->score},
        {"balanceroute.margin_tokens", where_->margin.count()}};
    all.attributes.insert(all.attributes.end(), placement.begin(), placement.end());
    all.pool_wait.emplace(placed_ - std::chrono::duration_cast<net::Duration>(
                                        std::chrono::duration<double>{std::max(times.pool_wait, 0.0)}),
                          placed_);
  }
  if (outcome_ != telemetry::Outcome::Ok) all.error = reason_;
  return all;
}

// What is moved out of here has been logged and is in the spans.
history::Record RequestRecord::for_history(net::TimePoint now) {
  const auto between = [](net::TimePoint from, net::TimePoint to) -> std::optional<history::Microseconds> {
    if (from == net::kNever || to == net::kNever) return std::nullopt;
    return std::chrono::duration_cast<history::Microseconds>(to - from);
  };
  const auto tokens = [](std::optional<std::int64_t> count) {
    return count ? std::optional{Tokens{*count}} : std::nullopt;
  };
  const history::Microseconds total = between(arrived_, now).value_or(history::Microseconds{0});
  const bool prefilled_first = prefill_ended_ != net::kNever && prefill_ended_ <= placed_;
  return {.arrived = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now() - total),
          .total = total,
          .first_token = between(arrived_, first_token_),
          .prefill = between(prefill_begun_, prefill_ended_),
          .pool_wait = between(prefilled_first ? prefill_ended_ : arrived_, placed_),
          .fleet = std::move(fleet_),
          .group = std::move(group),
          .worker = std::move(worker_),
          .rank = rank_,
          .policy = where_ ? std::string{where_->policy} : std::string{},
          .outcome = std::string{telemetry::to_string(outcome_)},
          .complete = outcome_ == telemetry::Outcome::Ok && output_tokens > 0,
          .status = status_,
          .tries = tries,
          .sequences = sequences,
          .prompt = Tokens{prompt_tokens > 0 ? prompt_tokens : placed_prompt_tokens},
          .output = Tokens{output_tokens},
          .output_limit = tokens(output_limit),
          .cached = tokens(cached_tokens),
          .prompt_key = keys.prompt,
          .opening_key = keys.opening};
}

void RequestRecord::keep_in(RequestHistory& history, std::string fleet) {
  history_ = &history;
  fleet_ = std::move(fleet);
}

void RequestRecord::prefill_begun(std::string instance) {
  if (prefill_begun_ == net::kNever) prefill_begun_ = clock_.now();
  prefill_ = std::move(instance);
}

void RequestRecord::prefill_ended() {
  prefill_ended_ = clock_.now();
  trace.end_leg(Leg::prefill);
}

void RequestRecord::placed(std::string worker, std::int32_t rank, const Placed& where) {
  placed_ = clock_.now();
  worker_ = std::move(worker);
  rank_ = rank;
  where_ = where;
}

void RequestRecord::progress(std::int64_t tokens) {
  if (tokens <= output_tokens) return;
  metrics_.tokens_came(tokens - output_tokens);
  output_tokens = tokens;
  last_token_ = clock_.now();
  if (first_token_ == net::kNever) first_token_ = last_token_;
}

void RequestRecord::finished(telemetry::Outcome how, int status_sent, std::string why) {
  outcome_ = how;
  status_ = status_sent;
  reason_ = std::move(why);
}

double RequestRecord::seconds(net::TimePoint from, net::TimePoint to) const {
  if (from == net::kNever || to == net::kNever) return -1;
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace balanceroute::proxy
