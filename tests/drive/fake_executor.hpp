// An executor that does nothing but count, for tests of the loop around it.
#pragma once

#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "step/executor.hpp"

namespace lockstep::drive {

class FakeExecutor final : public step::Executor {
public:
    explicit FakeExecutor(int rank) : rank_(rank) {}

    void prepare(const step::StepGraph&) override {}
    void enqueue(std::int64_t step) override {
        if (in_flight_.size() == 2) throw LogicError("three steps in flight");
        if (step != next_) throw LogicError("steps out of order");
        in_flight_.push_back(next_++);
    }
    std::vector<step::StepRecord> collect() override {
        if (in_flight_.empty()) throw LogicError("nothing in flight");
        const std::int64_t step = in_flight_.front();
        in_flight_.pop_front();
        if (step == fails_at) throw RuntimeError("the device fell off the bus");
        step::StepRecord record;
        record.step = step;
        record.rank = rank_;
        record.begin = {step * 1000};
        record.end = {step * 1000 + 900};
        record.loss = 1.0 / static_cast<double>(step + 1);
        return {record};
    }
    step::ExecutorInfo info() const override { return {"fake", "fake", ""}; }
    step::MemoryUse memory() const override { return {}; }
    std::vector<float> read(step::TensorId) override { return values; }
    void check_wire() override {}
    std::string where() const override { return "step " + std::to_string(next_ - 1); }

    std::int64_t enqueued() const { return next_; }

    std::int64_t fails_at = -1;
    std::vector<float> values;

private:
    int rank_;
    std::int64_t next_ = 0;
    std::deque<std::int64_t> in_flight_;
};

}  // namespace lockstep::drive
