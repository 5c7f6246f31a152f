// load_model.hpp - the one place that says how many tokens a request makes its worker read in a step.
//
// A model is a function of a sequence's size, its prompt and what it has generated. Sizes and weights are whole tokens
// and every model says how it rounds, so that a worker's load is exactly the sum over its sequences. A model that has
// no use for rounding takes another unit: `affine` scales by whole numbers, and a step's time per token is then per
// unit.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>

#include "core/request.hpp"
#include "core/units.hpp"

namespace balanceroute {

// Growth is how the weight of a sequence goes on: by `per_step` with each token, `lasts` tokens long. Then its weight
// may jump, and one looks again.
struct Growth {
  static constexpr Steps kForever{std::numeric_limits<std::int64_t>::max()};

  std::int64_t per_step = 0;
  Steps lasts = kForever;

  [[nodiscard]] constexpr bool changes() const { return lasts != kForever; }
};

// LoadModel turns a request and its age into load.
//   Invariants  weights never fall as a sequence grows; weight_of(size + j) == weight_of(size) + j * per_step for each
//               j < lasts of growth_from(size).
class LoadModel {
 public:
  // tokens: a sequence reads its prompt and all that it has generated.
  constexpr LoadModel() = default;

  // As many whole blocks as hold the sequence, rounded up.
  [[nodiscard]] static constexpr LoadModel paged(Tokens block) {
    assert(block >= Tokens{1});
    return block == Tokens{1} ? LoadModel{} : LoadModel{Kind::paged, block.count(), Tokens{0}};
  }
  // At most the last `window` tokens; but one layer in `full_every` reads all of them (0: none does), whose part of
  // what is beyond the window is rounded down.
  [[nodiscard]] static constexpr LoadModel windowed(Tokens window, std::int64_t full_every = 0) {
    assert(window >= Tokens{1} && full_every >= 0);
    return full_every == 1 ? LoadModel{} : LoadModel{Kind::windowed, full_every, window};
  }
  // scale * size + constant: what a sequence costs by itself, in the tokens that cost as much.
  [[nodiscard]] static constexpr LoadModel affine(std::int64_t scale, Tokens constant) {
    assert(scale >= 0 && constant >= Tokens{0});
    return {Kind::affine, scale, constant};
  }

  // Of one sequence that has so many tokens, its prompt included.
  [[nodiscard]] constexpr Tokens weight_of(Tokens size) const {
    switch (kind_) {
      case Kind::affine:
        return size * number_ + tokens_;
      case Kind::paged:
        return Tokens{(size.count() + number_ - 1) / number_ * number_};
      case Kind::windowed:
        break;
    }
    if (size <= tokens_) return size;
    return number_ == 0 ? tokens_ : tokens_ + Tokens{(size - tokens_).count() / number_};
  }

  [[nodiscard]] constexpr Growth growth_from(Tokens size) const {
    switch (kind_) {
      case Kind::affine:
        return {.per_step = number_};
      case Kind::paged:
        return {.lasts = Steps{(number_ - size.count() % number_) % number_ + 1}};
      case Kind::windowed:
        break;
    }
    if (size < tokens_) return {.per_step = 1, .lasts = Steps{(tokens_ - size).count()}};
    if (number_ == 0) return {};
    return {.lasts = Steps{number_ - (size - tokens_).count() % number_}};
  }

  // Whether every sequence grows by the same for ever.
  [[nodiscard]] constexpr bool steady() const { return kind_ == Kind::affine; }

  // Load of all sequences of `request` when each has generated `age` tokens.
  [[nodiscard]] constexpr Tokens weight_at(const Request& request, Tokens age) const {
    return weight_of(request.prompt + age) * request.sequences;
  }

  // The size D of an admission.
  [[nodiscard]] constexpr Tokens weight_on_entry(const Request& request) const {
    return weight_at(request, request.generated);
  }

 private:
  enum class Kind : std::uint8_t { affine, paged, windowed };  // tokens are affine too

  constexpr LoadModel(Kind kind, std::int64_t number, Tokens tokens) : kind_{kind}, number_{number}, tokens_{tokens} {}

  Kind kind_ = Kind::affine;
  std::int64_t number_ = 1;  // the scale, the block, or one layer in so many
  Tokens tokens_{0};         // the constant, or the window
};

}  // namespace balanceroute
