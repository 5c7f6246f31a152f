#include "stats/paired_difference.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

namespace balanceroute {

double student_t_975(std::size_t degrees) {
  assert(degrees >= 1);
  static constexpr std::array kTable{12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004,
                                     2.262157,  2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905,
                                     2.109816,  2.100922, 2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899,
                                     2.059539,  2.055529, 2.051831, 2.048407, 2.045230, 2.042272};
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  // Cornish and Fisher's expansion about the normal value; good to 1e-6 from here on.
  const double z = 1.959963985;
  const auto n = static_cast<double>(degrees);
  const double z2 = z * z;
  return z + z * (z2 + 1) / (4 * n) + z * (5 * z2 * z2 + 16 * z2 + 3) / (96 * n * n) +
         z * (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * n * n * n);
}

MeanInterval mean_interval(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() == 1) return {.mean = mean, .half_width = std::nullopt};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double standard_error = std::sqrt(squares / (count - 1) / count);
  return {.mean = mean, .half_width = student_t_975(values.size() - 1) * standard_error};
}

MeanInterval paired_change_percent(std::span<const double> ours, std::span<const double> theirs) {
  assert(ours.size() == theirs.size());
  std::vector<double> changes;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (theirs[i] != 0) changes.push_back(100 * (ours[i] / theirs[i] - 1));
  }
  return mean_interval(changes);
}

}  // namespace balanceroute
