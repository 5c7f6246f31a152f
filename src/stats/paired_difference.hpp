// paired_difference.hpp - how much one measure differs from another over runs that share their chance, and how sure
// that is.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace balanceroute {

// The value that a Student t variable of so many degrees of freedom (>= 1) stays below with probability 0.975: times
// the standard error it is half of a 95 % interval.
[[nodiscard]] double student_t_975(std::size_t degrees);

// A mean and half the width of its 95 % interval; none from a single value.
struct MeanInterval {
  double mean = 0;
  std::optional<double> half_width;
};

// Of values that are independent and near enough to normal; mean 0 for none.
[[nodiscard]] MeanInterval mean_interval(std::span<const double> values);

// Of 100 * (ours[i] / theirs[i] - 1), pair by pair; spans of equal size. Pairs with theirs[i] == 0 are left out.
[[nodiscard]] MeanInterval paired_change_percent(std::span<const double> ours, std::span<const double> theirs);

}  // namespace balanceroute
