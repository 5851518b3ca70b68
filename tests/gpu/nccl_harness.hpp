// Ranks with a communicator, and buffers on their devices.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/communication.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "gpu/handles.hpp"
#include "gpu/nccl_communicator.hpp"
#include "gpu/variable.hpp"
#include "step/global_place.hpp"

namespace lockstep::gpu::testing {

using Values = std::vector<float>;

/// Runs body(world) on threads, each with a device of its own.
template <class F>
void run_ranks(int ranks, F body) {
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", std::to_string(ranks));
    world::run_thread_world(ranks, [&](world::World& world) {
        check_cuda(cudaSetDevice(world.rank()), "cudaSetDevice");
        body(world);
    });
}

/// A graph of data parallelism alone: one communicator "dp" of all ranks and its stream.
inline step::StepGraph dp_graph(int ranks) {
    step::StepGraph graph;
    graph.mesh.dp = ranks;
    graph.communicators.push_back({"dp", {plan::Axis::dp}, ranks, {}});
    graph.streams.push_back({step::Stream::Lane::communication, step::CommunicatorId{0}, "dp"});
    return graph;
}

inline Operand operand_at(void* data, std::int64_t elements, DType dtype) {
    Operand operand;
    operand.shape = operand.global = Shape{elements};
    operand.runs = step::whole_runs(operand.shape);
    operand.data = data;
    operand.dtype = dtype;
    return operand;
}

/// `elements` of a dtype on the device, from and to floats.
class Buffer {
public:
    Buffer(DType dtype, std::int64_t elements)
        : dtype_(dtype),
          elements_(elements),
          width_(static_cast<std::int64_t>(size_of(dtype).value)),
          memory_(allocate_device(elements * width_, "a test")) {}
    Buffer(DType dtype, const Values& values) : Buffer(dtype, static_cast<std::int64_t>(values.size())) {
        write(0, values);
    }
    std::int64_t elements() const { return elements_; }
    std::byte* at(std::int64_t element) const { return memory_.get() + element * width_; }
    /// The whole buffer, or `count` elements of it.
    Operand operand() const { return operand_at(memory_.get(), elements_, dtype_); }
    Operand operand(std::int64_t first, std::int64_t count) const { return operand_at(at(first), count, dtype_); }

    void write(std::int64_t first, const Values& values) const {
        std::vector<std::byte> host(values.size() * static_cast<std::size_t>(width_));
        for (std::size_t i = 0; i < values.size(); ++i) set(host.data(), i, values[i]);
        check_cuda(cudaMemcpy(at(first), host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    Values read() const {
        std::vector<std::byte> host(static_cast<std::size_t>(elements_ * width_));
        check_cuda(cudaMemcpy(host.data(), memory_.get(), host.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        Values values;
        for (std::size_t i = 0; i < static_cast<std::size_t>(elements_); ++i) values.push_back(get(host.data(), i));
        return values;
    }

private:
    void set(std::byte* data, std::size_t i, float value) const {
        if (dtype_ == DType::int32)
            reinterpret_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(value);
        else if (dtype_ == DType::uint8)
            reinterpret_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(value);
        else
            with_type(dtype_, [&](auto t) { reinterpret_cast<decltype(t)*>(data)[i] = store<decltype(t)>(value); });
    }
    float get(const std::byte* data, std::size_t i) const {
        if (dtype_ == DType::int32) return static_cast<float>(reinterpret_cast<const std::int32_t*>(data)[i]);
        if (dtype_ == DType::uint8) return reinterpret_cast<const std::uint8_t*>(data)[i];
        return with_type(dtype_, [&](auto t) { return load(reinterpret_cast<const decltype(t)*>(data)[i]); });
    }

    DType dtype_;
    std::int64_t elements_, width_;
    DeviceMemory memory_;
};

/// A rank's end of a data-parallel communicator.
struct Rank {
    explicit Rank(world::World& w, Seconds timeout = Seconds{60})
        : world(w), graph(dp_graph(w.size())), communicators(make_communicators(graph, w, timeout)) {}

    NcclCommunicator& communicator() const { return *communicators[0]; }
    step::Op op(step::OpKind kind, std::string name = "tested") const {
        step::Op op;
        op.name = std::move(name);
        op.kind = std::move(kind);
        op.stream = step::StreamId{0};
        return op;
    }
    /// Binds, enqueues and waits.
    void run(step::OpKind kind, const Operands& operands) const {
        const Communication bound(graph, world.rank(), op(std::move(kind)), operands, communicator());
        bound.enqueue(stream.get());
        communicator().synchronize(stream.get(), bound.description());
    }

    world::World& world;
    step::StepGraph graph;
    Stream stream = make_stream();
    std::vector<std::unique_ptr<NcclCommunicator>> communicators;
};

/// Throws RuntimeError naming the first element that is not as expected(i) says.
inline void expect_values(const Values& got, const std::function<float(std::int64_t)>& expected,
                          const std::string& what) {
    for (std::size_t i = 0; i < got.size(); ++i)
        if (const float should = expected(static_cast<std::int64_t>(i)); got[i] != should)
            throw RuntimeError(fmt::format("{}: element {} is {} instead of {}", what, i, got[i], should));
}

}  // namespace lockstep::gpu::testing
