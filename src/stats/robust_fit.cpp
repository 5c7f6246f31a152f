#include "stats/robust_fit.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

namespace balanceroute {

namespace {

constexpr std::size_t kMost = 4;  // coefficients
using Vector = std::array<double, kMost>;
using Matrix = std::array<Vector, kMost>;

// Least weight that a pivot may have, of predictors scaled to 1.
constexpr double kSingular = 1e-9;
constexpr double kNormal975 = 1.959964;
constexpr double kBiweight = 4.685;
constexpr double kMadToDeviation = 1.4826;
constexpr int kFirstPasses = 30;
constexpr int kSecondPasses = 30;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The inverse of the leading n rows and columns; none if they are singular.
std::optional<Matrix> inverse(Matrix a, std::size_t n) {
  Matrix out{};
  for (std::size_t i = 0; i < n; ++i) out[i][i] = 1;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    if (std::abs(a[pivot][column]) < kSingular) return std::nullopt;
    std::swap(a[pivot], a[column]);
    std::swap(out[pivot], out[column]);
    const double by = a[column][column];
    for (std::size_t k = 0; k < n; ++k) {
      a[column][k] /= by;
      out[column][k] /= by;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const double times = a[row][column];
      if (row == column || times == 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        a[row][k] -= times * a[column][k];
        out[row][k] -= times * out[column][k];
      }
    }
  }
  return out;
}

// Fitting works on predictors that are centred and scaled, so that the equations stay well conditioned.
class Fitting {
 public:
  Fitting(std::span<const double> y, std::span<const std::span<const double>> predictors)
      : y_{y}, predictors_{predictors}, size_{predictors.size() + 1} {
    for (const auto& predictor : predictors) {
      double sum = 0;
      for (const double x : predictor) sum += x;
      const double mean = sum / static_cast<double>(predictor.size());
      double squares = 0;
      for (const double x : predictor) squares += (x - mean) * (x - mean);
      centres_.push_back(mean);
      scales_.push_back(std::sqrt(squares / static_cast<double>(predictor.size())));
    }
  }

  std::optional<RobustFit> run() {
    if (y_.size() < 2 * size_) return std::nullopt;
    if (std::ranges::any_of(scales_, [](double scale) { return !(scale > 0); })) return std::nullopt;
    weights_.assign(y_.size(), 1);
    if (!solve()) return std::nullopt;
    const double tiny = smallest_scale();
    for (int pass = 0; pass < kFirstPasses; ++pass) {
      weigh([tiny](double residual) { return 1 / std::max(std::abs(residual), tiny); });
      if (!solve()) return std::nullopt;
    }
    const double scale = std::max(deviation(), tiny);
    for (int pass = 0; pass < kSecondPasses; ++pass) {
      weigh([scale](double residual) {
        const double u = residual / (kBiweight * scale);
        return std::abs(u) >= 1 ? 0 : (1 - u * u) * (1 - u * u);
      });
      if (!solve()) return std::nullopt;
    }
    return result();
  }

 private:
  double at(std::size_t coefficient, std::size_t point) const {
    if (coefficient == 0) return 1;
    return (predictors_[coefficient - 1][point] - centres_[coefficient - 1]) / scales_[coefficient - 1];
  }

  // Below it residuals are rounding.
  double smallest_scale() const {
    double largest = 0;
    for (const double y : y_) largest = std::max(largest, std::abs(y));
    return std::max(largest, 1e-300) * 1e-9;
  }

  double deviation() const {
    std::vector<double> sizes;
    sizes.reserve(residuals_.size());
    for (const double residual : residuals_) sizes.push_back(std::abs(residual));
    return kMadToDeviation * median(std::move(sizes));
  }

  template <class Weight>
  void weigh(Weight weight) {
    std::ranges::transform(residuals_, weights_.begin(), weight);
  }

