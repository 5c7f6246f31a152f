// How a generation passes on a decode worker's answer.
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "net/sse.hpp"
#include "proxy/event_edit.hpp"
#include "proxy/generation.hpp"
#include "proxy/request_heads.hpp"

namespace balanceroute::proxy {

namespace {

using telemetry::Outcome;

}  // namespace

net::asio::awaitable<void> Generation::relay() {
  if (body_.stream && answer_->is_stream()) {
    co_await relay_stream();
  } else {
    co_await relay_whole();
  }
}

// The worker has the KV: nothing is left to do for the prefill instance.
void Generation::decode_has_begun() {
  if (*claim_) (*claim_)->fetched();
}

void Generation::learn(const std::optional<Usage>& usage) {
  // Later prompts hold a part of the answer; the last usage of a message may not tell its prompt.
  if (!usage || so_far_.begun() || usage->prompt_tokens == 0) return;
  record_.prompt_tokens = usage->prompt_tokens;
  const auto elsewhere = cached_prompt();
  record_.cached_tokens = elsewhere ? elsewhere->told : usage->cached_tokens;
  // With several prompts usage is their sum, which says nothing about one.
  if (!body_.prompt_tokens && body_.sequences == 1) {
    fleet_->estimator().learn(body_.prompt, usage->prompt_tokens);
  }
}

std::optional<CachedPrompt> Generation::cached_prompt() const {
  if (so_far_.begun()) return first_cached_;
  if (prefilled_) return CachedPrompt{prefilled_->cached_tokens};
  const bool computed = legs_ && legs_->prefill && legs_->prefill->end == PrefillEnd::Computed;
  if (!computed || fleet_->dialect().tells_cached_of_prefill()) return std::nullopt;
  const std::optional<Usage>& usage = legs_->prefill->usage;
  return CachedPrompt{usage ? usage->cached_tokens : std::nullopt};
}

// The worker gave the answer up: everything is given back, and the request goes through all of its life again with what
// was generated as part of its prompt.
Generation::Stage Generation::go_on_elsewhere() {
  service_.metrics.answer_given_up();
  if (!so_far_.begun()) {
    so_far_.prompt_tokens = record_.prompt_tokens;
    first_cached_ = cached_prompt();
  }
  ++so_far_.times;
  placement_.reset();
  answer_.reset();
  claim_->reset();
  failed_workers_.clear();
  tries_again_ = 0;
  broke_a_worker_ = false;
  begin_try();
  co_return co_await serve();
}

net::asio::awaitable<void> Generation::relay_whole() {
  std::string answer = answer_->take_whole();
  const int status = answer_->head().status;
  fleet_->worker_answered(worker_, status);
  StreamEvent whole;
  if (status == 200) {
    decode_has_begun();
    whole = read_whole_answer(answer);
    learn(whole.usage);
  }
  if (whole.recomputed && whole.usage && !whole.other_content && may_go_on()) {
    so_far_.text += whole.text;
    so_far_.tokens += whole.usage->completion_tokens;
    auto failure = co_await go_on_elsewhere();
    if (!failure) {
      co_await relay_whole();
    } else if (!is_nobodys(*failure)) {
      co_await net::asio::this_coro::throw_if_cancelled(false);  // though the router stops
      co_await fail(std::move(*failure));
    }
    co_return;
  }
  if (whole.usage) {
    const std::int64_t tokens = so_far_.tokens + whole.usage->completion_tokens;
    placement_->finish(tokens_each(tokens));
    record_.progress(tokens);
  }
  placement_->leave();  // without a count nothing is known of its length
  net::HttpResponse response = client_answer(answer_->head(), record_.client_id);
  response.body = std::move(answer);
  if (so_far_.begun()) response.body = as_whole_of(response.body, so_far_);
  if (status == 200 && hands_over()) {
    response.body = without_transfer(response.body);
    if (const auto cached = cached_prompt()) response.body = with_cached(response.body, response.body, *cached);
  }
  co_await exchange_.respond(std::move(response));
  Outcome outcome = status < 400 ? Outcome::Ok : Outcome::ClientError;
  if (status >= 500) outcome = Outcome::UpstreamError;
  if (exchange_.finished()) record_.finished(outcome, status);
}

// Relay takes a stream apart, keeps what the client shall have in `out`, and follows progress.
class Generation::Relay {
 public:
  explicit Relay(Generation& generation)
      : generation_{generation},
        may_go_on_{generation.may_go_on()},
        takes_usage_out_{generation.usage_wish_ == UsageWish::Continuous &&
                         !generation.body_.client_wants_continuous_usage()} {}

