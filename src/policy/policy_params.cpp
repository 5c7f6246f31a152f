#include "policy/policy_params.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

#include "core/param_check.hpp"
#include "policy/registry.hpp"
#include "predict/registry.hpp"

namespace balanceroute {
namespace {

constexpr std::int64_t kAuto = PolicyParams::kAuto;
constexpr std::string_view kAutomatic = "auto";

struct Preset {
  std::string_view name;
  std::int64_t r_max;
  std::int64_t greedy_threshold;
  std::string_view worker_order;
  std::string_view projection;
  std::string_view growth;
};

// `paper` is the published procedure as it reads, `repo` the same with the window of the code that was published.
constexpr std::array kPresets{
    Preset{"default", 4, kAuto, "load", "survival", "true"},
    Preset{"paper", 4, 7, "capacity", "point", "false"},
    Preset{"repo", 16, 7, "capacity", "point", "false"},
};

constexpr auto kPresetNames = [] {
  std::array<std::string_view, kPresets.size()> names;
  std::ranges::transform(kPresets, names.begin(), &Preset::name);
  return names;
}();

// The weights of the score are settings under br_h only; the one-step policies know theirs.
bool knows_its_weights(std::string_view policy) {
  return policy.starts_with("br_0");
}

std::string refusal(const PolicyParams& params, std::string_view prefix, std::string_view setting, double value,
                    std::string_view instead) {
  std::ostringstream text;
  text << prefix << setting << " = " << value << ": expected auto under " << params.name << ", where it is " << instead;
  return text.str();
}

}  // namespace

void PolicyParams::visit_params(ParamVisitor& visitor) {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all{kAutomatic};
    all.insert(all.end(), policy_names().begin(), policy_names().end());
    return all;
  }();
  visitor.choice({"name",
                  "The routing policy; auto is br_fit, or least_tokens where no workers wait for each other: without a "
                  "barrier, or in groups of one."},
                 name, names);
  visit_settings(visitor);
}

void PolicyParams::visit_settings(ParamVisitor& visitor) {
  visitor.choice({"preset",
                  "What auto stands for in the settings of br_0 and br_h: our choice, the published procedure, or that "
                  "with 16 candidates as in its public code."},
                 preset, kPresetNames);
  visit_round(visitor);
  visit_look_ahead(visitor);
  visitor.nested({"br_fit", "Settings of br_fit."}, br_fit);
}

void PolicyParams::visit_round(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 3> kOrders{kAutomatic, "load", "capacity"};
  visitor.integer_or_auto({"r_max", "Waiting requests from which the best set for a worker is chosen; auto is 4."},
                          r_max, kAuto, {1, kMostCandidates});
  visitor.integer_or_auto(
      {"greedy_threshold",
       "While more slots than this are free, requests are placed one at a time; auto is half of those that a round "
       "finds."},
      greedy_threshold, kAuto, {0, 1'000'000});
  visitor.choice(
      {"worker_order", "Which worker chooses first: the one of least load, or of most free slots; auto is load."},
      worker_order, kOrders);
  visitor.integer({"stage1_window", "Waiting requests looked at while they are placed one at a time."}, stage1_window,
                  {1, 65'536});
  visitor.integer({"max_passes", "Later requests admitted past a waiting one before it is first and alone."},
                  max_passes, {1, 1'000'000});
  visitor.integer_or_auto({"max_wait_ms",
                           "A request that waits longer is placed next, whatever the policy would choose. auto is the "
                           "larger of 10 s and four times what all that wait take at the present rate; in overload a "
                           "small value turns any policy into first come, first served."},
                          max_wait_ms, kAuto, {0, 86'400'000});
}

void PolicyParams::visit_look_ahead(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 3> kProjections{kAutomatic, "point", "survival"};
  static constexpr std::array<std::string_view, 3> kSwitch{kAutomatic, "true", "false"};
  visitor.choice({"predictor", "What br_h knows of the length of answers; oracle is the truth, in simulations only."},
                 predictor.name, predictor_names());
  visitor.section({"prediction", "Settings of the predictor."},
                  [this](ParamVisitor& inner) { predictor.visit_settings(inner); });
  visitor.integer({"horizon_steps", "Steps that br_h looks ahead; 0 makes it br_0."}, horizon_steps, {0, 512});
  visitor.real_or_auto({"alpha", "Weight of the tokens that br_h places; auto is 1. Always 1 at horizon 0."}, alpha,
                       kAuto, {0, 1e6});
  visitor.real_or_auto({"beta",
                        "Weight of tokens above the largest load; auto is 43. Always the number of workers at horizon "
                        "0, and not to be set under br_0."},
                       beta, kAuto, {0, 1e6});
  visitor.real({"gamma", "What a step further ahead weighs, as a factor."}, gamma, {0, 1});
  visitor.choice({"projection",
                  "How running requests count ahead: until their expected end, or with the chance that they still run; "
                  "auto is survival."},
                 projection, kProjections);
  visitor.choice({"growth", "Whether loads ahead count the tokens generated until then; auto is true."}, growth,
                 kSwitch);
  visitor.integer({"refresh_steps", "Steps between predictions of a running request."}, refresh_steps, {1, 128});
}

PolicyParams with_preset(PolicyParams params) {
  const Preset& preset = *std::ranges::find(kPresets, params.preset, &Preset::name);
  if (params.r_max == kAuto) params.r_max = preset.r_max;
  if (params.greedy_threshold == kAuto) params.greedy_threshold = preset.greedy_threshold;
  if (params.worker_order == kAutomatic) params.worker_order = preset.worker_order;
  if (params.projection == kAutomatic) params.projection = preset.projection;
  if (params.growth == kAutomatic) params.growth = preset.growth;
  if (params.alpha == kAuto) params.alpha = 1;
  if (params.beta == kAuto) params.beta = 43;
  return params;
}

std::expected<void, std::string> validate(const PolicyParams& params, std::string_view prefix) {
  if (auto fault = first_fault(params, prefix)) return std::unexpected(*std::move(fault));
  if (!knows_its_weights(params.name)) return {};
  if (params.alpha != kAuto) return std::unexpected(refusal(params, prefix, "alpha", params.alpha, "1"));
  if (params.beta != kAuto) {
    return std::unexpected(refusal(params, prefix, "beta", params.beta, "the number of workers"));
  }
  return {};
}

PolicyParams settings_for(std::string_view name, PolicyParams common, std::span<const std::string> compared) {
  common.name = name;
  const bool others_take_them = std::ranges::any_of(compared, [](const std::string& one) { return one == "br_h"; });
  if (knows_its_weights(name) && others_take_them) {
    common.alpha = kAuto;
    common.beta = kAuto;
  }
  return common;
}

PolicyParams chosen_for(PolicyParams params, bool all_wait) {
  if (params.name == kAutomatic) params.name = all_wait ? "br_fit" : "least_tokens";
  return params;
}

std::expected<void, std::string> validate_for_group(const PolicyParams& params, std::string_view group,
                                                    std::size_t workers, bool barrier) {
  if (!params.name.starts_with("br_") || (workers > 1 && barrier)) return {};
  const std::string_view reason = barrier ? "has one worker" : "has no barrier";
  return std::unexpected("policy " + params.name + " evens out the waiting at a barrier, but group " +
                         std::string{group} + " " + std::string{reason} + ": use least_tokens");
}

}  // namespace balanceroute
