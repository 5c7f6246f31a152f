#include "sim/intake.hpp"

#include <utility>

namespace balanceroute::sim {
namespace {

// What a router may know of it.
Request request_of(RequestId id, const Arrival& arrival) {
  return {.id = id, .prompt = arrival.prompt, .prompt_key = arrival.prompt_key};
}

}  // namespace

Intake::Intake(RequestStream stream, const std::optional<engine::PrefillSettings>& prefill)
    : stream_{std::move(stream)} {
  if (prefill) prefill_.emplace(*prefill);
}

bool Intake::prompt_is_next() const {
  const auto ready = prefill_ ? prefill_->next() : std::nullopt;
  return ready && *ready <= stream_.next().at;
}

Nanoseconds Intake::next() const {
  return prompt_is_next() ? *prefill_->next() : stream_.next().at;
}

std::optional<Request> Intake::advance() {
  if (prompt_is_next()) {
    const engine::PrefillStage::Ready ready = prefill_->pop();
    PendingRequest& pending = pending_.at(ready.id);
    pending.prefilled = ready.at;
    pending.prefiller = ready.instance;
    return request_of(ready.id, pending.arrival);
  }
  const Arrival arrival = stream_.next();
  const RequestId id = pending_.add(arrival);
  stream_.pop();
  if (prefill_) {
    prefill_->submit(id, arrival.prompt, arrival.at);
    return std::nullopt;
  }
  pending_.at(id).prefilled = arrival.at;
  return request_of(id, arrival);
}

}  // namespace balanceroute::sim
