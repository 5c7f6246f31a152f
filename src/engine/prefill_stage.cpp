#include "engine/prefill_stage.hpp"

#include <cassert>

namespace balanceroute::engine {

PrefillStage::PrefillStage(const PrefillSettings& settings) : settings_{settings}, instances_(settings.instances) {
  assert(settings.instances >= 1);
}

void PrefillStage::submit(RequestId id, Tokens prompt, Moment now) {
  queue_.push_back({id, prompt});
  start_waiting(now);
}

std::optional<PrefillStage::Moment> PrefillStage::next() const {
  const Instance* first = first_ready();
  if (first == nullptr) return std::nullopt;
  return first->ready;
}

PrefillStage::Ready PrefillStage::pop() {
  const Instance* first = first_ready();
  assert(first != nullptr);
  const auto index = static_cast<std::size_t>(first - instances_.data());
  const Ready ready{.id = first->at_work->id, .instance = index, .at = first->ready};
  instances_[index].at_work.reset();
  start_waiting(ready.at);
  return ready;
}

bool PrefillStage::cancel(RequestId id, Moment now) {
  bool found = std::erase_if(queue_, [id](const Waiting& waiting) { return waiting.id == id; }) > 0;
  for (Instance& instance : instances_) {
    if (!instance.at_work || instance.at_work->id != id) continue;
    instance.held -= instance.at_work->prompt;
    instance.at_work.reset();
    found = true;
  }
  if (found) start_waiting(now);
  return found;
}

void PrefillStage::pulled(std::size_t instance, Tokens prompt, Moment now) {
  assert(instances_[instance].held >= prompt);
  instances_[instance].held -= prompt;
  start_waiting(now);
}

const PrefillStage::Instance* PrefillStage::first_ready() const {
  const Instance* first = nullptr;
  for (const Instance& instance : instances_) {
    if (instance.at_work && (first == nullptr || instance.ready < first->ready)) first = &instance;
  }
  return first;
}

PrefillStage::Instance* PrefillStage::taker(Tokens prompt) {
  Instance* best = nullptr;
  for (Instance& instance : instances_) {
    if (instance.at_work) continue;
    // No sum: the capacity may be the largest number.
    if (instance.held > Tokens{0} && instance.held > settings_.kv_capacity - prompt) continue;
    if (best == nullptr || instance.held < best->held) best = &instance;
  }
  return best;
}

void PrefillStage::start_waiting(Moment now) {
  while (!queue_.empty()) {
    const Waiting first = queue_.front();
    Instance* instance = taker(first.prompt);
    if (instance == nullptr) return;
    queue_.pop_front();
    instance->at_work = first;
    instance->ready = now + settings_.time.duration(first.prompt);
    instance->held += first.prompt;
  }
}

}  // namespace balanceroute::engine
