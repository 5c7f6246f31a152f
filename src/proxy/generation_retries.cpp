// How a generation tries another worker when one has failed it, before anything of an answer has gone out.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "net/event.hpp"
#include "proxy/generation.hpp"
#include "telemetry/log.hpp"

namespace balanceroute::proxy {

namespace {

// As engines call the rank that the router names.
constexpr std::array<std::string_view, 3> kRankWords{"dp_rank", "data_parallel_rank", "data parallel rank"};

}  // namespace

// A refusal of the rank that the router named, in a request that does not speak of ranks itself: what an engine repeats
// of a client's words proves nothing.
std::optional<Failure> Generation::rejected_rank() {
  const int status = answer_->head().status;
  const bool refused = (status >= 400 && status < 500) || status == 500;
  if (!refused || fleet_->address(worker_).naming == RankNaming::Port) return std::nullopt;
  const std::string_view answer = answer_->whole();
  const std::string_view request = exchange_.request().body;
  const bool of_rank = std::ranges::any_of(
      kRankWords, [&](std::string_view word) { return answer.contains(word) && !request.contains(word); });
  if (!of_rank) return std::nullopt;
  fleet_->rank_rejected(worker_, std::string{answer});
  return Failure{.outcome = telemetry::Outcome::UpstreamError,
                 .error = api_error(502, "rank_rejected", "the worker does not know the rank that it was asked for"),
                 .log_reason = "status " + std::to_string(status) + ": " + std::string{answer.substr(0, 300)},
                 .retry = Retry::paid};
}

// Lost KV has been computed again already, by rules of its own.
Retry Generation::retry_of_answer() const {
  if (kv_was_lost()) return Retry::never;
  if (answer_->first_error()) return Retry::once;
  return service_.params->retries.of_status(answer_->head().status);
}

// The answer is the client's only if no other worker has room.
Failure Generation::give_up_answer() {
  if (answer_->first_error()) {
    return worker_failure(
        {net::NetFault::Protocol, "the worker began its stream with an error: " + *answer_->first_error()});
  }
  const int status = answer_->head().status;
  fleet_->worker_answered(worker_, status);
  net::HttpResponse answer = answer_->head();
  answer.body = answer_->take_whole();
  std::string reason = "the worker answered status " + std::to_string(status) + ": " + answer.body.substr(0, 300);
  return {.outcome = status < 500 ? telemetry::Outcome::ClientError : telemetry::Outcome::UpstreamError,
          .error = api_error(status, "worker_refused", "the worker did not take the request"),
          .log_reason = std::move(reason),
          .answer = std::move(answer)};
}

bool Generation::may_try_again(Retry retry) {
  if (retry == Retry::never || tries_again_ >= service_.params->retries.most) return false;
  if (retry == Retry::once && std::exchange(broke_a_worker_, true)) return false;
  if (retry == Retry::freely || fleet_->retry_budget().spend()) return true;
  service_.metrics.retry_denied();
  return false;
}

net::asio::awaitable<bool> Generation::step_back(const Failure& failure, bool keeps_kv) {
  service_.metrics.request_retried();
  failed_workers_.push_back(worker_);
  placement_.reset();
  answer_.reset();
  const std::string before = record_.id;
  if (!keeps_kv) {
    claim_->reset();
    begin_try();
  }
  ++record_.tries;
  service_.log.warn("retry request={} next={} worker={} rank={} reason={}", before, record_.id,
                    telemetry::log_value(record_.worker()), record_.rank(), telemetry::log_value(failure.log_reason));
  const net::Duration wait = retry_wait(service_.params->retries, tries_again_++, fleet_->random(thread_index_));
  net::Event never{thread()};
  const net::WaitResult waited = co_await never.wait(service_.clock.now() + wait);
  co_return waited != net::WaitResult::Cancelled;
}

}  // namespace balanceroute::proxy
