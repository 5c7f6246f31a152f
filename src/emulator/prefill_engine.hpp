// prefill_engine.hpp - drives one prefill rank of the engine model in real time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "engine/prefill_stage.hpp"
#include "net/event.hpp"
#include "net/io_thread.hpp"

namespace balanceroute::emulator {

// PrefillEngine computes prompts one after the other and holds their KV.
//   Lifetime  outlives its prompts.
//   Threads   only on `thread`.
class PrefillEngine {
 public:
  PrefillEngine(net::IoThread& thread, StepTime time, Tokens kv_capacity);

  // Prompt is one prompt's place in the engine: waiting, at work or held. Destroying it gives the place up.
  class Prompt {
   public:
    ~Prompt();
    Prompt(const Prompt&) = delete;
    Prompt& operator=(const Prompt&) = delete;

    // Set once it is computed.
    [[nodiscard]] net::Event& computed() { return computed_; }
    [[nodiscard]] Tokens tokens() const { return tokens_; }

   private:
    friend class PrefillEngine;
    Prompt(PrefillEngine& engine, RequestId id, Tokens tokens);

    PrefillEngine& engine_;
    RequestId id_;
    Tokens tokens_;
    net::Event computed_;
  };

  [[nodiscard]] std::unique_ptr<Prompt> submit(Tokens tokens);

  [[nodiscard]] std::int64_t running() const { return stage_.at_work(0) ? 1 : 0; }
  [[nodiscard]] std::int64_t waiting() const { return static_cast<std::int64_t>(stage_.waiting()); }
  [[nodiscard]] Tokens held() const { return stage_.held(0); }                // at work and computed
  [[nodiscard]] std::size_t live_prompts() const { return prompts_.size(); }  // in any state
  [[nodiscard]] Tokens kv_capacity() const { return kv_capacity_; }
  [[nodiscard]] std::int64_t computed_prompts() const { return computed_prompts_; }
  [[nodiscard]] std::int64_t computed_tokens() const { return computed_tokens_; }

 private:
  [[nodiscard]] engine::PrefillStage::Moment now() const { return thread_.now().time_since_epoch(); }
  void arm();
  void finish_due();
  void give_up(Prompt& prompt);

  net::IoThread& thread_;
  Tokens kv_capacity_;
  engine::PrefillStage stage_;
  net::Timer timer_;
  std::unordered_map<RequestId, Prompt*> prompts_;
  std::uint64_t next_id_ = 0;
  std::int64_t computed_prompts_ = 0;
  std::int64_t computed_tokens_ = 0;
};

}  // namespace balanceroute::emulator