  // Everything that came in one read goes out in one write.
  std::string out;
  bool any_event = false;
  bool done = false;
  std::optional<std::string> error;  // the worker's own error event

  void feed(std::string_view bytes) {
    splitter_.feed(bytes, [this](std::string_view event) { take(event); });
  }
  [[nodiscard]] bool cut_inside_event() const { return !splitter_.rest().empty(); }
  [[nodiscard]] bool given_up() const { return given_up_; }
  // The next stream goes on with the answer.
  void next_part() {
    generation_.so_far_.tokens += std::exchange(tokens_, 0);
    content_events_ = 0;
    finished_ = 0;
    begun_ = false;
    given_up_ = false;
    done = false;
    splitter_ = {};
  }

 private:
  void take(std::string_view bytes) {
    const std::string_view data = net::sse_data(bytes, scratch_);
    const StreamEvent event = read_stream_event(data);
    any_event = true;
    if (!event.error && !std::exchange(begun_, true)) generation_.decode_has_begun();
    done = done || event.done;
    if (event.error) error = event.error_message;
    if (may_go_on_) watch_for_end(event, data);
    follow(event);
    pass(event, bytes, data);
  }

  // Keeps the text, which must be plain to go on from.
  void watch_for_end(const StreamEvent& event, std::string_view data) {
    Continuation& so_far = generation_.so_far_;
    so_far.text += event.text;
    may_go_on_ = !event.other_content;
    if (!event.recomputed || !may_go_on_) return;
    given_up_ = true;
    const EventPlaces places = places_in(data);
    if (so_far.answer_id.empty() && places.id) so_far.answer_id = data.substr(places.id->offset, places.id->length);
  }

  void follow(const StreamEvent& event) {
    tokens_ += event.tokens;
    if (event.tokens > 0) ++content_events_;
    if (event.usage_only) generation_.fleet_->token_progress().learn(event.usage->completion_tokens, content_events_);
    finished_ += event.finished;
    if (event.usage) tokens_ = std::max(tokens_, event.usage->completion_tokens);
    generation_.learn(event.usage);
    const std::int64_t in_all = generation_.so_far_.tokens + tokens_;
    generation_.record_.progress(in_all);
    generation_.placement_->progress(generation_.tokens_each(tokens_));
    if (error || given_up_) {
      generation_.placement_->leave();
    } else if (finished_ >= generation_.body_.sequences || event.done) {
      generation_.placement_->finish(generation_.tokens_each(in_all));
    } else {
      for (std::int32_t i = 0; i < event.finished; ++i) {
        generation_.placement_->finish_one(generation_.tokens_each(in_all));
      }
    }
  }

  // To the client, as it came unless its answer changes workers or its usage was the router's wish.
  void pass(const StreamEvent& event, std::string_view bytes, std::string_view data) {
    if (event.usage_only && !generation_.body_.client_wants_usage()) return;
    const bool begun_elsewhere = generation_.so_far_.begun();
    const bool in_one_line = data.data() != scratch_.data();
    const bool is_chunk = event.readable && !event.done && !event.error && in_one_line;
    if (given_up_ && (!is_chunk || !event.recomputed || event.text.empty())) return;
    if (begun_elsewhere && event.opens) return;
    if (is_chunk && (given_up_ || begun_elsewhere || has_wished_usage(event) || tells_cached(event))) {
      out += edited(event, std::string{bytes});
    } else {
      out.append(bytes);
    }
  }

  [[nodiscard]] bool has_wished_usage(const StreamEvent& event) const {
    return takes_usage_out_ && event.usage && !event.usage_only;
  }

  [[nodiscard]] bool tells_cached(const StreamEvent& event) const {
    return event.usage_only && generation_.cached_prompt();
  }

