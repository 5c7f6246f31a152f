#include "core/load_model.hpp"

#include <algorithm>

#include "support/property.hpp"

namespace balanceroute {
namespace {

LoadModel some_model() {
  const Tokens tokens{*rc::gen::inRange<std::int64_t>(1, 80)};
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return LoadModel::paged(tokens);
    case 1:
      return LoadModel::windowed(tokens);
    case 2:
      return LoadModel::windowed(tokens, *rc::gen::inRange<std::int64_t>(1, 9));
    default:
      return LoadModel::affine(*rc::gen::inRange<std::int64_t>(0, 4), tokens);
  }
}

// Law: until its growth changes a sequence gains the same each token, and it never weighs less than before.
TEST(LoadModelProperty, GrowthTellsTheWeightsToCome) {
  check_property(10'000, [] {
    const LoadModel model = some_model();
    const Tokens size{*rc::gen::inRange<std::int64_t>(0, 300)};
    const Growth growth = model.growth_from(size);
    require(growth.lasts >= Steps{1});
    for (Steps j{0}; j < std::min(growth.lasts, Steps{400}); j += Steps{1}) {
      require(model.weight_of(size + Tokens{j.count()}) == model.weight_of(size) + Tokens{growth.per_step * j.count()});
    }
    require(model.weight_of(size + Tokens{1}) >= model.weight_of(size));
  });
}

}  // namespace
}  // namespace balanceroute
