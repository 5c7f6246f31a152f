// How a generation passes on a decode worker's answer.
#include <utility>

#include "net/sse.hpp"
#include "proxy/generation.hpp"

namespace balanceroute::proxy {

namespace {

using telemetry::Outcome;

constexpr std::size_t kWholeAnswerBytes = 256 * 1024 * 1024;

bool is_event_stream(const net::HttpResponse& head) {
  const auto type = head.headers.find("Content-Type");
  return type && type->starts_with("text/event-stream");
}

}  // namespace

net::asio::awaitable<void> Generation::relay() {
  if (body_.stream && answer_->head().status == 200 && is_event_stream(answer_->head())) {
    co_await relay_stream();
  } else {
    co_await relay_whole();
  }
}

// The worker has the KV: nothing is left to do for the prefill instance.
void Generation::decode_has_begun() {
  if (*claim_) (*claim_)->fetched();
}

net::HttpResponse Generation::client_head(const net::HttpResponse& upstream) const {
  net::HttpResponse head{.status = upstream.status, .headers = {}, .body = {}};
  for (const auto& [name, value] : upstream.headers) {
    if (net::is_hop_by_hop(name) || net::iequals(name, "Content-Length") || net::iequals(name, "X-Request-Id"))
      continue;
    head.headers.add(name, value);
  }
  if (!record_.client_id.empty()) head.headers.add("X-Request-Id", record_.client_id);
  return head;
}

void Generation::learn(const std::optional<Usage>& usage) {
  if (!usage) return;
  record_.prompt_tokens = usage->prompt_tokens;
  // With several prompts usage is their sum, which says nothing about one.
  if (!body_.prompt_tokens && body_.sequences == 1) {
    fleet_->estimator().learn(body_.prompt_bytes, usage->prompt_tokens);
  }
}

net::asio::awaitable<void> Generation::relay_whole() {
  auto answer = co_await answer_->read_all(kWholeAnswerBytes, after(service_.params.timeouts.first_byte_ms));
  const std::optional<Usage> usage = answer ? read_usage(*answer) : std::nullopt;
  const int status = answer_->head().status;
  if (answer && status == 200) decode_has_begun();
  if (usage && status == 200) placement_->finish(tokens_each(usage->completion_tokens));
  placement_->leave();  // without a count nothing is known of its length
  if (answer && answer->empty() && status == 200) {
    answer = std::unexpected(net::NetError{net::NetFault::Closed, "the worker answered 200 with an empty body"});
  }
  if (!answer) {
    if (answer.error().fault == net::NetFault::Cancelled) co_return;
    co_await fail(failure_of(answer.error(), record_.worker()));
    co_return;
  }
  learn(usage);
  if (usage) record_.progress(usage->completion_tokens);
  net::HttpResponse response = client_head(answer_->head());
  response.body = std::move(*answer);
  co_await exchange_.respond(std::move(response));
  Outcome outcome = status < 400 ? Outcome::Ok : Outcome::ClientError;
  if (status >= 500) outcome = Outcome::UpstreamError;
  if (exchange_.finished()) record_.finished(outcome, status);
}

// Relay takes a stream apart, keeps what the client shall have in `out`, and follows progress.
class Generation::Relay {
 public:
  explicit Relay(Generation& generation) : generation_{generation} {}

  // Everything that came in one read goes out in one write.
  std::string out;
  bool any_event = false;
  bool done = false;
  std::optional<std::string> error;  // the worker's own error event

  void feed(std::string_view bytes) {
    splitter_.feed(bytes, [this](std::string_view event) { take(event); });
  }
  bool cut_inside_event() const { return !splitter_.rest().empty(); }

 private:
  void take(std::string_view bytes) {
    const StreamEvent event = read_stream_event(net::sse_data(bytes, scratch_));
    if (!std::exchange(any_event, true) && !event.error) generation_.decode_has_begun();
    done = done || event.done;
    if (event.error) error = event.error_message;
    tokens_ += event.tokens;
    finished_ += event.finished;
    if (event.usage) tokens_ = std::max(tokens_, event.usage->completion_tokens);
    if (event.usage) generation_.learn(event.usage);
    generation_.record_.progress(tokens_);
    const std::int64_t tokens = generation_.tokens_each(tokens_);
    generation_.placement_->progress(tokens);
    if (error) {
      generation_.placement_->leave();
    } else if (finished_ >= generation_.body_.sequences || done) {
      generation_.placement_->finish(tokens);
    }
    if (event.usage_only && !generation_.body_.client_wants_usage()) return;
    out.append(bytes);
  }

  Generation& generation_;
  net::SseSplitter splitter_;
  std::string scratch_;
  std::int64_t tokens_ = 0;
  std::int32_t finished_ = 0;
};

net::asio::awaitable<void> Generation::relay_stream() {
  Relay relay{*this};
  std::optional<net::NetError> broken;
  net::TimePoint deadline = after(service_.params.timeouts.first_byte_ms);
  for (;;) {
    const auto bytes = co_await answer_->read(deadline);
    if (!bytes && bytes.error().fault == net::NetFault::Cancelled) co_return;
    if (!bytes) broken = bytes.error();
    if (!bytes || bytes->empty()) break;
    relay.feed(*bytes);
    // The status goes out with the first event, so a worker that fails at once still gives a status that says so.
    if (relay.error && !exchange_.started()) break;
    if (relay.any_event && !exchange_.started()) exchange_.start(client_head(answer_->head()));
    deadline = after(service_.params.timeouts.stream_idle_ms);
    if (relay.out.empty()) continue;
    net::WriteStatus status = exchange_.write(relay.out);
    relay.out.clear();
    if (status == net::WriteStatus::Full) status = co_await exchange_.drained();
    if (status == net::WriteStatus::Gone) co_return;
  }
  placement_->leave();
  if (!broken && !relay.error && !relay.done) {
    broken = net::NetError{net::NetFault::Closed, relay.cut_inside_event() ? "the stream ended inside an event"
                                                                           : "the stream ended without [DONE]"};
  }
  if (relay.error) broken = net::NetError{net::NetFault::Protocol, "the worker reported: " + *relay.error};
  if (!broken) {
    co_await exchange_.finish();
    if (exchange_.finished()) record_.finished(Outcome::Ok, 200);
    co_return;
  }
  Failure failure = failure_of(*broken, record_.worker());
  if (!exchange_.started()) {
    co_await fail(std::move(failure));
    co_return;
  }
  record_.finished(failure.outcome, 200, broken->detail);
  // A worker's own error event has been passed on already.
  if (!relay.error) exchange_.write(error_event(failure.error));
  co_await exchange_.flushed();  // and then the connection breaks: no proper end
}

}  // namespace balanceroute::proxy
