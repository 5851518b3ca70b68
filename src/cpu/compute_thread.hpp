// The thread that makes the kernels of a rank and runs them, step after step.
#pragma once

#include <cstdint>
#include <future>
#include <thread>

#include "cpu/kernel_table.hpp"
#include "cpu/run_state.hpp"
#include "cpu/tensor_memory.hpp"

namespace lockstep::cpu {

struct ComputeSettings {
    int threads = 1;                  ///< OpenMP threads
    std::uint64_t seed = 1;           ///< of dropout
    std::int32_t loss_position = -1;  ///< the last op of a step that writes the loss; -1: none
    const float* loss = nullptr;
};

/// Kernels are made on this thread because oneDNN and OpenMP tie their thread pool to it.
class ComputeThread {
public:
    /// Fills `memory`, makes a kernel for each op of the compute lanes and waits until that is done; rethrows its
    /// errors.
    ComputeThread(RunState& state, const TensorMemory& memory, const ComputeSettings& settings);
    ~ComputeThread();
    std::int64_t scratch_bytes() const { return scratch_bytes_; }

private:
    void main(std::promise<void> prepared);
    void run(const KernelTable& kernels);

    RunState& state_;
    const TensorMemory& memory_;
    ComputeSettings settings_;
    std::int64_t scratch_bytes_ = 0;
    std::thread thread_;
};

}  // namespace lockstep::cpu
