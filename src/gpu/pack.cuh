// Packs of consecutive elements that a thread moves at once, as floats in between.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/element.cuh"

namespace lockstep::gpu {

inline constexpr int widest_access = 16;  ///< bytes that one instruction moves

/// Elements of a pack of the widest access, where the largest of the elements moved together has `bytes`.
constexpr int pack_size(std::size_t bytes) { return widest_access / static_cast<int>(bytes); }
template <class... T>
inline constexpr int pack_of = pack_size(std::max({sizeof(T)...}));

template <class T, int M>
struct alignas(M * sizeof(T) < widest_access ? M * sizeof(T) : widest_access) Pack {
    T at[M];
};

template <int M, class T>
__host__ __device__ Pack<T, M> raw_pack(const T* x, std::int64_t first) {
    return *reinterpret_cast<const Pack<T, M>*>(x + first);
}
template <int M, class T>
__host__ __device__ void store_raw(T* y, std::int64_t first, const Pack<T, M>& values) {
    *reinterpret_cast<Pack<T, M>*>(y + first) = values;
}
template <int M, class T>
__host__ __device__ Pack<float, M> load_pack(const T* x, std::int64_t first) {
    const Pack<T, M> stored = raw_pack<M>(x, first);
    Pack<float, M> values{};
    for (int k = 0; k < M; ++k) values.at[k] = load(stored.at[k]);
    return values;
}
template <int M, class T>
__host__ __device__ void store_pack(T* y, std::int64_t first, const Pack<float, M>& values, bool add = false) {
    Pack<T, M> stored{};
    if (add) stored = raw_pack<M>(y, first);
    for (int k = 0; k < M; ++k) stored.at[k] = store<T>(add ? load(stored.at[k]) + values.at[k] : values.at[k]);
    store_raw(y, first, stored);
}

/// How many elements come before the first pack of N, the same for all pointers; -1: their packs never begin together.
template <int N, class... T>
std::int64_t elements_before_packs(const T*... pointers) {
    const auto before = [](const auto* p) {
        const auto element = reinterpret_cast<std::uintptr_t>(p) / sizeof(*p);
        return static_cast<std::int64_t>((N - element % N) % N);
    };
    const std::int64_t all[] = {before(pointers)...};
    for (const std::int64_t one : all)
        if (one != all[0]) return -1;
    return all[0];
}

}  // namespace lockstep::gpu
