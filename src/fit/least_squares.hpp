// Linear least squares with weights, free or within bounds.
#pragma once

#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

namespace lockstep::fit {

/// The rows a . x ~ value of a linear model, each with a weight; units are the caller's.
class LinearSystem {
public:
    explicit LinearSystem(std::size_t unknowns) : unknowns_(unknowns) {}
    /// Adds a row of `unknowns` coefficients. Throws LogicError when the count differs, a number isn't finite or the
    /// weight is negative.
    void add(std::span<const double> coefficients, double value, double weight = 1);
    void add(std::initializer_list<double> coefficients, double value, double weight = 1) {
        add(std::span(coefficients.begin(), coefficients.size()), value, weight);
    }

    std::size_t rows() const { return values_.size(); }
    std::size_t unknowns() const { return unknowns_; }
    std::span<const double> coefficients() const { return coefficients_; }  ///< row by row
    std::span<const double> values() const { return values_; }
    std::span<const double> weights() const { return weights_; }

private:
    std::size_t unknowns_;
    std::vector<double> coefficients_, values_, weights_;
};

/// The interval an unknown may lie in; equal ends fix it.
struct Bound {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
};

/// Where an unknown of a bounded solution ended up.
enum class Place { free, at_low, at_high };

struct Solution {
    std::vector<double> x;
    std::vector<Place> places;      ///< one per unknown
    std::vector<double> residuals;  ///< value - a . x, one per row, without weights
    double residual_sum = 0;        ///< sum over rows of weight * residual^2, what was made smallest
    int degrees_of_freedom = 0;     ///< rows of positive weight less free unknowns
};

/// x with the least sum of w (value - a . x)^2, by QR with column pivoting on columns scaled to length 1. Throws
/// IncompleteError that says which unknown (counted from 0) the rows can't tell apart from the others.
Solution solve(const LinearSystem& system);

/// The same under low <= x <= high, one bound per unknown: bounded-variable least squares (Stark and Parker,
/// Computational Statistics 10 (1995)), which at bounds [0, inf) is the NNLS of Lawson and Hanson (1974). Throws as
/// `solve` does (fixed unknowns left out), and LogicError for an empty interval.
Solution solve_bounded(const LinearSystem& system, std::span<const Bound> bounds);

/// All unknowns at least 0.
Solution solve_non_negative(const LinearSystem& system);

}  // namespace lockstep::fit
