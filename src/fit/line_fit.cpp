#include "fit/line_fit.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "fit/least_squares.hpp"

namespace lockstep::fit {

Line fit_line(std::span<const double> x, std::span<const double> y, Weighting weighting, Sign sign) {
    if (x.size() != y.size()) throw LogicError(fmt::format("a line through {} x and {} y", x.size(), y.size()));
    LinearSystem system(2);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (weighting == Weighting::relative && y[i] == 0) throw LogicError("a relative line fit with y = 0");
        system.add({1.0, x[i]}, y[i], weighting == Weighting::relative ? 1 / (y[i] * y[i]) : 1.0);
    }
    const Solution solution = sign == Sign::any ? solve(system) : solve_non_negative(system);
    return {solution.x[0], solution.x[1], solution.residual_sum, solution.degrees_of_freedom};
}

}  // namespace lockstep::fit
