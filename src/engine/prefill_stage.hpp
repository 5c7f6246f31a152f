// prefill_stage.hpp - prefill instances that compute prompts before decode workers may have them.
//
// It has no clock: moments come in with every call. One queue in order of arrival, instances that take one prompt at a
// time. A prefilled prompt's KV stays with its instance until the decode worker has pulled it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "stats/step_time.hpp"

namespace balanceroute::engine {

struct PrefillSettings {
  std::size_t instances = 1;
  StepTime time;                                                          // of a prompt, by its tokens
  Tokens kv_capacity = Tokens{std::numeric_limits<std::int64_t>::max()};  // of an instance
};

// PrefillStage says when each prompt is ready.
//   Order       first come, first served; the first one waits until an instance is free and has KV space for it, and
//               nobody overtakes it. Of several such instances it takes the one that holds least, the lowest of equals.
//               An instance that holds nothing takes any prompt.
//   Cost        submit, pop and pulled O(instances), cancel O(instances + waiting); memory in waiting prompts.
//   Threads     not synchronised.
class PrefillStage {
 public:
  using Moment = std::chrono::nanoseconds;  // since whatever the owner counts from; never goes back

  struct Ready {
    RequestId id;
    std::size_t instance = 0;
    Moment at{0};
  };

  explicit PrefillStage(const PrefillSettings& settings);

  void submit(RequestId id, Tokens prompt, Moment now);

  // When the next prompt is ready, if one is being computed; of equals the lowest instance.
  [[nodiscard]] std::optional<Moment> next() const;
  // That one. What waits goes on from that moment.
  Ready pop();

  // A prompt that waits or is being computed is not wanted any more; false when it is neither.
  bool cancel(RequestId id, Moment now);

  // The KV of a prompt has left the instance.
  void pulled(std::size_t instance, Tokens prompt, Moment now);

  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  [[nodiscard]] bool at_work(std::size_t instance) const { return instances_[instance].at_work.has_value(); }
  [[nodiscard]] Tokens held(std::size_t instance) const { return instances_[instance].held; }

 private:
  struct Waiting {
    RequestId id;
    Tokens prompt;
  };
  struct Instance {
    std::optional<Waiting> at_work;
    Moment ready{0};
    Tokens held{0};  // prompts at work and not yet pulled
  };

  [[nodiscard]] Instance* taker(Tokens prompt);
  [[nodiscard]] const Instance* first_ready() const;
  void start_waiting(Moment now);

  PrefillSettings settings_;
  std::vector<Instance> instances_;
  std::deque<Waiting> queue_;
};

}  // namespace balanceroute::engine
