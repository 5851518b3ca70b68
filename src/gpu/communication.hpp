// Communication ops of a rank, bound to device addresses and a communicator.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "gpu/kernel.hpp"
#include "gpu/nccl_communicator.hpp"
#include "step/graph.hpp"

namespace lockstep::gpu {

/// A collective and its buffers; `count` as NCCL counts (see step::Collective).
struct BoundCollective {
    step::CollectiveKind kind = step::CollectiveKind::all_reduce;
    const void* send = nullptr;
    void* receive = nullptr;
    std::size_t count = 0;
    ncclDataType_t type = ncclFloat32;
    ncclRedOp_t reduction = ncclSum;
    std::size_t part_bytes = 0;  ///< `count` elements
};
/// What goes as one ncclGroup. NCCL knows no tags: messages between two ranks meet in order, as step::check makes sure.
struct BoundMessages {
    struct Message {
        void* data = nullptr;
        std::size_t count = 0;
        ncclDataType_t type = ncclFloat32;
        int peer = 0;  ///< member of the communicator
    };
    std::vector<Message> sends, receives;
};
/// What is left of an op among one rank.
struct BoundCopies {
    struct Copy {
        const void* from = nullptr;
        void* to = nullptr;
        std::size_t bytes = 0;
    };
    std::vector<Copy> copies;
};

/// A Collective or P2PGroup, enqueued many times.
class Communication {
public:
    /// Operands in the order of step::for_each_operand (the sends of a message group are `in`, the receives `out`).
    /// `communicator`, that of the op's stream, must outlive this. Throws LogicError, naming the op, for buffers that
    /// don't fit its count or overlap where NCCL allows no in-place operation, and InputError for element types that
    /// NCCL can't add.
    Communication(const step::StepGraph& graph, int rank, const step::Op& op, const Operands& operands,
                  NcclCommunicator& communicator);

    /// Puts the op on the stream; returns when it is there, before it runs. Throws RuntimeError as
    /// NcclCommunicator::issue does.
    void enqueue(cudaStream_t stream) const;
    /// For messages about it: "bucket0.all_reduce (all_reduce, 26214400 bytes) over dp (4 ranks)".
    const std::string& description() const { return description_; }

private:
    std::string description_;
    NcclCommunicator& communicator_;
    std::variant<BoundCollective, BoundMessages, BoundCopies> bound_;
};

}  // namespace lockstep::gpu
