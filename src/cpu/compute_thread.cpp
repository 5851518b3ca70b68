#include "cpu/compute_thread.hpp"

#include <omp.h>

#include <utility>

#include "cpu/isa.hpp"
#include "cpu/kernel_table.hpp"

namespace lockstep::cpu {
namespace {

void set_up_threads(int threads) {
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
#pragma omp parallel
    flush_denormals();
}

/// The lanes of this thread, and which of their heads comes first in issue order among those that are ready.
class Lanes {
public:
    explicit Lanes(const RunState& state) : state_(state) {
        const auto& lanes = state.schedule().lanes;
        for (std::size_t i = 0; i < lanes.size(); ++i)
            if (runs_on_compute_thread(lanes[i]) && !lanes[i].ops.empty())
                mine_.push_back(static_cast<std::int32_t>(i));
    }
    /// False when none is ready.
    bool find(std::int32_t& lane, RunState::Head& head) const {
        bool found = false;
        for (const std::int32_t candidate : mine_) {
            const RunState::Head at = state_.head(candidate);
            if (found && std::pair(at.step, at.position) > std::pair(head.step, head.position)) continue;
            if (!state_.is_ready(candidate, at)) continue;
            lane = candidate;
            head = at;
            found = true;
        }
        return found;
    }

private:
    const RunState& state_;
    std::vector<std::int32_t> mine_;
};

}  // namespace

ComputeThread::ComputeThread(RunState& state, const TensorMemory& memory, const ComputeSettings& settings)
    : state_(state), memory_(memory), settings_(settings) {
    std::promise<void> prepared;
    std::future<void> result = prepared.get_future();
    thread_ = std::thread([this, p = std::move(prepared)]() mutable { main(std::move(p)); });
    try {
        result.get();
    } catch (...) {
        thread_.join();
        throw;
    }
}

ComputeThread::~ComputeThread() {
    state_.stop();
    if (thread_.joinable()) thread_.join();
}

void ComputeThread::main(std::promise<void> prepared) {
    std::unique_ptr<KernelTable> kernels;
    try {
        set_up_threads(settings_.threads);
        memory_.initialise();
        kernels = std::make_unique<KernelTable>(state_.schedule(), memory_, settings_.seed);
        scratch_bytes_ = kernels->scratch_bytes();
    } catch (...) {
        prepared.set_exception(std::current_exception());
        return;
    }
    prepared.set_value();
    try {
        run(*kernels);
    } catch (...) { state_.fail(std::current_exception()); }
}

void ComputeThread::run(const KernelTable& kernels) {
    const Lanes lanes(state_);
    const auto& ops = state_.schedule().ops;
    std::int32_t lane = 0;
    RunState::Head head;
    while (!state_.is_over()) {
        if (!lanes.find(lane, head)) {
            state_.wait([&] { return lanes.find(lane, head); });
            continue;
        }
        const step::OpInstance& instance = ops[head.position].instance;
        state_.begin_op(lane, head, state_.now());
        kernels.at(head.position)->run({head.step, instance.micro_batch});
        if (head.position == settings_.loss_position) state_.set_loss(head.step, *settings_.loss);
        state_.complete_op(lane, head, state_.now());
    }
}

}  // namespace lockstep::cpu
