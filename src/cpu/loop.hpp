// Loops over elements or rows: split over the OpenMP threads, compiled for several instruction sets.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

// The sanitizers' run-time is not up yet when the loader resolves clones, hence none there.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_VECTOR_CLONES
#else
#define LOCKSTEP_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v3", "default"), flatten))
#endif

namespace lockstep::cpu {

/// body(i) for begin <= i < end on this thread.
template <class Body>
LOCKSTEP_VECTOR_CLONES void for_range(std::int64_t begin, std::int64_t end, const Body body) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
}

/// body(begin, end) for slices of 0 <= i < n, one per thread; one slice when several would be shorter than `grain`.
template <class Body>
void parallel_slices(std::int64_t n, std::int64_t grain, const Body& body) {
    const std::int64_t slices = std::min<std::int64_t>(omp_get_max_threads(), n / std::max<std::int64_t>(grain, 1));
    if (slices <= 1) return body(std::int64_t{0}, n);
#pragma omp parallel num_threads(static_cast <int>(slices))
    {
        const std::int64_t parts = omp_get_num_threads();
        const std::int64_t part = omp_get_thread_num();
        body(n * part / parts, n * (part + 1) / parts);
    }
}

/// body(i) for 0 <= i < n, in slices.
template <class Body>
void parallel_for(std::int64_t n, std::int64_t grain, const Body body) {
    parallel_slices(n, grain, [&](std::int64_t begin, std::int64_t end) { for_range(begin, end, body); });
}

inline constexpr std::int64_t element_grain = 16384;

/// Rows of `width` elements.
template <class Body>
void parallel_rows(std::int64_t rows, std::int64_t width, const Body body) {
    parallel_for(rows, std::max<std::int64_t>(1, element_grain / std::max<std::int64_t>(width, 1)), body);
}

}  // namespace lockstep::cpu
