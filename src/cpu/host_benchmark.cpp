#include "cpu/host_benchmark.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

#include "cpu/benchmark_kernels.hpp"
#include "cpu/isa.hpp"
#include "cpu/onednn.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t large_elements = 4 << 20;  // 16 MiB of fp32

Seconds since(Nanoseconds begin) { return (world::steady_now() - begin).seconds(); }

/// Shortest of the runs that fit into `budget` (three at least) after one that warms up.
Seconds best_run(world::World& world, Kernel& kernel, Seconds budget) {
    kernel.run({});
    world.barrier();
    const Nanoseconds begin = world::steady_now();
    Seconds best{1e9};
    for (int i = 0; i < 3 || since(begin) < budget; ++i) {
        const Nanoseconds start = world::steady_now();
        kernel.run({});
        best = std::min(best, since(start));
    }
    return best;
}

/// The slowest rank's figure.
double over_ranks(world::World& world, double value, world::Reduce reduce) {
    world.all_reduce(std::as_writable_bytes(std::span{&value, 1}), world::Number::f64, reduce);
    return value;
}

/// As the executor does it: tests between which other threads may run.
void progressed_all_reduce(world::World& world, std::span<std::byte> data) {
    const auto request = world.start_all_reduce(data, world::Number::f32, world::Reduce::sum);
    while (!request->test()) std::this_thread::yield();
}

class Probe {
public:
    Probe(world::World& world, int threads) : world_(world) {
        omp_set_dynamic(0);
        omp_set_num_threads(threads);
#pragma omp parallel
        flush_denormals();
        result_.threads_per_rank = threads;
        result_.measured_ranks = world.size();
    }
    HostMeasurement measure() {
        const Nanoseconds begin = world::steady_now();
        measure_compute();
        if (world_.size() > 1) measure_communication();
        result_.took = Seconds{over_ranks(world_, since(begin).value, world::Reduce::max)};
        return result_;
    }

private:
    FlopRate rate(BenchmarkKernel kernel, Seconds budget) {
        const Seconds slowest{over_ranks(world_, best_run(world_, *kernel.kernel, budget).value, world::Reduce::max)};
        return kernel.flops / slowest;
    }
    void measure_compute() {
        result_.gemm_fp32 = rate(product_kernel(library_, 1024, DType::fp32), Seconds{0.25});
        if (has_native_bf16()) result_.gemm_bf16 = rate(product_kernel(library_, 1024, DType::bf16), Seconds{0.15});
        result_.convolution_share = rate(convolution_kernel(library_), Seconds{0.15}) / result_.gemm_fp32;
        result_.attention_share = rate(attention_kernel(library_), Seconds{0.15}) / result_.gemm_fp32;
        const BenchmarkKernel stream = streaming_kernel(library_);
        const double slowest =
            over_ranks(world_, best_run(world_, *stream.kernel, Seconds{0.15}).value, world::Reduce::max);
        result_.memory = stream.bytes / Seconds{slowest};
        measure_overhead();
    }
    void measure_overhead() {
        constexpr int runs = 2000;
        const BenchmarkKernel tiny = product_kernel(library_, 16, DType::fp32);
        tiny.kernel->run({});
        std::int64_t stamps = 0;
        const Nanoseconds begin = world::steady_now();
        for (int i = 0; i < runs; ++i) {
            stamps -= world::steady_now().count;
            tiny.kernel->run({});
            stamps += world::steady_now().count;
        }
        const double whole = since(begin).value;
        const double stamped = static_cast<double>(stamps) * 1e-9;
        result_.op_overhead = Seconds{over_ranks(world_, std::max(whole, stamped) / runs, world::Reduce::max)};
    }
    void measure_communication() {
        const Arena buffer(large_elements * 4, "the all-reduce benchmark");
        buffer.touch();
        const std::span<std::byte> data{buffer.data(), static_cast<std::size_t>(buffer.bytes())};
        const Seconds large = best_burst(data, Seconds{0.03}), small = best_burst(data.first(8), Seconds{0.005});
        const double n = world_.size();
        result_.all_reduce_bus = Bytes{static_cast<double>(data.size()) * 2 * (n - 1) / n} / large;
        result_.all_reduce_latency = small;
        measure_slowdown(data);
    }
    /// Time of one all-reduce in the quickest of a few bursts: the mean over a burst, because the ranks of one
    /// all-reduce don't begin and end together.
    Seconds best_burst(std::span<std::byte> data, Seconds length) {
        all_reduce_for(data, Seconds{});
        Seconds best{1e9};
        for (int i = 0; i < 5; ++i) {
            world_.barrier();
            const Nanoseconds begin = world::steady_now();
            const int times = all_reduce_for(data, length);
            best = std::min(best, since(begin) / times);
        }
        return Seconds{over_ranks(world_, best.value, world::Reduce::max)};
    }
    /// Products on this thread while another repeats the all-reduce.
    void measure_slowdown(std::span<std::byte> data) {
        const BenchmarkKernel product = product_kernel(library_, 512, DType::fp32);
        const Seconds alone = best_run(world_, *product.kernel, Seconds{0.1});
        std::atomic<bool> is_done{false};
        std::exception_ptr failure;
        world_.barrier();
        std::thread communication([&] {
            try {
                all_reduce_for(data, Seconds{0.3});
            } catch (...) { failure = std::current_exception(); }
            is_done = true;
        });
        const Nanoseconds begin = world::steady_now();
        int runs = 0;
        do {
            product.kernel->run({});
            ++runs;
        } while (!is_done);
        const double beside = since(begin).value / runs;
        communication.join();
        if (failure) std::rethrow_exception(failure);
        const double slowdown = std::max(0.0, 1 - alone.value / beside);
        result_.compute_slowdown = over_ranks(world_, slowdown, world::Reduce::max);
    }
    /// All-reduces until the first rank finds its time over; how many, the same on all ranks. The number can't be fixed
    /// beforehand: beside computing threads one takes 2 to 20 times as long as alone.
    int all_reduce_for(std::span<std::byte> data, Seconds length) {
        const Nanoseconds begin = world::steady_now();
        auto* const over = reinterpret_cast<float*>(data.data());  // the sum tells all ranks
        for (int times = 1;; ++times) {
            *over = since(begin) < length ? 0.0F : 1.0F;
            progressed_all_reduce(world_, data);
            if (*over > 0) return times;
        }
    }

    world::World& world_;
    OneDnn library_;
    HostMeasurement result_;
};

}  // namespace

HostMeasurement measure_host(world::World& world, int threads) {
    // On a thread of its own, so that its OpenMP threads end with it.
    HostMeasurement result;
    std::exception_ptr failure;
    std::thread([&] {
        try {
            result = Probe(world, threads).measure();
        } catch (...) { failure = std::current_exception(); }
    }).join();
    if (failure) std::rethrow_exception(failure);
    return result;
}

}  // namespace lockstep::cpu
