// Dimensioned numbers: a double tagged with powers of byte, floating-point operation and second.
#pragma once

#include <compare>

namespace lockstep {

/// A value in bytes^Byte * flop^Flop * second^Second. Multiplication and division add the exponents, addition and
/// comparison take like with like only, so `Bytes / Bandwidth` is `Seconds` and a wrong formula does not compile.
template <int Byte, int Flop, int Second>
struct Quantity {
    double value = 0;

    constexpr Quantity() = default;
    constexpr explicit Quantity(double v) : value(v) {}

    constexpr auto operator<=>(const Quantity&) const = default;
    constexpr Quantity operator-() const { return Quantity{-value}; }
    constexpr Quantity& operator+=(Quantity o) {
        value += o.value;
        return *this;
    }
    constexpr Quantity& operator-=(Quantity o) {
        value -= o.value;
        return *this;
    }
    constexpr Quantity& operator*=(double f) {
        value *= f;
        return *this;
    }
    constexpr Quantity& operator/=(double f) {
        value /= f;
        return *this;
    }
};

template <int B, int F, int S>
constexpr Quantity<B, F, S> operator+(Quantity<B, F, S> a, Quantity<B, F, S> b) {
    return Quantity<B, F, S>{a.value + b.value};
}
template <int B, int F, int S>
constexpr Quantity<B, F, S> operator-(Quantity<B, F, S> a, Quantity<B, F, S> b) {
    return Quantity<B, F, S>{a.value - b.value};
}
template <int B, int F, int S>
constexpr Quantity<B, F, S> operator*(Quantity<B, F, S> a, double f) {
    return Quantity<B, F, S>{a.value * f};
}
template <int B, int F, int S>
constexpr Quantity<B, F, S> operator*(double f, Quantity<B, F, S> a) {
    return a * f;
}
template <int B, int F, int S>
constexpr Quantity<B, F, S> operator/(Quantity<B, F, S> a, double f) {
    return Quantity<B, F, S>{a.value / f};
}

template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator*(Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
    if constexpr (B1 + B2 == 0 && F1 + F2 == 0 && S1 + S2 == 0)
        return a.value * b.value;
    else
        return Quantity<B1 + B2, F1 + F2, S1 + S2>{a.value * b.value};
}

/// Like over like is a plain double.
template <int B1, int F1, int S1, int B2, int F2, int S2>
constexpr auto operator/(Quantity<B1, F1, S1> a, Quantity<B2, F2, S2> b) {
    if constexpr (B1 == B2 && F1 == F2 && S1 == S2)
        return a.value / b.value;
    else
        return Quantity<B1 - B2, F1 - F2, S1 - S2>{a.value / b.value};
}

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using Bandwidth = Quantity<1, 0, -1>;  ///< bytes per second, one direction
using FlopRate = Quantity<0, 1, -1>;   ///< floating-point (or integer) operations per second
using Frequency = Quantity<0, 0, -1>;  ///< hertz

struct Watts {
    double value = 0;
    constexpr auto operator<=>(const Watts&) const = default;
};

struct UsdPerHour {
    double value = 0;
    constexpr auto operator<=>(const UsdPerHour&) const = default;
};

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes{static_cast<double>(v)}; }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1024}; }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1048576}; }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1073741824}; }
constexpr Bandwidth operator""_GBps(unsigned long long v) { return Bandwidth{static_cast<double>(v) * 1e9}; }
constexpr Bandwidth operator""_GBps(long double v) { return Bandwidth{static_cast<double>(v) * 1e9}; }
constexpr Bandwidth operator""_Gbps(unsigned long long v) { return Bandwidth{static_cast<double>(v) * 1e9 / 8}; }
constexpr FlopRate operator""_TFLOPS(unsigned long long v) { return FlopRate{static_cast<double>(v) * 1e12}; }
constexpr FlopRate operator""_TFLOPS(long double v) { return FlopRate{static_cast<double>(v) * 1e12}; }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_s(long double v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_ms(unsigned long long v) { return Seconds{static_cast<double>(v) * 1e-3}; }
constexpr Seconds operator""_us(unsigned long long v) { return Seconds{static_cast<double>(v) * 1e-6}; }
constexpr Seconds operator""_us(long double v) { return Seconds{static_cast<double>(v) * 1e-6}; }
}  // namespace literals

}  // namespace lockstep
