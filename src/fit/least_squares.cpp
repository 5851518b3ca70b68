#include "fit/least_squares.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "base/error.hpp"

namespace lockstep::fit {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Rows times sqrt(weight), columns of length 1: x = y / length, where y solves the scaled system.
struct Scaled {
    MatrixXd a;
    VectorXd b;
    VectorXd length;
};

Scaled scale(const LinearSystem& system) {
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto rows = static_cast<Index>(system.rows());
    const auto columns = static_cast<Index>(system.unknowns());
    const VectorXd root_weight = Eigen::Map<const VectorXd>(system.weights().data(), rows).cwiseSqrt();
    Scaled scaled;
    scaled.a = root_weight.asDiagonal() * Eigen::Map<const RowMajor>(system.coefficients().data(), rows, columns);
    scaled.b = root_weight.cwiseProduct(Eigen::Map<const VectorXd>(system.values().data(), rows));
    scaled.length = VectorXd::Ones(columns);
    for (Index j = 0; j < columns; ++j)
        if (const double length = scaled.a.col(j).stableNorm(); length > 0) scaled.length[j] = length;
    scaled.a = scaled.a * scaled.length.cwiseInverse().asDiagonal();
    return scaled;
}

MatrixXd columns_of(const MatrixXd& a, const std::vector<Index>& columns) {
    MatrixXd part(a.rows(), static_cast<Index>(columns.size()));
    for (std::size_t k = 0; k < columns.size(); ++k) part.col(static_cast<Index>(k)) = a.col(columns[k]);
    return part;
}

/// Throws when the columns are linearly dependent, naming the first one that pivoting left over.
void require_full_rank(const MatrixXd& a, const std::vector<Index>& columns) {
    if (columns.empty()) return;
    std::optional<Index> left_over;
    if (a.rows() == 0) {
        left_over = 0;
    } else {
        Eigen::ColPivHouseholderQR<MatrixXd> qr(columns_of(a, columns));
        qr.setThreshold(1e-10);
        if (qr.rank() < static_cast<Index>(columns.size())) left_over = qr.colsPermutation().indices()[qr.rank()];
    }
    if (left_over)
        throw IncompleteError(
            fmt::format("{} measurements can't determine unknown {} of {} (too few, or they vary in proportion); add "
                        "some that differ",
                        a.rows(), columns[static_cast<std::size_t>(*left_over)], a.cols()));
}

Solution finish(const LinearSystem& system, std::vector<double> x, std::vector<Place> places) {
    Solution solution{std::move(x), std::move(places), {}, 0, 0};
    for (std::size_t i = 0; i < system.rows(); ++i) {
        double residual = system.values()[i];
        for (std::size_t j = 0; j < system.unknowns(); ++j)
            residual -= system.coefficients()[i * system.unknowns() + j] * solution.x[j];
        solution.residuals.push_back(residual);
        solution.residual_sum += system.weights()[i] * residual * residual;
    }
    solution.degrees_of_freedom =
        static_cast<int>(std::ranges::count_if(system.weights(), [](double w) { return w > 0; }) -
                         std::ranges::count(solution.places, Place::free));
    return solution;
}

std::vector<Index> all_columns(const MatrixXd& a) {
    std::vector<Index> columns(static_cast<std::size_t>(a.cols()));
    std::iota(columns.begin(), columns.end(), Index{0});
    return columns;
}

/// The active-set search of Stark and Parker on the scaled system.
class BoundedSearch {
public:
    BoundedSearch(const Scaled& scaled, std::span<const Bound> bounds) : scaled_(scaled), y_(scaled.a.cols()) {
        for (Index j = 0; j < y_.size(); ++j) {
            const Bound bound = bounds[static_cast<std::size_t>(j)];
            low_.push_back(bound.low * scaled.length[j]);
            high_.push_back(bound.high * scaled.length[j]);
            places_.push_back(std::isfinite(bound.low)    ? Place::at_low
                              : std::isfinite(bound.high) ? Place::at_high
                                                          : Place::free);
            y_[j] = 0;
            settle(j);
        }
    }

    void run() {
        approach();  // unknowns without bounds start free
        // Each round lowers the sum of squares at another set of free unknowns, so rounds can't repeat; the limit is
        // for a bug.
        const Index limit = 100 + 20 * y_.size() * y_.size();
        for (Index round = 0; round < limit; ++round)
            if (!release_one()) return;
        throw LogicError("bounded least squares did not end");
    }

    const VectorXd& y() const { return y_; }
    const std::vector<Place>& places() const { return places_; }

private:
    std::size_t at(Index j) const { return static_cast<std::size_t>(j); }

    /// Puts an unknown that is at a bound exactly there.
    void settle(Index j) {
        if (places_[at(j)] == Place::at_low) y_[j] = low_[at(j)];
        if (places_[at(j)] == Place::at_high) y_[j] = high_[at(j)];
    }

    std::vector<Index> free_columns() const {
        std::vector<Index> columns;
        for (Index j = 0; j < y_.size(); ++j)
            if (places_[at(j)] == Place::free) columns.push_back(j);
        return columns;
    }

    /// Least squares over the free unknowns, the others held.
    VectorXd free_solution(const std::vector<Index>& free) const {
        VectorXd rest = scaled_.b;
        for (Index j = 0; j < y_.size(); ++j)
            if (places_[at(j)] != Place::free) rest -= scaled_.a.col(j) * y_[j];
        return Eigen::ColPivHouseholderQR<MatrixXd>(columns_of(scaled_.a, free)).solve(rest);
    }

