// The thread that keeps the head of every communication and input stream going while the other computes.
#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "cpu/communication.hpp"
#include "cpu/run_state.hpp"
#include "cpu/tensor_memory.hpp"

namespace lockstep::cpu {

/// MPI moves data only inside its calls, so the thread tests each head in turn and never blocks on one. It sleeps while
/// nothing is under way, and a little when tests do nothing for long (a peer is late): the processor belongs to the
/// computing threads.
class CommunicationThread {
public:
    /// `worlds` by stream; null where a stream needs none. Everything must outlive this.
    CommunicationThread(RunState& state, const step::StepGraph& graph, int rank, const TensorMemory& memory,
                        const std::vector<std::unique_ptr<world::World>>& worlds);
    ~CommunicationThread();

private:
    struct Stream {
        std::int32_t lane = 0;
        world::World* world = nullptr;
        RunState::Head head;
        std::optional<OpInFlight> op;
    };
    void run();
    bool advance(Stream& stream);
    bool can_start() const;

    RunState& state_;
    std::vector<std::unique_ptr<BoundCommunication>> bound_;  // by position in the schedule
    std::vector<Stream> streams_;
    std::thread thread_;
};

}  // namespace lockstep::cpu
