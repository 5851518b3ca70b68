// Carries out step graphs on CPUs: oneDNN and own loops compute, a World communicates.
#pragma once

#include <atomic>
#include <memory>

#include "step/executor.hpp"
#include "world/world.hpp"

namespace lockstep::cpu {

struct CpuOptions {
    int threads = 1;        ///< computing threads of this rank
    Nanoseconds epoch{};    ///< on world::steady_now(): spans count from here
    std::string cpu_model;  ///< for info(): "AMD EPYC 9654"
};

/// One rank. A compute thread runs the kernels in issue order, a communication thread keeps collectives going beside
/// it. prepare() and check_wire() are collective over `world`, which must outlive this. Inputs are one fixed batch per
/// micro-batch, keyed by global sample index. Errors of the threads come out of collect().
class CpuExecutor final : public step::Executor {
public:
    CpuExecutor(world::World& world, CpuOptions options);
    ~CpuExecutor() override;

    /// Throws InputError for a precision or element type this CPU can't run (naming --set precision=fp32) and for a
    /// graph of another number of ranks; RuntimeError when memory is short.
    void prepare(const step::StepGraph& graph) override;
    void enqueue(std::int64_t step) override;
    std::vector<step::StepRecord> collect() override;
    step::ExecutorInfo info() const override;
    step::MemoryUse memory() const override;
    std::vector<float> read(step::TensorId tensor) override;
    void check_wire() override;
    std::string where() const override;

private:
    struct Prepared;
    const Prepared& prepared() const;
    world::World& world_;
    CpuOptions options_;
    std::unique_ptr<Prepared> prepared_;
    std::atomic<const Prepared*> visible_{nullptr};  // prepared_, for where()
    std::int64_t enqueued_ = 0, collected_ = 0;      // steps
};

/// Throws InputError when this CPU can't run a graph: fp16, fp8 and tf32 never, bf16 only where its products are
/// native.
void check_precision(const step::StepGraph& graph);

}  // namespace lockstep::cpu
