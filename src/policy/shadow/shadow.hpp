// shadow.hpp - what is common to policies that only look on, and what keeps them from harming the one that decides.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/ids.hpp"

namespace balanceroute {

// What a shadow may cost, as its owner sees it.
struct ShadowLimits {
  std::function<std::chrono::nanoseconds()> now{};  // the time; none: rounds are not measured
  std::chrono::nanoseconds slow_round = std::chrono::milliseconds{5};
  std::function<void(std::string_view why)> stopped{};  // called once, when it is asked no more
};

// ShadowGuard runs what a shadow does until that throws, or is slow too often: then it is over for good.
//   Slow     three rounds that took longer than `slow_round` within a minute.
//   Threads  as its shadow's.
class ShadowGuard {
 public:
  explicit ShadowGuard(ShadowLimits limits) : limits_{std::move(limits)} {}

  [[nodiscard]] bool is_on() const { return why_.empty(); }
  // Why it is off; empty while it is on.
  [[nodiscard]] const std::string& why() const { return why_; }
  // The time that its rounds have taken so far.
  [[nodiscard]] std::chrono::nanoseconds spent() const { return spent_; }

  template <class Work>
  void run(Work&& work) {
    if (!is_on()) return;
    try {
      std::forward<Work>(work)();
    } catch (const std::exception& failure) {
      stop(std::string{"it failed: "} + failure.what());
    }
  }

  // The same of a round, whose time is measured.
  template <class Work>
  void run_round(Work&& work) {
    if (!limits_.now || !is_on()) return run(std::forward<Work>(work));
    const std::chrono::nanoseconds began = limits_.now();
    run(std::forward<Work>(work));
    took(began, limits_.now());
  }

 private:
  static constexpr std::size_t kSlowRounds = 3;

  void took(std::chrono::nanoseconds began, std::chrono::nanoseconds ended);
  void stop(std::string why);

  ShadowLimits limits_;
  std::string why_;
  std::chrono::nanoseconds spent_{0};
  std::array<std::optional<std::chrono::nanoseconds>, kSlowRounds> slow_{};  // when the last of them ended, in turn
  std::size_t turn_ = 0;
};

// Shadow is a policy beside the one that decides.
class Shadow {
 public:
  explicit Shadow(ShadowLimits limits) : guard_{std::move(limits)} {}
  virtual ~Shadow() = default;

  [[nodiscard]] const ShadowGuard& guard() const { return guard_; }
  // Where it would have put a request in the round that has just been, or has it in its own world.
  [[nodiscard]] virtual std::optional<WorkerId> choice(RequestId request) const = 0;

 protected:
  ShadowGuard guard_;
};

}  // namespace balanceroute
