#include "policy/br_h/projection.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/ledger.hpp"
#include "core/random.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

// What a made-up predictor says of a request and age: anything, but the same until renewed.
class MadeUp final : public Predictor {
 public:
  [[nodiscard]] std::string_view name() const override { return "made_up"; }
  void ended(const Request&, Tokens, LeaseEnd) override { ++ends_; }
  [[nodiscard]] bool informed() const override { return true; }
  [[nodiscard]] bool wants_renewal() const override { return ends_ >= 5; }
  void renew(std::span<const LifeSpan> running) override {
    ends_ = 0;
    salt_ += running.size() + 1;
  }
  [[nodiscard]] Prediction predict(const Request& request, Tokens age, Steps horizon) const override {
    Random draw{seed(request, age)};
    return {.finish_chance = static_cast<double>(draw.below(3)) / 2,
            .mean_remaining = static_cast<double>(draw.below(static_cast<std::uint64_t>(horizon.count()) + 1))};
  }
  void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const override {
    Random draw{seed(request, age)};
    std::uint32_t chance = kCertain;
    for (std::uint32_t& its : chances) {
      its = chance;
      if (draw.below(3) == 0) chance -= static_cast<std::uint32_t>(draw.below(chance + 1));
    }
  }

 private:
  [[nodiscard]] std::uint64_t seed(const Request& request, Tokens age) const {
    return mix_bits(request.id.value() * 7919 + static_cast<std::uint64_t>(age.count())) + salt_;
  }

  std::uint64_t ends_ = 0;
  std::uint64_t salt_ = 0;
};

struct Known {
  Request request;
  GroupId group;
  std::uint32_t worker;
  std::int64_t age;
  bool grows;
  std::int64_t since;                  // step of the group at which it was predicted
  std::vector<std::uint32_t> chances;  // then
};

// The projection as it is defined: nothing kept but what each request was last predicted, everything summed anew.
class SlowProjection {
 public:
  SlowProjection(const ProjectionSettings& settings) : settings_{settings} {}

  void predict(Known& known) {
    known.since = clock[known.group.value()];
    known.chances.assign(static_cast<std::size_t>((settings_.horizon + settings_.refresh).count()), 0);
    if (settings_.shape == ProjectionShape::survival) {
      predictor.survival(known.request, Tokens{known.age}, known.chances);
      return;
    }
    const double end =
        predictor.predict(known.request, Tokens{known.age}, settings_.horizon).remaining(settings_.horizon);
    const bool stays = std::llround(end) >= settings_.horizon.count();
    for (std::size_t x = 0; x < known.chances.size(); ++x) {
      known.chances[x] =
          stays || static_cast<std::int64_t>(x) < std::max<std::int64_t>(1, std::llround(end)) ? kCertain : 0;
    }
  }

  [[nodiscard]] Tokens load(std::uint32_t worker, Tokens now, std::int64_t h) const {
    if (h == 0) return now;
    std::int64_t sum = 0;
    for (const auto& [id, known] : all) {
      if (known.worker != worker) continue;
      const std::int64_t elapsed = clock[known.group.value()] - known.since;
      const std::int64_t grown = settings_.growth && known.grows ? h : 0;
      const std::int64_t weight = (known.request.prompt.count() + known.age + grown) * known.request.sequences;
      sum += weight * known.chances[static_cast<std::size_t>(elapsed + h)];
    }
    return Tokens{(sum + kCertain / 2) >> 16};
  }

  std::map<std::uint64_t, Known> all;
  std::vector<std::int64_t> clock = std::vector<std::int64_t>(2);
  MadeUp predictor;

 private:
  ProjectionSettings settings_;
};

ProjectionSettings draw_settings(Random& draw) {
  return {.horizon = Steps{static_cast<std::int64_t>(1 + draw.below(12))},
          .refresh = Steps{static_cast<std::int64_t>(1 + draw.below(6))},
          .shape = draw.below(2) == 0 ? ProjectionShape::point : ProjectionShape::survival,
          .growth = draw.below(2) == 0};
}

// Both versions under the same random history. The slow one is told by the law which requests are predicted anew: each
// once in `refresh` steps. Which turn a request has is not the law's business, so turns are learned from the fast one's
// predictor, which notes whom it was asked about.
class Asked final : public Predictor {
 public:
  explicit Asked(std::vector<std::uint64_t>& asked) : asked_{asked} {}

