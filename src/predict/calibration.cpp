#include "predict/calibration.hpp"

#include <algorithm>

namespace balanceroute {

void Calibration::record(double chance, bool happened) {
  const auto bin = static_cast<std::size_t>(std::clamp(chance, 0.0, 1.0) * static_cast<double>(kBins));
  Bin& its = bins_[std::min(bin, kBins - 1)];
  ++its.count;
  its.predicted += chance;
  its.happened += happened ? 1 : 0;
  const double error = chance - (happened ? 1 : 0);
  squares_ += error * error;
}

Calibration& Calibration::operator+=(const Calibration& other) {
  for (std::size_t i = 0; i < kBins; ++i) {
    bins_[i].count += other.bins_[i].count;
    bins_[i].predicted += other.bins_[i].predicted;
    bins_[i].happened += other.bins_[i].happened;
  }
  squares_ += other.squares_;
  return *this;
}

Calibration Calibration::since(const Calibration& earlier) const {
  Calibration later = *this;
  for (std::size_t i = 0; i < kBins; ++i) {
    later.bins_[i].count -= earlier.bins_[i].count;
    later.bins_[i].predicted -= earlier.bins_[i].predicted;
    later.bins_[i].happened -= earlier.bins_[i].happened;
  }
  later.squares_ -= earlier.squares_;
  return later;
}

std::int64_t Calibration::count() const {
  std::int64_t count = 0;
  for (const Bin& bin : bins_) count += bin.count;
  return count;
}

double Calibration::per_outcome(double sum) const {
  const std::int64_t outcomes = count();
  return outcomes == 0 ? 0 : sum / static_cast<double>(outcomes);
}

double Calibration::mean_predicted() const {
  double sum = 0;
  for (const Bin& bin : bins_) sum += bin.predicted;
  return per_outcome(sum);
}

double Calibration::mean_happened() const {
  std::int64_t sum = 0;
  for (const Bin& bin : bins_) sum += bin.happened;
  return per_outcome(static_cast<double>(sum));
}

double Calibration::brier_score() const {
  return per_outcome(squares_);
}

double Calibration::brier_reference() const {
  const double share = mean_happened();
  return share * (1 - share);
}

void PredictionCheck::predicted(OpenPrediction& its, Tokens age, double finish_chance) {
  if (its.open && age > its.made_at + horizon_) settle(its, false);
  if (!its.open) its = {.made_at = age, .finish_chance = finish_chance, .open = true};
}

void PredictionCheck::ended(OpenPrediction& its, Tokens generated, LeaseEnd how) {
  if (!its.open) return;
  const Tokens last = its.made_at + horizon_;
  if (how == LeaseEnd::finished) {
    settle(its, generated <= last);
  } else if (generated >= last) {
    settle(its, false);
  }
  its.open = false;
}

void PredictionCheck::settle(OpenPrediction& its, bool finished) {
  calibration_.record(its.finish_chance, finished);
  its.open = false;
}

}  // namespace balanceroute
