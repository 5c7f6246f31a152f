#include "policy/policy_params.hpp"

#include <array>

#include "core/param_check.hpp"
#include "policy/registry.hpp"

namespace balanceroute {

void PolicyParams::visit_params(ParamVisitor& visitor) {
  visitor.choice({"name", "The routing policy."}, name, policy_names());
  visit_settings(visitor);
}

void PolicyParams::visit_settings(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 2> kOrders{"load", "capacity"};
  visitor.integer({"r_max", "Waiting requests from which the best set for a worker is chosen."}, r_max, {1, 16});
  visitor.integer_or_auto(
      {"greedy_threshold", "While more slots than this are free, requests are placed one at a time; auto is 7."},
      greedy_threshold, kAuto, {0, 1'000'000});
  visitor.choice({"worker_order", "Which worker chooses first: the one of least load, or of most free slots."},
                 worker_order, kOrders);
  visitor.integer({"stage1_window", "Waiting requests looked at while they are placed one at a time."}, stage1_window,
                  {1, 65'536});
  visitor.integer({"max_passes", "Later requests admitted past a waiting one before it is first and alone."},
                  max_passes, {1, 1'000'000});
  visitor.nested({"br_fit", "Settings of br_fit."}, br_fit);
}

std::expected<void, std::string> validate(const PolicyParams& params, std::string_view prefix) {
  if (auto fault = first_fault(params, prefix)) return std::unexpected(*std::move(fault));
  return {};
}

std::expected<void, std::string> validate_for_group(const PolicyParams& params, std::string_view group,
                                                    std::size_t workers, bool barrier) {
  if (!params.name.starts_with("br_") || (workers > 1 && barrier)) return {};
  const std::string_view reason = barrier ? "has one worker" : "has no barrier";
  return std::unexpected("policy " + params.name + " evens out the waiting at a barrier, but group " +
                         std::string{group} + " " + std::string{reason} + ": use least_tokens");
}

}  // namespace balanceroute
