#include "gpu_double/nccl/group.hpp"

#include <algorithm>

#include "gpu_double/nccl/misuse.hpp"

namespace lockstep::nccl_double {
namespace {

struct Part {
    ncclComm_t communicator = nullptr;
    Communicator::Pending work;
};
struct Group {
    int depth = 0;
    ncclResult_t error = ncclSuccess;
    std::vector<Part> parts;  // one of each communicator
    std::vector<ncclComm_t> aborts;
};
thread_local Group group;

Communicator::Pending& part_of(ncclComm_t communicator, cudaStream_t stream, bool hangs) {
    const auto found = std::find_if(group.parts.begin(), group.parts.end(),
                                    [&](const Part& p) { return p.communicator == communicator; });
    Part& part = found != group.parts.end() ? *found : group.parts.emplace_back(Part{communicator, {{}, stream}});
    if (part.work.stream != stream)
        misuse("a group with operations of one communicator on two streams is not modelled");
    part.work.launch.hangs = part.work.launch.hangs || hangs;
    return part.work;
}

ncclResult_t issue(Part& part, bool hangs) {
    const Call call(part.communicator, "ncclGroupEnd");
    part.work.launch.hangs = part.work.launch.hangs || hangs;
    call->add(std::move(part.work));
    return call->is_blocking ? call->poll() : ncclInProgress;
}

ncclResult_t issue_all(bool hangs) {
    ncclResult_t result = std::exchange(group.error, ncclSuccess);
    std::vector<Part> parts = std::exchange(group.parts, {});
    const std::vector<ncclComm_t> aborts = std::exchange(group.aborts, {});
    if (result == ncclSuccess)
        for (Part& part : parts) result = std::max(result, issue(part, hangs));
    if (aborts.size() == 1) expect_device_to_come_free(aborts.front());
    for (const ncclComm_t one : aborts) remove_communicator(one, Leave::aborted);
    return result;
}

ncclResult_t issue_unless_in_group() { return group.depth > 0 ? ncclSuccess : issue_all(false); }

}  // namespace

ncclResult_t add_collective(ncclComm_t communicator, const Collective& collective, cudaStream_t stream, bool hangs) {
    part_of(communicator, stream, hangs).launch.collectives.push_back(collective);
    return issue_unless_in_group();
}

ncclResult_t add_message(ncclComm_t communicator, const Message& message, cudaStream_t stream, bool hangs) {
    part_of(communicator, stream, hangs).launch.messages.push_back(message);
    return issue_unless_in_group();
}

ncclResult_t add_abort(ncclComm_t communicator) {
    release_communicator(communicator);
    group.aborts.push_back(communicator);
    return issue_unless_in_group();
}

ncclResult_t begin_group() {
    ++group.depth;
    return ncclSuccess;
}

ncclResult_t end_group(bool hangs) {
    if (group.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
    return --group.depth > 0 ? ncclSuccess : issue_all(hangs);
}

bool is_in_group() { return group.depth > 0; }

void spoil_group(ncclResult_t result) {
    if (group.depth > 0 && group.error == ncclSuccess) group.error = result;
}

}  // namespace lockstep::nccl_double
