// The simulation itself: ranks issue, streams run, collectives and messages meet, all in virtual time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/activity.hpp"
#include "sim/actor.hpp"
#include "sim/drift.hpp"
#include "sim/event_queue.hpp"
#include "sim/folded_world.hpp"
#include "sim/matching.hpp"
#include "sim/tape.hpp"
#include "sim/transfers.hpp"
#include "step/durations.hpp"

namespace lockstep::sim {

/// An op begins at max(issued, its stream free, what it waits for done). A collective begins its latency when all its
/// ranks have arrived, then its transfer, alone at its full rate; a message op when all its counterparts are there.
/// Transfers that share a link share it max-min fair. While a communication of a rank is under way its kernels run at
/// 1 - compute_slowdown, and at the speed its profile says.
/// A step may be enqueued at any time; its host work begins then at the earliest.
class Engine {
public:
    /// The graph must outlive the engine. Throws InputError for a slowdown that isn't a share below 1.
    Engine(const step::StepGraph& graph, FoldedWorld world, double compute_slowdown,
           std::optional<DriftModel> jitter = std::nullopt);

    /// Adds step k (from 0, in order) to the work of every rank, at the present virtual time.
    void enqueue(std::int64_t k);
    /// Runs until step k is done on all ranks. Throws RuntimeError naming the ops that wait when they wait for ever.
    void run(std::int64_t k);
    /// The records of step k, one for each simulated rank. Step k must be done and k + 3 not enqueued.
    std::vector<step::StepRecord> records(std::int64_t k) const;

    Picoseconds now() const { return now_; }
    std::size_t groups() const { return actors_.size(); }  ///< simulated ranks
    std::size_t shared_links() const { return world_.folding.links.size(); }
    std::uint64_t events() const { return queue_.pushed(); }
    /// The op done last; callable from any thread.
    std::string where() const;

private:
    enum class EventKind : std::uint8_t { begin, work_due, transfer_due, all_there, latency_over, speed_change };
    struct Event {
        EventKind kind = EventKind::begin;
        std::int32_t id = 0;       ///< activity, communication or actor
        std::uint32_t detail = 0;  ///< version or stream
    };
    /// Meetings come first, then one for each lane that sends messages.
    struct Communication {
        std::vector<Lane> members;
        step::CommunicationTime time;
        std::int32_t shape = -1;
        Picoseconds all_there;  ///< of a collective: when the latest rank comes, simulated or not
        Lane latest;            ///< the simulated one it belongs to
    };

    Actor& actor(Lane lane) { return actors_[static_cast<std::size_t>(lane.actor)]; }
    StreamState& stream(Lane lane) { return actor(lane).streams[static_cast<std::size_t>(lane.stream)]; }
    /// The op of a lane that is under way or next, and its step.
    struct Current {
        const TapeOp* op;
        std::int32_t index;
        std::int64_t step;
    };
    Current current(Lane lane) const;

    void dispatch(const Event& event);
    void advance_host(std::int32_t actor);
    void try_begin_all(std::int32_t actor);
    void try_begin(Lane lane);
    void begin(Lane lane);
    void complete(Lane lane);
    void finish_op(Actor& actor, std::int64_t step, std::int32_t index);

    void join_meeting(Lane lane, const Current& current);
    void post_messages(Lane lane, const Current& current);
    void begin_communication(std::int32_t communication);
    void begin_transfer(std::int32_t communication);
    void finish_communication(std::int32_t communication);
    std::int32_t message_communication(Lane lane) const;
    void change_load(Lane lane, std::int32_t change);
    void change_speed(std::int32_t actor, std::size_t step);
    double kernel_speed(const Actor& actor) const;
    Drifts& drifts(Lane lane);
    Picoseconds start_of(Lane lane) const;
    Drifts& drifts_at_end(Lane lane, const Current& done);
    void follow_latest(Lane lane, const Current& next);
    Seconds work_of(Lane lane, const Current& now);
    Seconds lateness(Lane lane, const Current& now);
    void adjust_kernels(const Actor& actor);

    void post_work(const Due& due);
    void post_transfers();
    [[noreturn]] void report_deadlock(std::int64_t k) const;

    const step::StepGraph& graph_;
    FoldedWorld world_;
    double slowed_speed_ = 1;  ///< of kernels beside communication
    std::vector<Actor> actors_;
    Matching matching_;
    std::optional<DriftModel> jitter_;
    std::vector<Drifts> drifts_;                      ///< by actor and stream; none without jitter
    std::vector<std::vector<Drifts>> drifts_at_end_;  ///< by actor; of ops of the steps in flight

    Picoseconds now_;
    EventQueue<Event> queue_;
    Activities<Seconds> work_;
    std::vector<Lane> lane_of_work_;  ///< by activity
    Transfers transfers_;
    std::vector<std::int32_t> communication_of_transfer_;  ///< by activity
    std::vector<Communication> communications_;
    std::map<std::int64_t, std::int32_t> ranks_left_;  ///< by step in flight: simulated ranks that have not done it
    std::vector<Lane> partners_;                       ///< scratch
    std::vector<Lane> finished_;                       ///< scratch
    std::atomic<std::int64_t> last_step_{-1};
    std::atomic<std::int32_t> last_op_{-1};
};

}  // namespace lockstep::sim
