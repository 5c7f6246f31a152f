#include "policy/br_h/br_h.hpp"

#include <utility>

namespace balanceroute {
namespace {

std::optional<Projection> projection_of(const HorizonWeights& weights, const ProjectionSettings& settings,
                                        std::unique_ptr<Predictor> predictor, const LoadModel& model) {
  if (weights.horizon == Steps{0}) return std::nullopt;
  return std::optional<Projection>{std::in_place, settings, std::move(predictor), model};
}

}  // namespace

BrH::BrH(const TwoStageSettings& rounds, const HorizonWeights& weights, const ProjectionSettings& projection,
         std::unique_ptr<Predictor> predictor, const LoadModel& model)
    : projection_{projection_of(weights, projection, std::move(predictor), model)},
      rounds_{rounds, HorizonScore{weights, this->projection()}},
      explained_{weights, this->projection()} {}

void BrH::decide(const RoundInput& input, Random&, std::vector<Choice>& choices) {
  rounds_.decide(input, choices);
}

double BrH::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate& candidate) const {
  explained_.begin(fleet.groups[group.value()]);
  return explained_.score(worker, candidate.weight, candidate.request.sequences);
}

std::string_view BrH::score_meaning() const {
  return "tokens placed less weighted tokens above the largest load, now and over the horizon, discounted";
}

std::optional<PredictionReport> BrH::prediction_report() const {
  if (!projection_) return std::nullopt;
  return PredictionReport{.predictor = projection_->predictor().name(),
                          .horizon = projection_->settings().horizon,
                          .calibration = projection_->calibration(),
                          .key_hits = projection_->predictor().key_hits()};
}

void BrH::admitted(const Request& request, GroupId group, WorkerId worker) {
  if (projection_) projection_->admitted(request, group, worker);
}

void BrH::aged(RequestId request, Tokens generated) {
  if (projection_) projection_->aged(request, generated);
}

void BrH::narrowed(RequestId request, Tokens generated) {
  if (projection_) projection_->narrowed(request, generated);
}

void BrH::learned(const Candidate& candidate, Tokens generated, LeaseEnd how) {
  if (projection_) projection_->learned(candidate.request, generated, how);
}

void BrH::left(RequestId request, Tokens generated, LeaseEnd how) {
  if (projection_) projection_->left(request, generated, how);
}

void BrH::stepped(GroupId group, Steps steps) {
  if (projection_) projection_->stepped(group, steps);
}

}  // namespace balanceroute
