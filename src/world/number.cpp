#include "world/number.hpp"

#include <bit>
#include <cstring>
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

namespace {

// The bits of `value` with the nearest bf16 in their upper half (ties to even); the lower half means nothing. A NaN
// stays one: only its quiet bit is set.
std::uint32_t rounded_to_upper_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    return value == value ? rounded : bits | 0x400000U;
}

}  // namespace

std::uint16_t to_bf16(float value) { return static_cast<std::uint16_t>(rounded_to_upper_half(value) >> 16); }

namespace {

struct Bf16;

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
    if (op == Reduce::sum) return add(a, b);
    if (op == Reduce::max) return a < b ? b : a;
    return b < a ? b : a;
}

// The operation is a template parameter and the arrays don't overlap, so that each loop becomes vector instructions
// (measured on a Zen 3 core: fp32 12 to 24 GB/s at -O3, 7 at -O2, which vectorises no loop like this one).
template <class T, Reduce op>
void loop(std::span<std::byte> into, std::span<const std::byte> from) {
    auto* __restrict a = reinterpret_cast<T*>(into.data());
    const auto* __restrict b = reinterpret_cast<const T*>(from.data());
    const std::size_t count = into.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) a[i] = apply(a[i], b[i], op);
}

// A number in the upper half of a word is a float as it stands, so words of two numbers are reduced without narrowing
// lanes: 5.6 GB/s, where a loop over single numbers reaches 2.7 at -O3 and 0.4 at -O2.
template <Reduce op>
void loop_bf16(std::span<std::byte> into, std::span<const std::byte> from) {
    constexpr std::uint32_t upper = 0xffff0000U;
    std::byte* __restrict a = into.data();
    const std::byte* __restrict b = from.data();
    const std::size_t words = into.size() / sizeof(std::uint32_t);
    for (std::size_t i = 0; i < words; ++i) {
        std::uint32_t x, y;
        std::memcpy(&x, a + i * sizeof x, sizeof x);
        std::memcpy(&y, b + i * sizeof y, sizeof y);
        const float high = apply(std::bit_cast<float>(x & upper), std::bit_cast<float>(y & upper), op);
        const float low = apply(std::bit_cast<float>(x << 16), std::bit_cast<float>(y << 16), op);
        x = (rounded_to_upper_half(high) & upper) | (rounded_to_upper_half(low) >> 16);
        std::memcpy(a + i * sizeof x, &x, sizeof x);
    }
    if (into.size() % sizeof(std::uint32_t) == 0) return;
    auto* last = reinterpret_cast<std::uint16_t*>(a) + 2 * words;
    const auto* other = reinterpret_cast<const std::uint16_t*>(b) + 2 * words;
    *last = to_bf16(apply(from_bf16(*last), from_bf16(*other), op));
}

template <class T, Reduce op>
constexpr auto loop_of = loop<T, op>;
template <Reduce op>
constexpr auto loop_of<Bf16, op> = loop_bf16<op>;

template <class T>
void dispatch(std::span<std::byte> into, std::span<const std::byte> from, Reduce op) {
    switch (op) {
        case Reduce::sum: return loop_of<T, Reduce::sum>(into, from);
        case Reduce::max: return loop_of<T, Reduce::max>(into, from);
        case Reduce::min: return loop_of<T, Reduce::min>(into, from);
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
