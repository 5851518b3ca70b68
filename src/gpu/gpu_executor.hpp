// Carries out step graphs on one GPU per rank: cuBLASLt, cuDNN and own kernels compute, NCCL communicates.
#pragma once

#include <atomic>
#include <memory>

#include "gpu/backend.hpp"
#include "step/executor.hpp"
#include "world/world.hpp"

namespace lockstep::gpu {

/// One rank. A stream of the graph is a CUDA stream; an op waits for what it depends on by events on the device, and
/// the host waits only where the graph says so (HostSync). prepare(), check_wire() and the first steps' collect() are
/// collective over `world`, which must outlive this. Failures of the device or of NCCL come out of enqueue() and
/// collect(), after this rank's communicators have been aborted.
class GpuExecutor final : public step::Executor {
public:
    /// `facts` are those of options.device. Makes that device current for the calling thread.
    GpuExecutor(world::World& world, GpuOptions options, GpuFacts facts);
    ~GpuExecutor() override;

    /// Throws InputError for a precision this GPU can't run and for a graph of another number of ranks; RuntimeError
    /// when memory is short, a library can't do an op or a communicator can't be made.
    void prepare(const step::StepGraph& graph) override;
    void enqueue(std::int64_t step) override;
    std::vector<step::StepRecord> collect() override;
    step::ExecutorInfo info() const override;
    step::MemoryUse memory() const override;
    std::vector<float> read(step::TensorId tensor) override;
    void check_wire() override;
    std::string where() const override;
    void abort() override;

private:
    struct Prepared;
    const Prepared& prepared() const;
    Prepared& prepared();
    world::World& world_;
    GpuOptions options_;
    GpuFacts facts_;
    std::unique_ptr<Prepared> prepared_;
    std::atomic<const Prepared*> visible_{nullptr};         // prepared_, for where()
    std::atomic<std::int64_t> enqueued_{0}, collected_{0};  // steps
};

/// Throws InputError when this GPU can't run a graph: bf16 and tf32 before compute capability 8.0, fp8 before 8.9.
void check_precision(const step::StepGraph& graph, const GpuFacts& facts);

}  // namespace lockstep::gpu
