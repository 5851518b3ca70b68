#include "gpu/collective_benchmark.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "gpu/cuda_check.hpp"
#include "gpu/handles.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu {
namespace {

constexpr std::size_t batches = 5;
constexpr int most_runs = 50;

class CollectiveBenchmark {
public:
    CollectiveBenchmark(world::World& world, NcclCommunicator& communicator, const CollectiveOptions& options)
        : world_(world),
          communicator_(communicator),
          options_(options),
          stream_(make_stream()),
          begin_(make_event(EventUse::timing)),
          end_(make_event(EventUse::timing)) {}

    CollectiveMeasurement measure() {
        const Nanoseconds begin = world::steady_now();
        CollectiveMeasurement result;
        result.ranks = communicator_.size();
        if (result.ranks == 1) return result;
        for (const auto kind : {step::CollectiveKind::all_reduce, step::CollectiveKind::all_gather})
            measure_kind(kind, result.times);
        result.took = (world::steady_now() - begin).seconds();
        return result;
    }

private:
    void measure_kind(step::CollectiveKind kind, std::vector<CollectiveTime>& times) {
        const auto ranks = static_cast<std::int64_t>(communicator_.size());
        Seconds last;
        for (std::int64_t bytes = options_.least_bytes; bytes <= options_.most_bytes; bytes *= 2) {
            if (2 * last > options_.longest) return;
            std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
            if (kind == step::CollectiveKind::all_gather) count /= ranks;  // of each rank
            if (count == 0) continue;
            reserve(bytes);
            last = time(kind, static_cast<std::size_t>(count));
            const auto whole = kind == step::CollectiveKind::all_gather ? count * ranks : count;
            times.push_back({kind, Bytes{static_cast<double>(whole) * sizeof(float)}, last});
        }
    }
    void reserve(std::int64_t bytes) {
        if (bytes <= reserved_) return;
        send_.reset();  // first: both together may not fit beside the new ones
        receive_.reset();
        send_ = allocate_device(bytes, "the measurement of collectives");
        receive_ = allocate_device(bytes, "the measurement of collectives");
        check_cuda(cudaMemsetAsync(send_.get(), 0, static_cast<std::size_t>(bytes), stream_.get()), "cudaMemsetAsync");
        reserved_ = bytes;
    }

    /// The same on every rank, as is the number of runs.
    Seconds time(step::CollectiveKind kind, std::size_t count) {
        time_batch(kind, count, 1);  // connects what this size needs
        std::array<double, 1> once{time_batch(kind, count, 1).value};
        slowest(once);
        const double share = options_.budget.value / batches / std::max(once[0], 1e-9);
        const int runs = static_cast<int>(std::clamp(share, 1.0, double{most_runs}));
        std::array<double, batches> seconds{};
        for (double& s : seconds) s = time_batch(kind, count, runs).value / runs;
        slowest(seconds);
        std::sort(seconds.begin(), seconds.end());
        return Seconds{seconds[batches / 2]};
    }
    void slowest(std::span<double> seconds) {
        world_.all_reduce(std::as_writable_bytes(seconds), world::Number::f64, world::Reduce::max);
    }
    Seconds time_batch(step::CollectiveKind kind, std::size_t count, int runs) {
        world_.barrier();
        check_cuda(cudaEventRecord(begin_.get(), stream_.get()), "cudaEventRecord");
        for (int i = 0; i < runs; ++i) enqueue(kind, count);
        check_cuda(cudaEventRecord(end_.get(), stream_.get()), "cudaEventRecord");
        communicator_.synchronize(stream_.get(), "the measurement of collectives");
        float milliseconds = 0;
        check_cuda(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "cudaEventElapsedTime");
        return Seconds{milliseconds * 1e-3};
    }
    void enqueue(step::CollectiveKind kind, std::size_t count) {
        if (kind == step::CollectiveKind::all_gather)
            communicator_.issue("a measured all-gather", [&](ncclComm_t comm) {
                return ncclAllGather(send_.get(), receive_.get(), count, ncclFloat32, comm, stream_.get());
            });
        else
            communicator_.issue("a measured all-reduce", [&](ncclComm_t comm) {
                return ncclAllReduce(send_.get(), receive_.get(), count, ncclFloat32, ncclSum, comm, stream_.get());
            });
    }

    world::World& world_;
    NcclCommunicator& communicator_;
    CollectiveOptions options_;
    Stream stream_;
    Event begin_, end_;
    DeviceMemory send_, receive_;
    std::int64_t reserved_ = 0;
};

}  // namespace

CollectiveMeasurement measure_collectives(world::World& world, NcclCommunicator& communicator,
                                          const CollectiveOptions& options) {
    return CollectiveBenchmark(world, communicator, options).measure();
}

}  // namespace lockstep::gpu
