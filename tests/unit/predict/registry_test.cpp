#include "predict/registry.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

namespace balanceroute {
namespace {

class FixedLengths final : public LengthOracle {
 public:
  [[nodiscard]] Tokens output_of(RequestId request) const override {
    return Tokens{static_cast<std::int64_t>(request.value())};
  }
};

std::unique_ptr<Predictor> make(PredictorParams params, const LengthOracle* oracle = nullptr) {
  return std::move(make_predictor(params, oracle)).value();
}

// Law: every name makes the predictor of that name.
TEST(PredictorRegistry, MakesWhatIsNamed) {
  const FixedLengths lengths;
  for (const std::string_view name : predictor_names()) {
    EXPECT_EQ(make({.name = std::string{name}}, &lengths)->name(), name);
  }
  EXPECT_EQ(std::vector(predictor_names().begin(), predictor_names().end()),
            (std::vector<std::string_view>{"survival", "exact_match", "oracle"}));
}

// Law: a wrong setting is refused with name, value and range; an oracle without a trace with the reason.
TEST(PredictorRegistry, RefusesWhatItCannotMake) {
  EXPECT_EQ(make_predictor({.name = "psychic"}, nullptr).error(),
            "predictor.name = psychic: expected one of survival, exact_match, oracle");
  EXPECT_EQ(make_predictor({.half_life_requests = 99}, nullptr).error(),
            "predictor.half_life_requests = 99: expected 100..1000000000");
  EXPECT_EQ(make_predictor({.name = "oracle"}, nullptr).error(),
            "predictor.name = oracle: it reads the lengths of answers from a trace, which only a simulation has; "
            "expected one of survival, exact_match");
}

// Law: what learns ends at the request's output limit, whatever it learned.
TEST(PredictorRegistry, LearnedLengthsEndAtTheLimit) {
  for (const std::string name : {"survival", "exact_match"}) {
    const auto predictor = make({.name = name});
    const Request limited{.output_limit = Tokens{100}};
    EXPECT_EQ(predictor->predict(limited, Tokens{0}, Steps{80}).finish_chance, 0);
    EXPECT_EQ(predictor->predict(limited, Tokens{30}, Steps{80}).finish_chance, 1);
    EXPECT_EQ(predictor->predict(limited, Tokens{30}, Steps{80}).remaining(Steps{80}), 70);
    EXPECT_EQ(predictor->predict(limited, Tokens{20}, Steps{80}).finish_chance, 1);  // at the very end
    EXPECT_EQ(predictor->predict(limited, Tokens{19}, Steps{80}).finish_chance, 0);
    EXPECT_EQ(predictor->predict(limited, Tokens{100}, Steps{80}).remaining(Steps{80}), 0);
    EXPECT_EQ(predictor->predict(limited, Tokens{101}, Steps{80}).remaining(Steps{80}), 0);
    std::array<std::uint32_t, 4> chances{};
    predictor->survival(limited, Tokens{98}, chances);
    EXPECT_EQ(chances, (std::array<std::uint32_t, 4>{kCertain, kCertain, 0, 0}));
    predictor->survival(limited, Tokens{100}, chances);
    EXPECT_EQ(chances, (std::array<std::uint32_t, 4>{kCertain, 0, 0, 0}));
  }
}

// Law: events, renewals and hits pass through to the predictor that learns.
TEST(PredictorRegistry, ACappedPredictorLearns) {
  const auto predictor = make({.name = "exact_match", .key_min_requests = 1});
  EXPECT_FALSE(predictor->wants_renewal());
  EXPECT_FALSE(predictor->informed());
  predictor->ended({.prompt_key = 5}, Tokens{12}, LeaseEnd::finished);
  EXPECT_TRUE(predictor->wants_renewal());
  predictor->renew({});
  EXPECT_TRUE(predictor->informed());
  predictor->ended({.prompt_key = 5}, Tokens{12}, LeaseEnd::finished);
  EXPECT_EQ(predictor->key_hits().hits, 1);
  EXPECT_EQ(predictor->predict({.prompt_key = 5}, Tokens{2}, Steps{80}).mean_remaining, 10);
}

// Law: the oracle is right about every request of every age.
TEST(PredictorRegistry, TheOracleKnows) {
  const FixedLengths lengths;
  const auto oracle = make({.name = "oracle"}, &lengths);
  const Request request{.id = RequestId{50}};
  EXPECT_EQ(oracle->predict(request, Tokens{10}, Steps{39}).finish_chance, 0);
  EXPECT_EQ(oracle->predict(request, Tokens{10}, Steps{40}).finish_chance, 1);
  EXPECT_EQ(oracle->predict(request, Tokens{10}, Steps{80}).mean_remaining, 40);
  std::array<std::uint32_t, 3> chances{};
  oracle->survival(request, Tokens{48}, chances);
  EXPECT_EQ(chances, (std::array<std::uint32_t, 3>{kCertain, kCertain, 0}));
  oracle->survival(request, Tokens{50}, chances);
  EXPECT_EQ(chances, (std::array<std::uint32_t, 3>{kCertain, 0, 0}));
  oracle->ended(request, Tokens{50}, LeaseEnd::finished);
  EXPECT_TRUE(oracle->informed());
  EXPECT_FALSE(oracle->wants_renewal());
  EXPECT_EQ(oracle->key_hits().requests, 0);
}

}  // namespace
}  // namespace balanceroute
