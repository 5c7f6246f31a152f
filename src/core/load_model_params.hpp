// load_model_params.hpp - the settings of the load model.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/load_model.hpp"
#include "core/params.hpp"

namespace balanceroute {

// LoadModelParams chooses what a sequence makes its worker read in a step. `fitted` takes measured step times: a
// sequence costs its tokens and as many more as take the time that it costs by itself, rounded.
struct LoadModelParams {
  std::string kind = "tokens";
  std::int64_t block_tokens = 16;
  std::int64_t window_tokens = 4'096;
  std::int64_t full_every = 0;
  std::int64_t scale = 1;
  std::int64_t constant_tokens = 0;
  double per_token_ms = 1.00525e-4;
  double per_sequence_ms = 0;

  [[nodiscard]] LoadModel model() const {
    if (kind == "paged") return LoadModel::paged(Tokens{block_tokens});
    if (kind == "windowed") return LoadModel::windowed(Tokens{window_tokens}, full_every);
    if (kind == "affine") return LoadModel::affine(scale, Tokens{constant_tokens});
    if (kind == "fitted") return LoadModel::affine(1, Tokens{std::llround(per_sequence_ms / per_token_ms)});
    return {};
  }

  void visit_params(ParamVisitor& visitor) {
    static constexpr std::array<std::string_view, 5> kKinds{"tokens", "paged", "windowed", "affine", "fitted"};
    visitor.choice({"kind",
                    "What a sequence's load is: tokens, whole blocks of them, at most a window, affine, or fitted to "
                    "measured step times."},
                   kind, kKinds);
    visitor.integer({"block_tokens", "paged: tokens of a block."}, block_tokens, {1, 65'536});
    visitor.integer({"window_tokens", "windowed: most tokens that a layer with a window reads."}, window_tokens,
                    {1, kMaxTokens.count()});
    visitor.integer({"full_every", "windowed: one layer in so many reads all tokens; 0: none does."}, full_every,
                    {0, 65'536});
    visitor.integer({"scale", "affine: load of a token; a step's time per token is then per unit of load."}, scale,
                    {0, 1'024});
    visitor.integer({"constant_tokens", "affine: load of a sequence besides its tokens."}, constant_tokens,
                    {0, kMaxTokens.count()});
    visitor.real({"per_token_ms", "fitted: step time for each token."}, per_token_ms, {1e-6, 1'000});
    visitor.real({"per_sequence_ms", "fitted: step time for each sequence."}, per_sequence_ms, {0, 1'000});
  }
};

}  // namespace balanceroute
