#include "world/number.hpp"

#include <bit>
#include <type_traits>

#include "base/error.hpp"

namespace lockstep::world {

std::size_t size_of(Number type) {
    switch (type) {
        case Number::f32:
        case Number::i32: return 4;
        case Number::f64:
        case Number::i64: return 8;
        case Number::bf16: return 2;
    }
    throw LogicError("unknown number type");
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40U : rounded);
}

namespace {

struct Bf16 {
    std::uint16_t bits;
};

template <class T>
T add(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
        return a + b;
    }
}

template <class T>
T apply(T a, T b, Reduce op) {
    if constexpr (std::is_same_v<T, Bf16>) {
        return {to_bf16(apply(from_bf16(a.bits), from_bf16(b.bits), op))};
    } else {
        if (op == Reduce::sum) return add(a, b);
        if (op == Reduce::max) return a < b ? b : a;
        return b < a ? b : a;
    }
}

// The operation is a template parameter so that each loop has no branch and vectorises.
template <class T, Reduce op>
void loop(std::span<std::byte> into, std::span<const std::byte> from) {
    auto* a = reinterpret_cast<T*>(into.data());
    const auto* b = reinterpret_cast<const T*>(from.data());
    const std::size_t count = into.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) a[i] = apply(a[i], b[i], op);
}

template <class T>
void dispatch(std::span<std::byte> into, std::span<const std::byte> from, Reduce op) {
    switch (op) {
        case Reduce::sum: return loop<T, Reduce::sum>(into, from);
        case Reduce::max: return loop<T, Reduce::max>(into, from);
        case Reduce::min: return loop<T, Reduce::min>(into, from);
    }
}

}  // namespace

void accumulate(std::span<std::byte> into, std::span<const std::byte> from, Number type, Reduce op) {
    if (into.size() != from.size()) throw LogicError("accumulate of buffers of different length");
    switch (type) {
        case Number::f32: return dispatch<float>(into, from, op);
        case Number::f64: return dispatch<double>(into, from, op);
        case Number::bf16: return dispatch<Bf16>(into, from, op);
        case Number::i32: return dispatch<std::int32_t>(into, from, op);
        case Number::i64: return dispatch<std::int64_t>(into, from, op);
    }
}

}  // namespace lockstep::world