  [[nodiscard]] std::string_view name() const override { return inner_.name(); }
  void ended(const Request& request, Tokens generated, LeaseEnd how) override { inner_.ended(request, generated, how); }
  [[nodiscard]] bool informed() const override { return inner_.informed(); }
  [[nodiscard]] bool wants_renewal() const override { return inner_.wants_renewal(); }
  void renew(std::span<const LifeSpan> running) override { inner_.renew(running); }
  [[nodiscard]] Prediction predict(const Request& request, Tokens age, Steps horizon) const override {
    asked_.push_back(request.id.value());
    return inner_.predict(request, age, horizon);
  }
  void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const override {
    asked_.push_back(request.id.value());
    inner_.survival(request, age, chances);
  }

 private:
  std::vector<std::uint64_t>& asked_;
  MadeUp inner_;
};

class TwoProjections {
 public:
  explicit TwoProjections(std::uint64_t seed)
      : draw_{seed},
        settings_{draw_settings(draw_)},
        slow_{settings_},
        fast_{settings_, std::make_unique<Asked>(asked_)} {}

  void run(int events) {
    for (int i = 0; i < events; ++i) {
      event();
      check();
    }
  }

 private:
  static constexpr std::uint32_t kWorkers = 4;  // of group 0 the even ones, of group 1 the odd ones

  void event() {
    asked_.clear();
    const std::uint64_t what = draw_.below(10);
    if (what < 3 || slow_.all.empty()) return admit();
    const auto one = std::next(slow_.all.begin(), static_cast<std::ptrdiff_t>(draw_.below(slow_.all.size())));
    if (what < 5) return correct(one->second);
    if (what < 6) return draw_.below(3) == 0 && one->second.request.sequences > 1 ? narrow(one->second) : leave(one);
    step();
  }

  void admit() {
    const auto worker = static_cast<std::uint32_t>(draw_.below(kWorkers));
    const Request request{.id = RequestId{next_++},
                          .prompt = Tokens{static_cast<std::int64_t>(draw_.below(5000))},
                          .generated = Tokens{static_cast<std::int64_t>(draw_.below(3) == 0 ? draw_.below(50) : 0)},
                          .sequences = static_cast<std::int32_t>(1 + draw_.below(3))};
    Known known{.request = request,
                .group = GroupId{worker % 2},
                .worker = worker,
                .age = request.generated.count(),
                .grows = false,
                .since = 0,
                .chances = {}};
    used_[worker] = true;
    slow_.predict(known);
    slow_.all[request.id.value()] = known;
    fast_.admitted(request, known.group, WorkerId{worker});
    require(asked_ == std::vector{request.id.value()});
  }

  void correct(Known& known) {
    if (draw_.below(2) == 0) known.age = static_cast<std::int64_t>(draw_.below(200));
    known.grows = true;
    fast_.aged(known.request.id, Tokens{known.age});
    for (const std::uint64_t id : asked_) slow_.predict(slow_.all.at(id));
  }

  void leave(std::map<std::uint64_t, Known>::iterator one) {
    const Request request = one->second.request;
    const Tokens generated{one->second.age};
    const LeaseEnd how = draw_.below(4) == 0 ? LeaseEnd::cut : LeaseEnd::finished;
    slow_.all.erase(one);
    slow_.predictor.ended(request, generated, how);
    if (slow_.predictor.wants_renewal()) {
      slow_.predictor.renew(std::vector<LifeSpan>(slow_.all.size()));
    }
    fast_.left(request.id, generated, how);
  }

  void narrow(Known& known) {
    const Tokens generated{known.age};
    fast_.narrowed(known.request.id, generated);
    --known.request.sequences;
    slow_.predict(known);
    slow_.predictor.ended(known.request, generated, LeaseEnd::finished);
    if (slow_.predictor.wants_renewal()) slow_.predictor.renew(std::vector<LifeSpan>(slow_.all.size()));
  }

  void step() {
    const GroupId group{static_cast<std::uint32_t>(draw_.below(2))};
    const auto steps = static_cast<std::int64_t>(draw_.below(6) == 0 ? draw_.below(30) : 1);
    slow_.clock[group.value()] += steps;
    for (auto& [id, known] : slow_.all) known.age += known.grows && known.group == group ? steps : 0;
    fast_.stepped(group, Steps{steps});
    for (const std::uint64_t id : asked_) slow_.predict(slow_.all.at(id));
    for (const auto& [id, known] : slow_.all) {
      require(slow_.clock[known.group.value()] - known.since < settings_.refresh.count());
    }
  }

