// What a calibration found: constants, and measured times beside fitted ones.
#pragma once

#include <string>
#include <vector>

#include "calibrate/fit.hpp"
#include "config/json.hpp"
#include "machine/calibration.hpp"

namespace lockstep::report {

/// A line for each comparison with its residual, and the median size of each kind's; then the constants with their
/// sources. At most 100 columns.
std::string format_calibration(const machine::Calibration& calibration,
                               const std::vector<calibrate::Comparison>& comparisons);

/// An array of {"what", "size", "measured_s", "fitted_s", "residual"}.
config::Json comparisons_json(const std::vector<calibrate::Comparison>& comparisons);

/// The constants alone, as `machine show` prints them.
std::string format_constants(const machine::Calibration& calibration);

}  // namespace lockstep::report
