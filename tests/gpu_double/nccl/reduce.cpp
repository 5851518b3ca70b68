#include "gpu_double/nccl/reduce.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "gpu_double/nccl/misuse.hpp"

namespace lockstep::nccl_double {
namespace {

template <class T>
auto wide(T x) {
    if constexpr (std::is_same_v<T, __half>)
        return __half2float(x);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __bfloat162float(x);
    else
        return x;
}
template <class T, class W>
T narrow(W x) {
    if constexpr (std::is_same_v<T, __half>)
        return __float2half(x);
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __float2bfloat16(x);
    else
        return static_cast<T>(x);
}

template <class T>
void reduce_as(std::span<const std::byte* const> in, std::byte* out, std::size_t count, ncclRedOp_t op) {
    auto* const target = reinterpret_cast<T*>(out);
    for (std::size_t i = 0; i < count; ++i) {
        auto result = wide(reinterpret_cast<const T*>(in[0])[i]);
        for (std::size_t r = 1; r < in.size(); ++r) {
            const auto x = wide(reinterpret_cast<const T*>(in[r])[i]);
            switch (op) {
                case ncclMax: result = std::max(result, x); break;
                case ncclMin: result = std::min(result, x); break;
                case ncclProd: result = static_cast<decltype(result)>(result * x); break;
                default: result = static_cast<decltype(result)>(result + x); break;
            }
        }
        if (op == ncclAvg) result = static_cast<decltype(result)>(result / static_cast<decltype(result)>(in.size()));
        target[i] = narrow<T>(result);
    }
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
    switch (type) {
        case ncclInt8:
        case ncclUint8:
        case ncclFloat8e4m3:
        case ncclFloat8e5m2: return 1;
        case ncclFloat16:
        case ncclBfloat16: return 2;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32: return 4;
        case ncclInt64:
        case ncclUint64:
        case ncclFloat64: return 8;
        default: return 0;
    }
}

const char* name_of(ncclDataType_t type) {
    switch (type) {
        case ncclInt8: return "int8";
        case ncclUint8: return "uint8";
        case ncclInt32: return "int32";
        case ncclUint32: return "uint32";
        case ncclInt64: return "int64";
        case ncclUint64: return "uint64";
        case ncclFloat16: return "fp16";
        case ncclFloat32: return "fp32";
        case ncclFloat64: return "fp64";
        case ncclBfloat16: return "bf16";
        case ncclFloat8e4m3: return "fp8 e4m3";
        case ncclFloat8e5m2: return "fp8 e5m2";
        default: return "an unknown type";
    }
}

const char* name_of(ncclRedOp_t op) {
    switch (op) {
        case ncclSum: return "sum";
        case ncclProd: return "product";
        case ncclMax: return "max";
        case ncclMin: return "min";
        case ncclAvg: return "average";
        default: return "an unknown operation";
    }
}

void reduce(std::span<const std::byte* const> in, std::byte* out, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op) {
    switch (type) {
        case ncclFloat32: return reduce_as<float>(in, out, count, op);
        case ncclFloat64: return reduce_as<double>(in, out, count, op);
        case ncclFloat16: return reduce_as<__half>(in, out, count, op);
        case ncclBfloat16: return reduce_as<__nv_bfloat16>(in, out, count, op);
        case ncclInt8: return reduce_as<std::int8_t>(in, out, count, op);
        case ncclUint8: return reduce_as<std::uint8_t>(in, out, count, op);
        case ncclInt32: return reduce_as<std::int32_t>(in, out, count, op);
        case ncclUint32: return reduce_as<std::uint32_t>(in, out, count, op);
        case ncclInt64: return reduce_as<std::int64_t>(in, out, count, op);
        case ncclUint64: return reduce_as<std::uint64_t>(in, out, count, op);
        default: misuse("reductions of {} are not modelled", name_of(type));
    }
}

}  // namespace lockstep::nccl_double