    /// Goes to the free solution; where a bound is in the way, stops there, holds that unknown and goes on.
    void approach() {
        for (auto free = free_columns(); !free.empty(); free = free_columns()) {
            const VectorXd target = free_solution(free);
            double step = 1;
            std::optional<Index> blocking;
            for (std::size_t k = 0; k < free.size(); ++k) {
                const Index j = free[k];
                const double goal = target[static_cast<Index>(k)];
                const double bound = goal < low_[at(j)] ? low_[at(j)] : high_[at(j)];
                if (goal >= low_[at(j)] && goal <= high_[at(j)]) continue;
                const double share = std::clamp((bound - y_[j]) / (goal - y_[j]), 0.0, 1.0);
                if (!blocking || share < step) {
                    step = share;
                    blocking = j;
                    blocking_place_ = goal < low_[at(j)] ? Place::at_low : Place::at_high;
                }
            }
            for (std::size_t k = 0; k < free.size(); ++k)
                y_[free[k]] += step * (target[static_cast<Index>(k)] - y_[free[k]]);
            if (!blocking) return;
            places_[at(*blocking)] = blocking_place_;
            settle(*blocking);
        }
    }

    /// Frees the held unknown whose move into its interval lowers the sum most; false when none does.
    bool release_one() {
        const VectorXd pull = scaled_.a.transpose() * (scaled_.b - scaled_.a * y_);
        const double tolerance = 1e-12 * std::max(scaled_.b.stableNorm(), (scaled_.a * y_).stableNorm());
        std::vector<Index> order;
        for (Index j = 0; j < y_.size(); ++j) {
            const Place place = places_[at(j)];
            const bool moves_in =
                (place == Place::at_low && pull[j] > tolerance) || (place == Place::at_high && pull[j] < -tolerance);
            if (moves_in && low_[at(j)] < high_[at(j)]) order.push_back(j);
        }
        std::ranges::stable_sort(order, std::greater{}, [&](Index j) { return std::abs(pull[j]); });
        for (const Index j : order) {
            const Place held = places_[at(j)];
            places_[at(j)] = Place::free;
            const auto free = free_columns();
            const auto k = std::ranges::find(free, j) - free.begin();
            const double move = free_solution(free)[k] - y_[j];
            if (held == Place::at_low ? move > 0 : move < 0) {
                approach();
                return true;
            }
            places_[at(j)] = held;  // the pull was rounding
        }
        return false;
    }

    const Scaled& scaled_;
    VectorXd y_;
    std::vector<double> low_, high_;
    std::vector<Place> places_;
    Place blocking_place_ = Place::free;
};

}  // namespace

void LinearSystem::add(std::span<const double> coefficients, double value, double weight) {
    if (coefficients.size() != unknowns_)
        throw LogicError(fmt::format("a row of {} coefficients for {} unknowns", coefficients.size(), unknowns_));
    const bool is_finite =
        std::ranges::all_of(coefficients, [](double c) { return std::isfinite(c); }) && std::isfinite(value);
    if (!is_finite || !std::isfinite(weight) || weight < 0)
        throw LogicError("a row of least squares with a number that isn't finite, or a negative weight");
    coefficients_.insert(coefficients_.end(), coefficients.begin(), coefficients.end());
    values_.push_back(value);
    weights_.push_back(weight);
}

Solution solve(const LinearSystem& system) {
    const Scaled scaled = scale(system);
    require_full_rank(scaled.a, all_columns(scaled.a));
    const VectorXd x = Eigen::ColPivHouseholderQR<MatrixXd>(scaled.a).solve(scaled.b).cwiseQuotient(scaled.length);
    return finish(system, {x.begin(), x.end()}, std::vector<Place>(system.unknowns(), Place::free));
}

Solution solve_bounded(const LinearSystem& system, std::span<const Bound> bounds) {
    if (bounds.size() != system.unknowns())
        throw LogicError(fmt::format("{} bounds for {} unknowns", bounds.size(), system.unknowns()));
    const Scaled scaled = scale(system);
    std::vector<Index> movable;
    for (const Index j : all_columns(scaled.a)) {
        const Bound bound = bounds[static_cast<std::size_t>(j)];
        const bool holds_a_number = bound.low <= bound.high && bound.low < HUGE_VAL && bound.high > -HUGE_VAL;
        if (!holds_a_number)
            throw LogicError(fmt::format("unknown {} is bounded to [{}, {}]", j, bound.low, bound.high));
        if (bound.low < bound.high) movable.push_back(j);
    }
    require_full_rank(scaled.a, movable);
    BoundedSearch search(scaled, bounds);
    search.run();
    std::vector<double> x(system.unknowns());
    for (std::size_t j = 0; j < x.size(); ++j) {
        const Place place = search.places()[j];
        const auto column = static_cast<Index>(j);
        x[j] = place == Place::at_low    ? bounds[j].low
               : place == Place::at_high ? bounds[j].high
                                         : search.y()[column] / scaled.length[column];
    }
    return finish(system, std::move(x), search.places());
}

Solution solve_non_negative(const LinearSystem& system) {
    const std::vector<Bound> bounds(system.unknowns(), Bound{0, HUGE_VAL});
    return solve_bounded(system, bounds);
}

}  // namespace lockstep::fit
