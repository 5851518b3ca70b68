#include "gpu/stopwatch.hpp"

#include <algorithm>
#include <vector>

#include "gpu/cuda_check.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu {
namespace {

constexpr Seconds batch_length{1e-3};
constexpr std::size_t least_batches = 3, most_batches = 25;

Seconds median(std::vector<Seconds> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
}

/// Calls measure() until there are enough results or their time is up.
template <class F>
Seconds median_within(Seconds budget, F measure) {
    std::vector<Seconds> times;
    const Nanoseconds begin = world::steady_now();
    while (times.size() < least_batches ||
           (times.size() < most_batches && (world::steady_now() - begin).seconds() < budget))
        times.push_back(measure());
    return median(std::move(times));
}

}  // namespace

Stopwatch::Stopwatch(Seconds budget)
    : budget_(budget),
      stream_(make_stream()),
      begin_(make_event(EventUse::timing)),
      end_(make_event(EventUse::timing)) {}

Seconds Stopwatch::time_batch(const Enqueue& run, int runs) const {
    check_cuda(cudaEventRecord(begin_.get(), stream_.get()), "cudaEventRecord");
    for (int i = 0; i < runs; ++i) run(stream_.get());
    check_cuda(cudaEventRecord(end_.get(), stream_.get()), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "cudaEventElapsedTime");
    return Seconds{milliseconds * 1e-3};
}

Seconds Stopwatch::time(const Enqueue& run) const {
    time_batch(run, 1);
    const Seconds once = time_batch(run, 1);
    const int runs = once < batch_length ? static_cast<int>(std::min(1000.0, batch_length / once + 1)) : 1;
    return median_within(budget_, [&] { return time_batch(run, runs); }) / runs;
}

Seconds Stopwatch::host_time(const Enqueue& run) const {
    constexpr int runs = 200;  // fewer than a stream holds before the host must wait
    time_batch(run, runs);
    return median_within(budget_,
                         [&] {
                             const Nanoseconds begin = world::steady_now();
                             for (int i = 0; i < runs; ++i) run(stream_.get());
                             const Seconds took = (world::steady_now() - begin).seconds();
                             check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
                             return took;
                         }) /
           runs;
}

}  // namespace lockstep::gpu
