#include "replay/result_builder.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "stats/length_buckets.hpp"

namespace balanceroute::replay {
namespace {

constexpr std::size_t kMostErrorsKept = 5;

double milliseconds(net::Duration duration) {
  return std::chrono::duration<double, std::milli>{duration}.count();
}

}  // namespace

void PartBuilder::add(net::TimePoint due, const Outcome& outcome) {
  ++counts_.requests;
  counts_.retries += outcome.retries;
  if (outcome.fault) {
    ++counts_.errors;
    ++counts_.errors_by_kind[static_cast<std::size_t>(outcome.fault->kind)];
    return;
  }
  ++counts_.completed;
  counts_.tokens += outcome.tokens.count();
  add_times(due, outcome);
}

void PartBuilder::add_cut(net::TimePoint due, const Outcome& outcome, std::int64_t ReplayPart::* counter) {
  ++counts_.requests;
  ++(counts_.*counter);
  counts_.retries += outcome.retries;
  if (outcome.first_token) ttft_ms_.push_back(milliseconds(*outcome.first_token - due));
}

void PartBuilder::add_times(net::TimePoint due, const Outcome& outcome) {
  e2e_ms_.push_back(milliseconds(outcome.end - due));
  if (!outcome.first_token) return;
  ttft_ms_.push_back(milliseconds(*outcome.first_token - due));
  if (outcome.tokens <= Tokens{1}) return;
  tpot_ms_.push_back(milliseconds(outcome.last_token - *outcome.first_token) /
                     static_cast<double>(outcome.tokens.count() - 1));
}

ReplayPart PartBuilder::part(double seconds) const {
  ReplayPart part = counts_;
  part.throughput_tokens_per_s = seconds > 0 ? static_cast<double>(part.tokens) / seconds : 0;
  part.ttft_ms = summarize(ttft_ms_);
  part.tpot_ms = summarize(tpot_ms_);
  part.e2e_ms = summarize(e2e_ms_);
  return part;
}

void ResultBuilder::add(const RequestLengths& lengths, net::TimePoint due, const Outcome& outcome) {
  const bool cut = outcome.left || (cut_ && outcome.fault);
  for (PartBuilder* part : {&whole_, &by_prompt_[length_bucket(lengths.prompt, kPromptBucketEnds)],
                            &by_output_[length_bucket(lengths.output, kOutputBucketEnds)]}) {
    if (cut) {
      part->add_cut(due, outcome, outcome.left ? &ReplayPart::left : &ReplayPart::unfinished);
    } else {
      part->add(due, outcome);
    }
  }
  if (outcome.sent) {
    send_late_ms_.push_back(milliseconds(*outcome.sent - due));
    if (send_late_ms_.back() > ReplayResult::kLateMs) ++rest_.late_sends;
  }
  if (cut) return;
  if (outcome.fault) return note(outcome.fault->text);
  end_ = std::max(end_, outcome.end);
  count_prompt(lengths, outcome);
}

void ResultBuilder::count_prompt(const RequestLengths& lengths, const Outcome& outcome) {
  if (!outcome.prompt) return;
  rest_.prompt_tokens_stated += lengths.prompt;
  rest_.prompt_tokens_counted += *outcome.prompt;
}

void ResultBuilder::note(std::string error) {
  if (rest_.first_errors.size() < kMostErrorsKept) rest_.first_errors.push_back(std::move(error));
}

ReplayResult ResultBuilder::result() const {
  const double seconds = milliseconds(end_ - begin_) / 1e3;
  ReplayResult result = rest_;
  static_cast<ReplayPart&>(result) = whole_.part(seconds);
  for (std::size_t i = 0; i < kLengthBuckets; ++i) {
    result.by_prompt[i] = by_prompt_[i].part(seconds);
    result.by_output[i] = by_output_[i].part(seconds);
  }
  result.send_late_ms = summarize(send_late_ms_);
  return result;
}

}  // namespace balanceroute::replay
