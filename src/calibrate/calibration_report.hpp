// calibration_report.hpp - a calibration in words for a person, and as JSON for a program.
#pragma once

#include <string>

#include "calibrate/calibration.hpp"

namespace balanceroute::calibrate {

// Coefficients with their intervals, what they leave, a verdict, and the settings that follow from it.
[[nodiscard]] std::string calibration_text(const Calibration& calibration);
[[nodiscard]] std::string calibration_json(const Calibration& calibration);

}  // namespace balanceroute::calibrate