  void check() const {
    std::vector<Tokens> loads(static_cast<std::size_t>(settings_.horizon.count()) + 1);
    for (std::uint32_t worker = 0; worker < kWorkers; ++worker) {
      const Tokens now{static_cast<std::int64_t>(worker)};
      fast_.project(GroupId{worker % 2}, WorkerId{worker}, now, loads);
      if (!used_[worker]) continue;  // of one that never ran anything the present load is all that is known
      for (std::size_t h = 0; h < loads.size(); ++h) {
        require(loads[h] == slow_.load(worker, now, static_cast<std::int64_t>(h)));
      }
    }
  }
  Random draw_;
  ProjectionSettings settings_;
  std::vector<std::uint64_t> asked_;
  SlowProjection slow_;
  Projection fast_;
  std::vector<bool> used_ = std::vector<bool>(kWorkers);
  std::uint64_t next_ = 1;
};

// Law: the sums that are kept give, to the bit, the loads that are made from scratch, whatever comes, ends, is
// corrected and grows, over any number of steps and new curves; and no prediction gets older than a refresh.
TEST(ProjectionProperty, EqualsRecomputation) {
  check_property(10'000, [](std::uint64_t seed) { TwoProjections{seed}.run(25); });
}

TEST(ProjectionProperty, EqualsRecomputationOverLongHistories) {
  check_property(30, [](std::uint64_t seed) { TwoProjections{seed}.run(1500); });
}

// Knows nothing: everything outlives every horizon.
class KnowsNothing final : public Predictor {
 public:
  [[nodiscard]] std::string_view name() const override { return "nothing"; }
  void ended(const Request&, Tokens, LeaseEnd) override {}
  [[nodiscard]] bool informed() const override { return false; }
  [[nodiscard]] bool wants_renewal() const override { return false; }
  void renew(std::span<const LifeSpan>) override {}
  [[nodiscard]] Prediction predict(const Request&, Tokens, Steps) const override { return {}; }
  void survival(const Request&, Tokens, std::span<std::uint32_t> chances) const override {
    std::ranges::fill(chances, kCertain);
  }
};

// Law: while nobody is expected to leave, each worker's load stays what it is in the ledger, or with growth becomes
// what it is there after so many steps.
TEST(ProjectionProperty, WithoutDeparturesItIsTheLedger) {
  check_property(2'000, [](std::uint64_t seed) {
    Random draw{seed};
    ProjectionSettings settings = draw_settings(draw);
    Projection projection{settings, std::make_unique<KnowsNothing>()};
    Ledger ledger{"fleet"};
    const GroupId group = ledger.add_group("group");
    std::vector<Lease> leases;
    for (std::int32_t rank = 0; rank < 2; ++rank) ledger.add_worker(group, "http://host", rank, 20).value();
    for (std::uint64_t id = 0; id < 12; ++id) {
      const Request request{.id = RequestId{id},
                            .prompt = Tokens{static_cast<std::int64_t>(draw.below(3000))},
                            .sequences = static_cast<std::int32_t>(1 + draw.below(2))};
      const WorkerId worker{static_cast<std::uint32_t>(draw.below(2))};
      leases.push_back(ledger.reserve(worker, request).value());
      leases.back().started();
      projection.admitted(request, group, worker);
      projection.aged(request.id, Tokens{0});
      const Steps steps{static_cast<std::int64_t>(draw.below(4))};
      ledger.advance(group, steps);
      projection.stepped(group, steps);
    }
    std::vector<std::vector<Tokens>> ahead(2,
                                           std::vector<Tokens>(static_cast<std::size_t>(settings.horizon.count()) + 1));
    const std::vector<Tokens> now(ledger.view(group).loads.begin(), ledger.view(group).loads.end());
    for (std::uint32_t worker = 0; worker < 2; ++worker) {
      projection.project(group, WorkerId{worker}, now[worker], ahead[worker]);
    }
    for (std::size_t h = 0; h < ahead.front().size(); ++h) {
      for (std::size_t worker = 0; worker < 2; ++worker) {
        require(ahead[worker][h] == (settings.growth ? ledger.view(group).loads[worker] : now[worker]));
      }
      ledger.advance(group, Steps{1});
    }
  });
}

}  // namespace
}  // namespace balanceroute
