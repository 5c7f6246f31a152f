#include "sim/prediction_study.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "predict/exact_match.hpp"
#include "predict/registry.hpp"
#include "predict/survival.hpp"
#include "trace/reader.hpp"

namespace balanceroute::sim {
namespace {

using std::chrono::nanoseconds;

// One predictor on its way through the requests.
class Forecaster {
 public:
  Forecaster(PredictorParams params, std::string_view name, bool capped, Steps horizon, std::size_t answers)
      : capped_{capped}, horizon_{horizon}, check_{horizon}, open_(answers) {
    params.name = name;
    predictor_ = std::move(*make_predictor(params, nullptr));
  }

  void foretell(std::size_t which, const PastAnswer& answer, Tokens age) {
    if (!predictor_->informed()) return;
    const Prediction its = predictor_->predict(request_of(answer), age, horizon_);
    check_.predicted(open_[which], age, its.finish_chance);
    if (!answer.complete) return;
    const double truth = static_cast<double>(std::min((answer.output - age).count(), horizon_.count()));
    errors_ += std::abs(its.remaining(horizon_) - truth);
    ++foretold_;
  }

  void ended(std::size_t which, const PastAnswer& answer) {
    const LeaseEnd how = answer.complete ? LeaseEnd::finished : LeaseEnd::cut;
    check_.ended(open_[which], answer.output, how);
    predictor_->ended(request_of(answer), answer.output, how);
  }
  [[nodiscard]] bool wants_renewal() const { return predictor_->wants_renewal(); }
  void renew(std::span<const LifeSpan> running) { predictor_->renew(running); }

  [[nodiscard]] PredictorResult result() const {
    return {.name = std::string{predictor_->name()},
            .capped = capped_,
            .calibration = check_.calibration(),
            .key_hits = predictor_->key_hits(),
            .mean_error_tokens = foretold_ > 0 ? errors_ / static_cast<double>(foretold_) : 0};
  }

 private:
  [[nodiscard]] Request request_of(const PastAnswer& answer) const {
    return {.id = {},
            .prompt = answer.prompt,
            .output_limit = capped_ ? answer.output_limit : kMaxTokens,
            .prompt_key = answer.prompt_key};
  }

  bool capped_;
  Steps horizon_;
  std::unique_ptr<Predictor> predictor_;
  PredictionCheck check_;
  std::vector<OpenPrediction> open_;  // by answer
  double errors_ = 0;
  std::int64_t foretold_ = 0;
};

// Playback goes through the answers in time.
class Playback {
 public:
  Playback(const std::vector<PastAnswer>& answers, std::vector<Forecaster>& forecasters, Tokens every)
      : answers_{answers}, forecasters_{forecasters}, every_{every} {}

  void run() {
    for (std::size_t next = 0; next < answers_.size(); ++next) {
      pass_until(answers_[next].start);
      running_.push_back(next);
      foretell({answers_[next].start, Kind::look, next, Tokens{0}});
    }
    pass_until(nanoseconds::max());
  }

 private:
  enum class Kind : std::uint8_t { end, look };  // at one moment ends go first
  struct Event {
    nanoseconds at;
    Kind kind;
    std::size_t which;
    Tokens age;

    friend bool operator>(const Event& a, const Event& b) {
      return std::tie(a.at, a.kind, a.which) > std::tie(b.at, b.kind, b.which);
    }
  };

  void pass_until(nanoseconds time) {
    while (!events_.empty() && events_.top().at <= time) {
      const Event event = events_.top();
      events_.pop();
      if (event.kind == Kind::end) {
        end(event);
      } else {
        foretell(event);
      }
    }
  }

  // Predicts, and plans what comes next: another look once the prediction has run out, or the end.
  void foretell(const Event& look) {
    const PastAnswer& answer = answers_[look.which];
    for (Forecaster& one : forecasters_) one.foretell(look.which, answer, look.age);
    const Tokens later = look.age + every_;
    if (later < answer.output) {
      events_.push({moment_of(answer, later), Kind::look, look.which, later});
    } else {
      events_.push({answer.end, Kind::end, look.which, answer.output});
    }
  }

  void end(const Event& event) {
    std::erase(running_, event.which);
    std::optional<std::vector<LifeSpan>> lives;
    for (Forecaster& one : forecasters_) {
      one.ended(event.which, answers_[event.which]);
      if (!one.wants_renewal()) continue;
      if (!lives) lives = lives_at(event.at);
      one.renew(*lives);
    }
  }

