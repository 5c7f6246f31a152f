#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "predict/calibration.hpp"
#include "predict/registry.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

PredictorParams small_params(std::string name) {
  PredictorParams params;
  params.name = std::move(name);
  params.half_life_requests = 100;
  params.min_requests = 5;
  params.key_min_requests = 2;
  params.max_keys = 3;
  return params;
}

constexpr std::int64_t kHorizon = 24;
constexpr std::int64_t kOldest = 40;

// One event, made of random bits: which prompt, which limit, how long, how it ended.
struct Over {
  explicit Over(std::uint32_t word)
      : request{.generated = Tokens{word % 8 == 7 ? word / 8 % 8 : 0},
                .output_limit = word / 64 % 4 == 3 ? Tokens{word / 256 % 32} : kMaxTokens,
                .prompt_key = word / 8192 % 6},
        generated{std::min(request.generated + Tokens{word / 65536 % 32}, request.output_limit)},
        how{word / 2097152 % 4 == 3 ? LeaseEnd::cut : LeaseEnd::finished} {}

  [[nodiscard]] bool limited() const { return generated >= request.output_limit; }

  Request request;
  Tokens generated;
  LeaseEnd how;
};

// P(more than x tokens) by the definition, from everything that was over: no tables, no sums.
class SlowSurvival {
 public:
  void add(const Over& over) {
    Seen seen{over.request.generated.count(), over.generated.count(), over.how == LeaseEnd::finished};
    if (seen.ended && over.limited()) {
      seen.ended = false;
      seen.last = over.request.output_limit.count() - 1;
    }
    all_.push_back(seen);
    if (!seen.ended || seen.last <= seen.first) return;
    if (++ends_ % 100 != 0) return;
    for (Seen& each : all_) each.weight /= 2;
  }
  [[nodiscard]] bool knows() const { return ends_ >= 5; }

  [[nodiscard]] double at(std::int64_t x) const {
    double survival = 1;
    for (std::int64_t y = 1; y <= x; ++y) {
      double at_risk = 0;
      double ends = 0;
      for (const Seen& seen : all_) {
        if (seen.first >= y || seen.last < y) continue;
        at_risk += seen.weight;
        if (seen.ended && seen.last == y) ends += seen.weight;
      }
      if (ends > 0) survival *= 1 - ends / at_risk;
    }
    return survival;
  }

  // P(it runs after h more | age), for each h.
  [[nodiscard]] std::vector<double> chances(std::int64_t age) const {
    std::vector<double> all(kHorizon + 1, 1);
    const double now = at(age);
    if (!knows() || now < 1e-12) return all;
    for (std::int64_t h = 0; h <= kHorizon; ++h) all[static_cast<std::size_t>(h)] = at(age + h) / now;
    return all;
  }

 private:
  struct Seen {
    std::int64_t first;
    std::int64_t last;
    bool ended;
    double weight = 1;
  };
  std::vector<Seen> all_;
  int ends_ = 0;
};

// The lengths of each prompt's answers, all of them, in a list by age of the last answer.
class SlowHistory {
 public:
  void add(const Over& over) {
    if (over.request.prompt_key == 0 || over.how == LeaseEnd::cut) return;
    Key key{over.request.prompt_key, {}};
    const auto known = std::ranges::find(keys_, key.key, &Key::key);
    if (known != keys_.end()) {
      key = *known;
      keys_.erase(known);
    }
    key.lengths.push_back(over.limited() ? 1'000'000 : over.generated.count());
    keys_.push_back(key);
    if (keys_.size() > 3) keys_.erase(keys_.begin());
  }

  [[nodiscard]] std::optional<std::vector<double>> chances(std::uint64_t prompt, std::int64_t age) const {
    const auto known = std::ranges::find(keys_, prompt, &Key::key);
    if (known == keys_.end() || known->lengths.size() < 2) return std::nullopt;
    const auto kept = std::span{known->lengths}.last(std::min<std::size_t>(known->lengths.size(), 32));
    std::vector<double> all;
    for (std::int64_t h = 0; h <= kHorizon; ++h) {
      all.push_back(static_cast<double>(std::ranges::count_if(kept, [=](std::int64_t o) { return o > age + h; })));
    }
    if (all[0] == 0) return std::nullopt;
    for (double& each : all | std::views::drop(1)) each /= all[0];
    all[0] = 1;
    return all;
  }

 private:
  struct Key {
    std::uint64_t key;
    std::vector<std::int64_t> lengths;
  };
  std::vector<Key> keys_;  // longest unseen first
};

void cap(std::vector<double>& chances, const Request& request, std::int64_t age) {
  for (std::int64_t h = 1; h <= kHorizon; ++h) {
    if (Tokens{age + h} >= request.output_limit) chances[static_cast<std::size_t>(h)] = 0;
  }
}

