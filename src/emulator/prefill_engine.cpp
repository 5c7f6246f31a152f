#include "emulator/prefill_engine.hpp"

namespace balanceroute::emulator {

PrefillEngine::Prompt::Prompt(PrefillEngine& engine, RequestId id, Tokens tokens)
    : engine_{engine}, id_{id}, tokens_{tokens}, computed_{engine.thread_} {}

PrefillEngine::Prompt::~Prompt() {
  engine_.give_up(*this);
}

PrefillEngine::PrefillEngine(net::IoThread& thread, StepTime time, Tokens kv_capacity)
    : thread_{thread},
      kv_capacity_{kv_capacity},
      stage_{{.instances = 1, .time = time, .kv_capacity = kv_capacity}},
      timer_{thread.timers()} {}

std::unique_ptr<PrefillEngine::Prompt> PrefillEngine::submit(Tokens tokens) {
  const RequestId id{next_id_++};
  std::unique_ptr<Prompt> prompt{new Prompt{*this, id, tokens}};
  prompts_.emplace(id, prompt.get());
  stage_.submit(id, tokens, now());
  arm();
  return prompt;
}

void PrefillEngine::arm() {
  const auto next = stage_.next();
  timer_.arm(next ? net::TimePoint{*next} : net::kNever, [this] { finish_due(); });
}

void PrefillEngine::finish_due() {
  for (auto next = stage_.next(); next && *next <= now(); next = stage_.next()) {
    Prompt& prompt = *prompts_.at(stage_.pop().id);
    ++computed_prompts_;
    computed_tokens_ += prompt.tokens_.count();
    prompt.computed_.set();
  }
  arm();
}

void PrefillEngine::give_up(Prompt& prompt) {
  prompts_.erase(prompt.id_);
  if (prompt.computed_.is_set()) {
    stage_.pulled(0, prompt.tokens_, now());
  } else {
    stage_.cancel(prompt.id_, now());
  }
  arm();
}

}  // namespace balanceroute::emulator
