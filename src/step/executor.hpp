// The contract of everything that carries out step graphs: a CPU, a GPU, a simulator.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "step/graph.hpp"
#include "step/liveness.hpp"
#include "step/span.hpp"

namespace lockstep::step {

/// What carried out a run, for the record.
struct ExecutorInfo {
    std::string backend;  ///< "cpu", "gpu", "sim"
    std::string device;   ///< "AMD EPYC, 1 thread", "NVIDIA H100 ...", "a100-sxm4-40gb (simulated)"
    std::string details;  ///< library versions, ISA
    /// More of this rank, known from prepare() on: "nccl_version", "communicator dp", "library_algorithms" ...
    std::map<std::string, std::string> facts{};
    std::optional<Seconds> span_cost{};  ///< of recording the spans of a step, where it is measured
    bool samples_device = false;         ///< records have the device's state
};

class Executor {
public:
    virtual ~Executor() = default;
    /// Takes the graph (which must outlive the executor), allocates everything, initialises parameters by global index.
    /// Once.
    virtual void prepare(const StepGraph& graph) = 0;
    /// Starts a step (steps count from 0, in order) without waiting for the one before. At most 2 are in flight.
    virtual void enqueue(std::int64_t step) = 0;
    /// Waits for the oldest step in flight: the record of this rank, or of one rank per class of a prediction.
    virtual std::vector<StepRecord> collect() = 0;
    virtual ExecutorInfo info() const = 0;
    virtual MemoryUse memory() const = 0;
    /// Elements of a tensor after the collected steps, as floats in row-major order (for --check=numeric). No step may
    /// be in flight. A simulator throws RuntimeError: it has no values.
    virtual std::vector<float> read(TensorId tensor) = 0;
    /// Sends known patterns over each communicator and compares; throws RuntimeError naming communicator, rank and
    /// element. Collective.
    virtual void check_wire() = 0;
    /// What this rank is doing now, for the watchdog: "step 12, op layer3.conv1.forward". Callable from any thread.
    virtual std::string where() const = 0;
    /// Ends communication that is under way, so that nothing waits for a peer that is gone. Callable from any thread;
    /// nothing can be run after it. Executors whose communication ends with the process do nothing.
    virtual void abort() {}
};

}  // namespace lockstep::step