  std::string edited(const StreamEvent& event, std::string text) {
    const auto data_of = [this](const std::string& of) { return net::sse_data(of, scratch_); };
    if (given_up_) text = without_end(text, data_of(text));
    if (generation_.so_far_.begun()) text = as_part_of(text, data_of(text), generation_.so_far_);
    if (has_wished_usage(event)) text = without_usage(text, data_of(text));
    if (tells_cached(event)) text = with_cached(text, data_of(text), *generation_.cached_prompt());
    return text;
  }

  Generation& generation_;
  net::SseSplitter splitter_;
  std::string scratch_;
  std::int64_t tokens_ = 0;  // of this worker
  std::int64_t content_events_ = 0;
  std::int32_t finished_ = 0;
  bool begun_ = false;  // this worker
  bool may_go_on_;
  bool takes_usage_out_;
  bool given_up_ = false;
};

// A long answer holds nothing of a request that goes to no other worker.
void Generation::forget_body() {
  std::string{}.swap(exchange_.request().body);
  exchange_.request().headers = {};
  std::vector<std::size_t>{}.swap(body_.member_begins);
  std::vector<Span>{}.swap(body_.prompt_parts);
  std::vector<Span>{}.swap(body_.opening_parts);
}

net::asio::awaitable<void> Generation::relay_stream() {
  Relay relay{*this};
  if (!may_go_on()) forget_body();
  for (;;) {
    auto failure = co_await pass_on(relay);
    placement_->leave();
    if (!failure && relay.given_up()) {
      relay.next_part();
      failure = co_await go_on_elsewhere();
      if (!failure && answer_->head().status == 200) continue;
      if (!failure) {
        const net::NetError refused{net::NetFault::Protocol, "status " + std::to_string(answer_->head().status) +
                                                                 " where an answer was to be gone on with"};
        failure = failure_of(refused, record_.worker());
      }
    }
    if (failure && is_nobodys(*failure)) co_return;
    co_await net::asio::this_coro::throw_if_cancelled(false);  // though the router stops
    co_await end_stream(std::move(failure), relay.error.has_value());
    co_return;
  }
}

// One worker's stream, to its end; a failure if that was not a proper one.
net::asio::awaitable<std::optional<Failure>> Generation::pass_on(Relay& relay) {
  std::optional<net::NetError> broken;
  for (;;) {
    const auto bytes = co_await answer_->read(after(service_.params->timeouts.stream_idle_ms));
    if (!bytes) broken = bytes.error();
    if (!bytes || bytes->empty()) break;
    relay.feed(*bytes);
    // The status goes out with the first event, so a worker that fails at once still gives a status that says so.
    if (relay.error && !exchange_.started()) break;
    if (relay.any_event && !exchange_.started()) exchange_.start(client_answer(answer_->head(), record_.client_id));
    if (relay.out.empty()) continue;
    net::WriteStatus status = exchange_.write(relay.out);
    relay.out.clear();
    if (status == net::WriteStatus::Full) status = co_await exchange_.drained();
    if (status == net::WriteStatus::Gone) co_return client_left();
  }
  if (!broken && !relay.error && !relay.done) {
    broken = net::NetError{net::NetFault::Closed, relay.cut_inside_event() ? "the stream ended inside an event"
                                                                           : "the stream ended without [DONE]"};
  }
  if (relay.error) broken = net::NetError{net::NetFault::Protocol, "the worker reported: " + *relay.error};
  if (!broken) co_return std::nullopt;
  co_return worker_failure(*broken, Phase::next_event);
}

// `told`: the worker's own error event has been passed on already.
net::asio::awaitable<void> Generation::end_stream(std::optional<Failure> failure, bool told) {
  if (!failure) {
    co_await exchange_.finish();
    if (exchange_.finished()) record_.finished(Outcome::Ok, 200);
    co_return;
  }
  if (!exchange_.started()) {
    co_await fail(std::move(*failure));
    co_return;
  }
  record_.finished(failure->outcome, 200, failure->log_reason.empty() ? failure->error.message : failure->log_reason);
  if (!told) exchange_.write(error_event(failure->error, error_shape()));
  co_await exchange_.flushed();  // and then the connection breaks: no proper end
}

}  // namespace balanceroute::proxy
