// Division by a number that is known when a kernel is made: a multiplication and a shift.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace lockstep::gpu {

/// Quotients of 0 <= n < 2^31 by the method of Granlund and Montgomery (Division by invariant integers using
/// multiplication, 1994): q = (n m / 2^32 + n) / 2^s with s = ceil(log2 d), m = 2^32 (2^s - d) / d + 1. Larger n, or a
/// larger divisor, are divided by the plain operator.
class Divider {
public:
    Divider() : Divider(1) {}
    explicit Divider(std::int64_t divisor) : divisor_(divisor) {
        if (divisor < 1 || divisor > largest) return;
        while ((std::uint64_t{1} << shift_) < static_cast<std::uint64_t>(divisor)) ++shift_;
        const std::uint64_t power = std::uint64_t{1} << shift_, d = static_cast<std::uint64_t>(divisor);
        factor_ = static_cast<std::uint32_t>((std::uint64_t{1} << 32) * (power - d) / d + 1);
    }
    __host__ __device__ std::int64_t divisor() const { return divisor_; }
    __host__ __device__ std::int64_t quotient(std::int64_t n) const {
        if (n > largest || divisor_ > largest) return n / divisor_;
        const auto small = static_cast<std::uint32_t>(n);
        const auto high = static_cast<std::uint32_t>((static_cast<std::uint64_t>(small) * factor_) >> 32);
        return (high + small) >> shift_;
    }
    __host__ __device__ std::int64_t remainder(std::int64_t n, std::int64_t quotient) const {
        return n - quotient * divisor_;
    }

private:
    static constexpr std::int64_t largest = (std::int64_t{1} << 31) - 1;
    std::int64_t divisor_;
    std::uint32_t factor_ = 1;
    int shift_ = 0;
};

}  // namespace lockstep::gpu