  [[nodiscard]] std::vector<LifeSpan> lives_at(nanoseconds now) const {
    std::vector<LifeSpan> lives;
    for (const std::size_t which : running_) {
      const PastAnswer& answer = answers_[which];
      const double share = static_cast<double>((now - answer.start).count()) /
                           static_cast<double>(std::max<std::int64_t>((answer.end - answer.start).count(), 1));
      const auto age = static_cast<std::int64_t>(std::min(share, 1.0) * static_cast<double>(answer.output.count()));
      lives.push_back({.last_seen = Tokens{age}});
    }
    return lives;
  }

  static nanoseconds moment_of(const PastAnswer& answer, Tokens age) {
    const double share = static_cast<double>(age.count()) / static_cast<double>(answer.output.count());
    const auto span = static_cast<double>((answer.end - answer.start).count());
    return answer.start + nanoseconds{static_cast<std::int64_t>(share * span)};
  }

  const std::vector<PastAnswer>& answers_;
  std::vector<Forecaster>& forecasters_;
  Tokens every_;
  std::vector<std::size_t> running_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

std::expected<std::vector<PastAnswer>, std::string> answers_of_trace(const PredictionParams& params) {
  trace::ReadOptions options{.skip_bad_rows = params.skip_bad_rows};
  if (params.limit != PredictionParams::kAll) options.limit = params.limit;
  const auto trace = trace::read_trace(params.trace, options);
  if (!trace) return std::unexpected(trace.error());
  std::vector<PastAnswer> answers;
  for (const trace::TraceRequest& request : trace->requests) {
    const auto span = static_cast<double>(request.output.count()) * params.step_ms * 1e6;
    answers.push_back({.start = request.arrival,
                       .end = request.arrival + nanoseconds{static_cast<std::int64_t>(span)},
                       .prompt = request.prompt,
                       .output = request.output,
                       .prompt_key = trace::prompt_key(request)});
  }
  return answers;
}

std::expected<std::vector<PastAnswer>, std::string> answers_of_history(const PredictionParams& params) {
  std::vector<PastAnswer> answers;
  const auto most = params.limit == PredictionParams::kAll ? std::numeric_limits<std::int64_t>::max() : params.limit;
  const auto read = trace::each_record(params.history, [&](const history::Record& record) {
    if (record.output <= Tokens{0} || record.output_each() > kMaxTokens) return;
    const nanoseconds arrived = record.arrived.time_since_epoch();
    const PastAnswer answer{.start = arrived + record.first_token.value_or(record.total),
                            .end = arrived + record.total,
                            .prompt = record.prompt,
                            .output = record.output_each(),
                            .output_limit = std::min(record.output_limit.value_or(kMaxTokens), kMaxTokens),
                            .prompt_key = record.prompt_key,
                            .complete = record.complete};
    for (std::int32_t i = 0; i < record.sequences && std::ssize(answers) < most; ++i) answers.push_back(answer);
  });
  if (!read) return std::unexpected(read.error());
  std::ranges::stable_sort(answers, {}, &PastAnswer::start);
  return answers;
}

}  // namespace

std::vector<PredictorResult> foretell(const std::vector<PastAnswer>& answers, const PredictionParams& params) {
  const Steps horizon{params.horizon_steps};
  std::vector<Forecaster> forecasters;
  for (const std::string_view name : {SurvivalPredictor::kName, ExactMatch::kName}) {
    for (const bool capped : {false, true}) {
      forecasters.emplace_back(params.predictor, name, capped, horizon, answers.size());
    }
  }
  Playback{answers, forecasters, Tokens{params.horizon_steps + 1}}.run();
  std::vector<PredictorResult> results;
  for (const Forecaster& one : forecasters) results.push_back(one.result());
  return results;
}

std::expected<PredictionStudy, std::string> study_predictions(const PredictionParams& params) {
  if (params.trace.empty() != params.history.given()) return std::unexpected("expected one of --trace and --history");
  const std::string& source = params.history.given() ? params.history.history : params.trace;
  const auto answers = params.history.given() ? answers_of_history(params) : answers_of_trace(params);
  if (!answers) return std::unexpected(answers.error());
  if (answers->empty()) return std::unexpected(source + ": has no request that generated anything");
  const auto count = [&](auto has) { return static_cast<std::int64_t>(std::ranges::count_if(*answers, has)); };
  return PredictionStudy{.source = std::filesystem::path{source}.filename().string(),
                         .horizon_steps = params.horizon_steps,
                         .answers = std::ssize(*answers),
                         .cut = count([](const PastAnswer& one) { return !one.complete; }),
                         .limited = count([](const PastAnswer& one) { return one.output_limit < kMaxTokens; }),
                         .keyed = count([](const PastAnswer& one) { return one.prompt_key != 0; }),
                         .predictors = foretell(*answers, params)};
}

}  // namespace balanceroute::sim