  // The weighted least squares of now.
  bool solve() {
    Matrix products{};
    Vector right{};
    double all = 0;
    for (std::size_t point = 0; point < y_.size(); ++point) {
      all += weights_[point];
      for (std::size_t i = 0; i < size_; ++i) {
        const double weighted = weights_[point] * at(i, point);
        right[i] += weighted * y_[point];
        for (std::size_t j = 0; j < size_; ++j) products[i][j] += weighted * at(j, point);
      }
    }
    if (!(all > 0)) return false;
    for (Vector& row : products) {
      for (double& value : row) value /= all;
    }
    const auto inverted = inverse(products, size_);
    if (!inverted) return false;
    inverse_ = *inverted;
    total_weight_ = all;
    for (std::size_t i = 0; i < size_; ++i) {
      coefficients_[i] = 0;
      for (std::size_t j = 0; j < size_; ++j) coefficients_[i] += inverse_[i][j] * right[j] / all;
    }
    residuals_.resize(y_.size());
    for (std::size_t point = 0; point < y_.size(); ++point) {
      double fitted = 0;
      for (std::size_t i = 0; i < size_; ++i) fitted += coefficients_[i] * at(i, point);
      residuals_[point] = y_[point] - fitted;
    }
    return true;
  }

  // Of the scaled coefficients: inverse * sum(w^2 r^2 x x') * inverse.
  Matrix covariance() const {
    Matrix middle{};
    for (std::size_t point = 0; point < y_.size(); ++point) {
      const double pull = weights_[point] * residuals_[point] / total_weight_;
      for (std::size_t i = 0; i < size_; ++i) {
        for (std::size_t j = 0; j < size_; ++j) middle[i][j] += pull * pull * at(i, point) * at(j, point);
      }
    }
    Matrix out{};
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j < size_; ++j) {
        for (std::size_t k = 0; k < size_; ++k) {
          for (std::size_t l = 0; l < size_; ++l) out[i][j] += inverse_[i][k] * middle[k][l] * inverse_[l][j];
        }
      }
    }
    return out;
  }

  // A sum of scaled coefficients, with its interval.
  FittedValue combined(const Vector& factors, const Matrix& variance) const {
    double value = 0;
    double square = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      value += factors[i] * coefficients_[i];
      for (std::size_t j = 0; j < size_; ++j) square += factors[i] * factors[j] * variance[i][j];
    }
    const double half = kNormal975 * std::sqrt(std::max(square, 0.0));
    return {value, value - half, value + half};
  }

  RobustFit result() {
    const Matrix variance = covariance();
    RobustFit out;
    Vector of_constant{};
    of_constant[0] = 1;
    for (std::size_t i = 1; i < size_; ++i) {
      of_constant[i] = -centres_[i - 1] / scales_[i - 1];
      Vector of_slope{};
      of_slope[i] = 1 / scales_[i - 1];
      out.slopes.push_back(combined(of_slope, variance));
    }
    out.constant = combined(of_constant, variance);
    out.r2 = explained();
    out.residuals = std::move(residuals_);
    out.weights = std::move(weights_);
    return out;
  }

  double explained() const {
    double mean = 0;
    for (std::size_t point = 0; point < y_.size(); ++point) mean += weights_[point] * y_[point] / total_weight_;
    double left = 0;
    double all = 0;
    for (std::size_t point = 0; point < y_.size(); ++point) {
      left += weights_[point] * residuals_[point] * residuals_[point];
      all += weights_[point] * (y_[point] - mean) * (y_[point] - mean);
    }
    return all > 0 ? 1 - left / all : 0;
  }

  std::span<const double> y_;
  std::span<const std::span<const double>> predictors_;
  std::size_t size_;
  std::vector<double> centres_;
  std::vector<double> scales_;
  std::vector<double> weights_;
  std::vector<double> residuals_;
  Vector coefficients_{};
  Matrix inverse_{};
  double total_weight_ = 0;
};

}  // namespace

std::optional<RobustFit> robust_fit(std::span<const double> y, std::span<const std::span<const double>> predictors) {
  assert(!predictors.empty() && predictors.size() < kMost);
  return Fitting{y, predictors}.run();
}

}  // namespace balanceroute
