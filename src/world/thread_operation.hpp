// Operations in flight between the threads of one program, and the one lock that orders them.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace lockstep::world {

/// What the ranks of one thread world and of all worlds split from it share. Every member is guarded by `mutex`.
struct Program {
    explicit Program(int ranks) : ended(ranks), told(ranks) {}
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<std::string> failure;  ///< why operations can no longer complete
    std::vector<bool> ended;             ///< ranks whose body has returned
    std::vector<bool> told;              ///< ranks that threw because of another's failure

    /// The first failure is kept; every waiting rank wakes. The caller holds the lock.
    void fail(const std::string& why);
    /// Throws RuntimeError in the name of `rank` when the program has failed. The caller holds the lock.
    void throw_if_failed(int rank);
};

/// One transfer between two or more ranks: once all have arrived, whichever rank looks first moves the data of all.
struct Operation {
    enum class State { open, ready, running, done };
    State state = State::open;
    std::vector<int> missing;    ///< ranks of the program that have not arrived
    std::function<void()> move;  ///< runs without the lock, and does not throw
    std::string name;            ///< for messages

    /// `rank` takes part from now on; the last to arrive makes the operation ready. The caller holds the lock.
    void arrive(int rank);
};

/// A request that is complete when all its operations are. Destroying it early, as an unwinding rank does, fails the
/// program, because the buffers go away with it.
class ThreadRequest final : public Request {
public:
    ThreadRequest(std::shared_ptr<Program> program, int rank, std::vector<std::shared_ptr<Operation>> operations);
    ~ThreadRequest() override;
    bool test() override;
    void wait() override;

private:
    bool is_done() const;
    bool run_one_ready(std::unique_lock<std::mutex>& lock);
    void throw_if_stuck();

    std::shared_ptr<Program> program_;
    int rank_;
    std::vector<std::shared_ptr<Operation>> operations_;
};

}  // namespace lockstep::world
