// Distributions of positive times and factors, and of the largest of many of them: what a class of ranks waits for.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <tuple>

namespace lockstep::fit {

/// normal: truncated at 0 by counting what lies below as 0 (so moments are the untruncated normal's: at a coefficient
/// of variation of 1/2 the true mean is 0.42 % above, at 1/3 it is 0.013 %); lognormal; gamma; exponential: a gamma of
/// coefficient of variation 1.
enum class Family { normal, lognormal, gamma, exponential };
std::string_view to_string(Family family);
/// None for a word that names no family.
std::optional<Family> parse_family(std::string_view text);

/// Mean and variance of a variable; those of independent variables add.
struct Moments {
    double mean = 0;
    double variance = 0;  ///< in the square of the mean's unit

    double deviation() const;
    Moments& operator+=(const Moments& other);
    friend Moments operator+(Moments a, const Moments& b) { return a += b; }
    /// Of the variable times `factor`.
    Moments scaled(double factor) const { return {mean * factor, variance * factor * factor}; }
    bool operator==(const Moments&) const = default;
};

/// The member of a family with the given mean and variance. A sum of independent members is taken for the member with
/// the summed moments: exact for normals, and for gammas of one scale (equal variance/mean); for lognormals it is
/// Fenton's and Wilkinson's approximation (Fenton, IRE Trans. Communications Systems 8 (1960), 57-67).
class Distribution {
public:
    /// Throws LogicError for a mean that is not above 0 or a variance below 0. A variance of 0 is the constant mean.
    /// An exponential whose moments differ from mean^2 = variance (a sum of them) is the gamma of those moments.
    Distribution(Family family, Moments moments);

    /// A random factor: mean 1, standard deviation `cv`. Throws InputError for a cv below 0, a normal one above 1/2
    /// (too much of it would lie below 0), and an exponential one other than 1.
    static Distribution factor(Family family, double cv);

    Family family() const { return family_; }
    Moments moments() const { return moments_; }

    /// The value below which the variable lies with probability p in (0, 1).
    double quantile(double p) const;
    /// The value above which it lies with probability q in (0, 1): exact where 1 - q would round.
    double upper_quantile(double q) const;
    /// The quantile at u in (0, 1) of the largest of k independent draws: F^k(x) = u, so x = quantile(u^(1/k)), taken
    /// from the upper tail 1 - u^(1/k) = -expm1(ln u / k) so that nothing is lost for large k. k >= 1, not
    /// necessarily whole.
    double maximum_of(double k, double u) const;
    /// Mean and variance of the largest of k draws: the integrals of x and x^2 over u in (0, 1) of x = maximum_of(k,
    /// u), relative error about 1e-9. Some 100 quantiles: see MaximumMoments.
    Moments moments_of_maximum(double k) const;

private:
    double upper_deviate(double tail, double lower) const;

    Family family_;
    Moments moments_;
};

/// The standard normal's quantile at p in (0, 1).
double normal_score(double p);

/// moments_of_maximum, remembered by family, shape (the coefficient of variation; none for normals) and k.
class MaximumMoments {
public:
    Moments of(const Distribution& distribution, double k);

private:
    std::map<std::tuple<Family, double, double>, Moments> standardised_;  ///< of (maximum - mean) / deviation
};

}  // namespace lockstep::fit
