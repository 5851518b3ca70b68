// Where the ranks of one thread world meet: matches the parts of collectives by order and of messages by (from, to,
// tag).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "world/thread_operation.hpp"
#include "world/world.hpp"

namespace lockstep::world {

/// What all ranks of a collective must agree on.
struct CollectiveCall {
    enum class Kind { barrier, broadcast, gather, all_gather, all_reduce, reduce_scatter, all_to_all } kind;
    std::size_t bytes = 0;  ///< what one rank contributes
    int root = 0;
    Number type = Number::f32;
    Reduce op = Reduce::sum;

    bool operator==(const CollectiveCall&) const = default;
    std::string describe() const;
};

/// Buffers of all ranks of one collective; for calls in place, in and out of a rank are the same memory.
struct CollectiveBuffers {
    std::vector<std::span<const std::byte>> in;
    std::vector<std::span<std::byte>> out;
};

/// Moves the data of all ranks. Sums are added in rank order, so that all ranks hold equal bits.
void move_collective(const CollectiveCall& call, const CollectiveBuffers& buffers);

class Hub {
public:
    /// `members[i]` is the program's number of rank i of this world.
    Hub(std::shared_ptr<Program> program, std::vector<int> members);

    /// Adds one rank's part. Throws LogicError when it contradicts what another rank called, RuntimeError when the
    /// program has failed.
    std::unique_ptr<Request> join(int rank, const CollectiveCall& call, std::span<const std::byte> in,
                                  std::span<std::byte> out);
    std::unique_ptr<Request> post(int rank, std::span<const Send> sends, std::span<const Receive> receives);

    /// The hub of `members` (ranks of this one, in order), the same object for all that ask with the same `colour`
    /// after the same number of collectives.
    std::shared_ptr<Hub> child(int rank, int colour, const std::vector<int>& members);

    int size() const { return static_cast<int>(members_.size()); }

private:
    struct Collective {
        CollectiveCall call;
        std::shared_ptr<CollectiveBuffers> buffers;
        std::shared_ptr<Operation> operation;
    };
    struct Message {
        std::span<const std::byte> source;
        std::span<std::byte> target;
        std::shared_ptr<Operation> operation;
    };
    struct Mailbox {
        std::deque<Message> sends, receives;  // at most one of them is not empty
    };
    struct Child {
        std::shared_ptr<Hub> hub;
        std::size_t taken = 0;
    };

    Collective& open_collective(std::uint64_t sequence, const CollectiveCall& call);
    std::shared_ptr<Operation> post_send(int rank, const Send& send);
    std::shared_ptr<Operation> post_receive(int rank, const Receive& receive);
    void connect(const Message& message, int rank);

    std::shared_ptr<Program> program_;
    std::vector<int> members_;
    std::vector<std::uint64_t> calls_;  // collectives each rank has joined
    std::map<std::uint64_t, Collective> collectives_;
    std::map<std::tuple<int, int, int>, Mailbox> mailboxes_;
    std::map<std::pair<std::uint64_t, int>, Child> children_;
};

}  // namespace lockstep::world