// Both answers of the predictor agree with the chances, and so with each other.
void require_answers(const Predictor& predictor, const Request& request, std::int64_t age,
                     const std::vector<double>& chances) {
  std::vector<std::uint32_t> fixed(kHorizon + 1);
  predictor.survival(request, Tokens{age}, fixed);
  require(fixed[0] == kCertain);
  double sum = 0;
  for (std::size_t h = 0; h < fixed.size(); ++h) {
    require(std::abs(fixed[h] - chances[h] * kCertain) <= 0.5 + 1e-6);
    if (h == 0) continue;
    require(fixed[h] <= fixed[h - 1]);
    sum += chances[h - 1];
    const Prediction its = predictor.predict(request, Tokens{age}, Steps{static_cast<std::int64_t>(h)});
    if (age < request.output_limit.count()) {
      require(std::abs(its.finish_chance - (1 - chances[h])) < 1e-9);
      require(std::abs(its.remaining(Steps{static_cast<std::int64_t>(h)}) - sum) < 1e-7);
    } else {
      require(its.finish_chance == 1 && its.mean_remaining == 0);
    }
    require(its.mean_remaining >= 0 && its.mean_remaining <= static_cast<double>(h));
  }
}

// Law: survival is the definition of the product-limit estimate over all that was over, ended by the output limit.
TEST(PredictorProperty, SurvivalEqualsTheDefinition) {
  check_property(10'000, [](const std::vector<std::uint32_t>& words, std::uint8_t age, std::uint8_t limit) {
    const auto predictor = std::move(make_predictor(small_params("survival"), nullptr)).value();
    SlowSurvival slow;
    for (const std::uint32_t word : words) {
      const Over over{word};
      for (std::uint32_t times = 0; times < 1 + word % 5; ++times) {
        predictor->ended(over.request, over.generated, over.how);
        slow.add(over);
      }
    }
    predictor->renew({});
    const Request request{.output_limit = limit % 2 == 0 ? kMaxTokens : Tokens{limit / 2}};
    std::vector<double> chances = slow.chances(age % kOldest);
    cap(chances, request, age % kOldest);
    require_answers(*predictor, request, age % kOldest, chances);
  });
}

// Law: exact_match is the list of the last answers to the same prompt, or survival where that says too little.
TEST(PredictorProperty, ExactMatchEqualsTheDefinition) {
  check_property(10'000, [](const std::vector<std::uint32_t>& words, std::uint8_t age, std::uint8_t key) {
    const auto predictor = std::move(make_predictor(small_params("exact_match"), nullptr)).value();
    SlowSurvival all;
    SlowHistory keyed;
    for (const std::uint32_t word : words) {
      const Over over{word};
      predictor->ended(over.request, over.generated, over.how);
      all.add(over);
      keyed.add(over);
      if (word % 16 == 0) predictor->renew({});
    }
    predictor->renew({});
    const Request request{.prompt_key = key % std::uint64_t{6}};
    const auto own = keyed.chances(request.prompt_key, age % kOldest);
    require_answers(*predictor, request, age % kOldest, own ? *own : all.chances(age % kOldest));
  });
}

// Law: calibration's figures are the means they are called after, over predictions whose outcome can be known.
TEST(PredictorProperty, ChecksEqualTheDefinition) {
  struct Outcome {
    double chance;
    bool happened;
  };
  check_property(10'000, [](const std::vector<std::uint32_t>& words, std::uint8_t horizon_word) {
    const std::int64_t horizon = 1 + horizon_word % 16;
    PredictionCheck check{Steps{horizon}};
    std::vector<Outcome> outcomes;
    for (const std::uint32_t word : words) {
      const std::int64_t length = word % 64;
      const std::int64_t every = 1 + word / 64 % 8;
      const bool cut = word / 512 % 4 == 0;
      OpenPrediction its;
      std::optional<std::int64_t> made;
      for (std::int64_t age = 0; age < length; age += every) {
        const double chance = static_cast<double>((word / 2048 + static_cast<std::uint32_t>(age)) % 101) / 100;
        check.predicted(its, Tokens{age}, chance);
        if (made && age <= *made + horizon) continue;
        made = age;
        const bool told_later = age + (horizon / every + 1) * every < length;
        const bool happened = !cut && length <= age + horizon;
        if (told_later || !cut || length >= age + horizon) outcomes.push_back({chance, happened});
      }
      check.ended(its, Tokens{length}, cut ? LeaseEnd::cut : LeaseEnd::finished);
    }
    double squares = 0;
    double predicted = 0;
    double happened = 0;
    for (const Outcome& outcome : outcomes) {
      squares += std::pow(outcome.chance - (outcome.happened ? 1 : 0), 2);
      predicted += outcome.chance;
      happened += outcome.happened ? 1 : 0;
    }
    const Calibration& figures = check.calibration();
    const double count = std::max<double>(1, static_cast<double>(outcomes.size()));
    require(figures.count() == std::ssize(outcomes));
    require(std::abs(figures.brier_score() - squares / count) < 1e-9);
    require(std::abs(figures.mean_predicted() - predicted / count) < 1e-9);
    require(std::abs(figures.mean_happened() - happened / count) < 1e-9);
  });
}

}  // namespace
}  // namespace balanceroute
