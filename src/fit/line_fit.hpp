// A straight line through points: alpha + beta x, the shape of a message's time against its size.
#pragma once

#include <span>

namespace lockstep::fit {

/// Which errors count alike: absolute ones, or relative ones (weight 1 / y^2, for values over several decades).
enum class Weighting { absolute, relative };
/// Whether alpha and beta may be negative.
enum class Sign { any, non_negative };

struct Line {
    double alpha = 0;  ///< in units of y
    double beta = 0;   ///< in units of y per unit of x
    double residual_sum = 0;
    int degrees_of_freedom = 0;

    double at(double x) const { return alpha + beta * x; }
};

/// The line with the least sum of w (y - alpha - beta x)^2. Throws IncompleteError for fewer than two distinct x,
/// LogicError when the counts differ or a relative weighting meets y = 0.
Line fit_line(std::span<const double> x, std::span<const double> y, Weighting weighting = Weighting::absolute,
              Sign sign = Sign::any);

}  // namespace lockstep::fit
