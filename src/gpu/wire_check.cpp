#include "gpu/wire_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/handles.hpp"

namespace lockstep::gpu {
namespace {

/// What rank `r` contributes at `i`: whole numbers below 2^12, so that sums of up to 4096 ranks are exact in fp32.
float pattern(int r, std::size_t i) { return static_cast<float>((i * 31 + static_cast<std::size_t>(r) * 977) % 4093); }

float sum_of_patterns(int ranks, std::size_t i) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += pattern(r, i);
    return sum;
}

class Check {
public:
    Check(NcclCommunicator& communicator, std::size_t largest)
        : communicator_(communicator),
          size_(static_cast<std::size_t>(communicator.size())),
          stream_(make_stream()),
          send_(allocate_device(bytes(largest * size_), "the wire check")),
          receive_(allocate_device(bytes(largest * size_), "the wire check")),
          host_(allocate_pinned(bytes(largest * size_), "the wire check")) {}

    void all_reduce(std::size_t n) const {
        run(
            "an all-reduce", n, n,
            [&](ncclComm_t comm) {
                return ncclAllReduce(send_.get(), receive_.get(), n, ncclFloat32, ncclSum, comm, stream_.get());
            },
            [&](std::size_t i) { return sum_of_patterns(communicator_.size(), i); });
    }
    void all_gather(std::size_t n) const {
        run(
            "an all-gather", n, n * size_,
            [&](ncclComm_t comm) {
                return ncclAllGather(send_.get(), receive_.get(), n, ncclFloat32, comm, stream_.get());
            },
            [&](std::size_t i) { return pattern(static_cast<int>(i / n), i % n); });
    }
    void reduce_scatter(std::size_t n) const {
        const std::size_t first = n * static_cast<std::size_t>(communicator_.member());
        run(
            "a reduce-scatter", n * size_, n,
            [&](ncclComm_t comm) {
                return ncclReduceScatter(send_.get(), receive_.get(), n, ncclFloat32, ncclSum, comm, stream_.get());
            },
            [&](std::size_t i) { return sum_of_patterns(communicator_.size(), first + i); });
    }
    void all_to_all(std::size_t n) const {
        const std::size_t first = n * static_cast<std::size_t>(communicator_.member());
        run(
            "an all-to-all", n * size_, n * size_,
            [&](ncclComm_t comm) {
                ncclGroupStart();
                for (std::size_t peer = 0; peer < size_; ++peer) {
                    const auto offset = static_cast<std::ptrdiff_t>(peer * n * sizeof(float));
                    ncclSend(send_.get() + offset, n, ncclFloat32, static_cast<int>(peer), comm, stream_.get());
                    ncclRecv(receive_.get() + offset, n, ncclFloat32, static_cast<int>(peer), comm, stream_.get());
                }
                return ncclGroupEnd();  // says if a call before failed
            },
            [&](std::size_t i) { return pattern(static_cast<int>(i / n), first + i % n); });
    }
    void ring(std::size_t n) const {
        const int size = communicator_.size();
        const int next = (communicator_.member() + 1) % size, before = (communicator_.member() + size - 1) % size;
        run(
            "a message", n, n,
            [&](ncclComm_t comm) {
                ncclGroupStart();
                ncclSend(send_.get(), n, ncclFloat32, next, comm, stream_.get());
                ncclRecv(receive_.get(), n, ncclFloat32, before, comm, stream_.get());
                return ncclGroupEnd();
            },
            [&](std::size_t i) { return pattern(before, i); });
    }

private:
    static std::int64_t bytes(std::size_t elements) { return static_cast<std::int64_t>(elements * sizeof(float)); }

    /// Puts `sent` elements on the device, calls, and compares `received` of what is there then.
    template <class Call, class Expected>
    void run(const char* what, std::size_t sent, std::size_t received, Call&& call, Expected&& expected) const {
        auto* const host = reinterpret_cast<float*>(host_.get());
        for (std::size_t i = 0; i < sent; ++i) host[i] = pattern(communicator_.member(), i);
        copy(send_.get(), host, sent, cudaMemcpyHostToDevice);
        check_cuda(cudaMemsetAsync(receive_.get(), 0xff, received * sizeof(float), stream_.get()), "cudaMemsetAsync");
        const std::string name = fmt::format("the wire check's {} over {}", what, communicator_.name());
        communicator_.issue(name, call);
        communicator_.synchronize(stream_.get(), name);
        copy(host, receive_.get(), received, cudaMemcpyDeviceToHost);
        check_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
        compare(what, {host, received}, expected);
    }
    void copy(void* to, const void* from, std::size_t elements, cudaMemcpyKind way) const {
        check_cuda(cudaMemcpyAsync(to, from, elements * sizeof(float), way, stream_.get()), "cudaMemcpyAsync");
    }
    template <class Expected>
    void compare(const char* what, std::span<const float> got, Expected&& expected) const {
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (got[i] == expected(i)) continue;
            throw RuntimeError(
                fmt::format("{} over communicator {} gave rank {} {} at element {} instead of {} (the "
                            "wire or its library corrupts data); check the links between the GPUs "
                            "(nvidia-smi nvlink -e, dmesg) and the network",
                            what, communicator_.name(), communicator_.member(), got[i], i, expected(i)));
        }
    }

    NcclCommunicator& communicator_;
    std::size_t size_;
    Stream stream_;
    DeviceMemory send_, receive_;
    PinnedMemory host_;
};

}  // namespace

void check_wire(NcclCommunicator& communicator) {
    if (communicator.size() == 1) return;  // no wire
    // Of each rank; the step's own memory leaves little when there are many.
    const std::size_t most = (std::size_t{1} << 24) / static_cast<std::size_t>(communicator.size());
    const std::size_t largest = std::clamp(most, std::size_t{1000}, std::size_t{1} << 18);
    const Check check(communicator, largest);
    try {
        for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, largest}) {
            check.all_reduce(n);
            check.all_gather(n);
            check.reduce_scatter(n);
            check.all_to_all(n);
            check.ring(n);
        }
    } catch (...) {
        communicator.abort();  // or freeing the buffers would wait for what is stuck on the device
        throw;
    }
}

}  // namespace lockstep::gpu
