#include "cpu/communication_thread.hpp"

#include <algorithm>
#include <chrono>

#include "cpu/isa.hpp"

namespace lockstep::cpu {
namespace {

/// Decides how to wait between rounds of tests that complete nothing.
class Patience {
public:
    void reset() { idle_ = 0; }
    void wait(Nanoseconds round) {
        constexpr Nanoseconds quick{3000};  // a longer round moved data
        constexpr int patience = 100;
        idle_ = round < quick ? idle_ + 1 : 0;
        if (idle_ < patience)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    }

private:
    int idle_ = 0;
};

}  // namespace

CommunicationThread::CommunicationThread(RunState& state, const step::StepGraph& graph, int rank,
                                         const TensorMemory& memory,
                                         const std::vector<std::unique_ptr<world::World>>& worlds)
    : state_(state), bound_(state.schedule().ops.size()) {
    const step::Schedule& schedule = state.schedule();
    for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
        if (runs_on_compute_thread(schedule.lanes[lane])) continue;
        if (schedule.lanes[lane].ops.empty()) continue;
        for (const std::int32_t position : schedule.lanes[lane].ops) {
            const step::OpInstance& instance = schedule.ops[position].instance;
            bound_[position] = std::make_unique<BoundCommunication>(
                bind_communication(graph, rank, *instance.op, memory.operands(instance)));
        }
        streams_.push_back({static_cast<std::int32_t>(lane), worlds[lane].get(), {}, std::nullopt});
    }
    if (!streams_.empty()) thread_ = std::thread([this] { run(); });
}

CommunicationThread::~CommunicationThread() {
    state_.stop();
    if (thread_.joinable()) thread_.join();
}

bool CommunicationThread::can_start() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [&](const Stream& s) { return state_.is_ready(s.lane, state_.head(s.lane)); });
}

/// Starts or goes on with the head of a stream; true when something began or ended.
bool CommunicationThread::advance(Stream& s) {
    if (!s.op) {
        s.head = state_.head(s.lane);
        if (!state_.is_ready(s.lane, s.head)) return false;
        const Nanoseconds now = state_.now();
        state_.begin_op(s.lane, s.head, now);
        s.op.emplace(*bound_[s.head.position], s.world, now);
        return true;
    }
    if (!s.op->progress(state_.now())) return false;
    s.op.reset();
    state_.complete_op(s.lane, s.head, state_.now());
    return true;
}

void CommunicationThread::run() {
    flush_denormals();
    Patience patience;
    try {
        while (!state_.is_over()) {
            const Nanoseconds begin = state_.now();
            bool moved = false, waiting = false;
            for (Stream& s : streams_) {
                moved = advance(s) || moved;
                waiting = waiting || s.op.has_value();
            }
            if (moved)
                patience.reset();
            else if (waiting)
                patience.wait(state_.now() - begin);
            else
                state_.wait([this] { return can_start(); });
        }
    } catch (...) { state_.fail(std::current_exception()); }
    for (Stream& s : streams_) s.op.reset();
}

}  // namespace lockstep::cpu
