// The executor that predicts: it carries out step graphs in virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/variation.hpp"
#include "sim/folding.hpp"
#include "step/durations.hpp"
#include "step/executor.hpp"

namespace lockstep::sim {

class Engine;

struct SimOptions {
    std::string device;      ///< for the record: "a100-sxm4-40gb"
    Seconds host_per_op{0};  ///< added to the host time of each op (machine::Calibration)
    std::uint64_t seed = 1;  ///< of the experiment: jitter is drawn from it
    machine::Variation variation;
    Fold fold = Fold::alike;
};

/// Gives one record per simulated rank, with the ranks it stands for. Reads no clock; equal input gives equal records.
class SimExecutor final : public step::Executor {
public:
    /// `durations` must outlive prepare().
    SimExecutor(const step::Durations& durations, SimOptions options);
    ~SimExecutor() override;

    void prepare(const step::StepGraph& graph) override;
    /// Throws LogicError when steps come out of order or a third would be in flight.
    void enqueue(std::int64_t step) override;
    /// Simulates up to the end of the oldest step in flight; steps behind it may have gone ahead by then.
    std::vector<step::StepRecord> collect() override;
    step::ExecutorInfo info() const override;
    step::MemoryUse memory() const override;
    std::vector<float> read(step::TensorId tensor) override;
    void check_wire() override;
    std::string where() const override;

private:
    const Engine& engine() const;

    const step::Durations& durations_;
    SimOptions options_;
    const step::StepGraph* graph_ = nullptr;
    std::unique_ptr<Engine> engine_;
    std::int64_t enqueued_ = 0;
    std::int64_t collected_ = 0;
};

}  // namespace lockstep::sim
