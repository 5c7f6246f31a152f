#include "proxy/group_meter.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/envelope.hpp"

namespace balanceroute::proxy {

void GroupMeter::see(std::span<const Tokens> loads, std::span<const std::int32_t> sequences) {
  envelope_ = mean_ = total_ = sequences_ = all_sequences_ = 0;
  if (loads.empty()) return;
  const auto heaviest = std::ranges::max_element(loads);
  envelope_ = static_cast<double>(heaviest->count());
  sequences_ = sequences[static_cast<std::size_t>(heaviest - loads.begin())];
  all_sequences_ = std::accumulate(sequences.begin(), sequences.end(), 0.0);
  total_ = static_cast<double>(total_load(loads).count());
  mean_ = total_ / static_cast<double>(loads.size());
}

void GroupMeter::stepped(Steps taken, std::optional<double> seconds) {
  if (taken <= Steps{0}) return;
  const auto steps = static_cast<double>(taken.count());
  if (seconds && *seconds > kLongestStepSeconds * steps) seconds.reset();
  if (seconds) learn(steps, *seconds);
  const double time = seconds.value_or(0);
  const Sums these{steps * envelope_, steps * mean_, time, idle_seconds_of(time)};
  const double fade = std::exp2(-steps / kHalfLife);
  steps_ += steps;
  for (const auto& [sums, kept] : {std::pair{&all_, 1.0}, std::pair{&late_, fade}}) {
    sums->envelope = sums->envelope * kept + these.envelope;
    sums->mean = sums->mean * kept + these.mean;
    sums->seconds = sums->seconds * kept + these.seconds;
    sums->idle_seconds = sums->idle_seconds * kept + these.idle_seconds;
  }
}

double GroupMeter::idle_seconds_of(double seconds) const {
  if (envelope_ <= 0) return 0;
  const double share_idle = (envelope_ - mean_) / envelope_;
  if (!line_) return seconds * share_idle;
  const double modelled = line_->fixed_ms + line_->per_token_ms * envelope_;
  return modelled > 0 ? seconds * share_idle * line_->per_token_ms * envelope_ / modelled : 0;
}

void GroupMeter::learn(double steps, double seconds) {
  const double fade = std::exp2(-steps / kStepHalfLife);
  timed_steps_ = timed_steps_ * fade + steps;
  timed_seconds_ = timed_seconds_ * fade + seconds;
  block_steps_ += steps;
  block_.step_ms += 1000 * seconds;
  // Meanwhile every sequence has grown by a token a step.
  const double later = (steps - 1) / 2;
  block_.max_tokens += steps * (envelope_ + later * sequences_);
  block_.sequences += steps * sequences_;
  block_.total_tokens += steps * (total_ + later * all_sequences_);
  if (block_steps_ < kBlock) return;
  const StepBlock mean{.step_ms = block_.step_ms / block_steps_,
                       .max_tokens = block_.max_tokens / block_steps_,
                       .sequences = block_.sequences / block_steps_,
                       .total_tokens = block_.total_tokens / block_steps_};
  fit_.record(Tokens{std::llround(mean.max_tokens)}, mean.step_ms);
  line_ = fit_.line();
  trail_.add(mean);
  block_steps_ = 0;
  block_ = {};
}

GroupMeasures GroupMeter::measures() const {
  GroupMeasures out{.steps = steps_,
                    .tokens_read = all_.envelope,
                    .tokens_read_mean = all_.mean,
                    .seconds = all_.seconds,
                    .idle_seconds = all_.idle_seconds};
  if (timed_steps_ > 0) out.step_seconds = timed_seconds_ / timed_steps_;
  if (late_.envelope > 0) out.load_idle_fraction = (late_.envelope - late_.mean) / late_.envelope;
  out.barrier_idle_fraction = late_.seconds > 0 ? late_.idle_seconds / late_.seconds : out.load_idle_fraction;
  if (line_) {
    out.source = PriceSource::measured;
    out.fixed_ms = line_->fixed_ms;
    out.per_token_ms = line_->per_token_ms;
  }
  return out;
}

}  // namespace balanceroute::proxy
