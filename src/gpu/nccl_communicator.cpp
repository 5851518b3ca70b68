#include "gpu/nccl_communicator.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <span>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/nccl_check.hpp"
#include "world/agree.hpp"

namespace lockstep::gpu {
namespace {

/// Several communicators can be aborted as one group since NCCL 2.22.
bool can_group_aborts() {
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess && version >= NCCL_VERSION(2, 22, 0);
}

}  // namespace

std::string describe_rank(const world::World& world) {
    int device = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    return fmt::format("rank {} (host {}, GPU {})", world.rank(), world.host(), device);
}

NcclMeeting meet(world::World& members, const std::string& name, const std::string& self) {
    NcclMeeting meeting{name, members.rank(), world::all_gather_strings(members, self), {}};
    if (members.size() == 1) return meeting;
    world::agree(members, [&] {
        if (members.rank() == 0) check_nccl(ncclGetUniqueId(&meeting.id), "ncclGetUniqueId");
    });
    members.broadcast(std::as_writable_bytes(std::span{&meeting.id, 1}), 0);
    return meeting;
}

NcclCommunicator::NcclCommunicator(NcclMeeting meeting, Seconds timeout)
    : meeting_(std::move(meeting)), timeout_(timeout), exceptions_at_start_(std::uncaught_exceptions()) {
    if (size() == 1) return;
    check_cuda(cudaGetDevice(&device_), "cudaGetDevice");
    try {
        initialise(std::source_location::current());
    } catch (...) {
        abort();
        throw;
    }
}

void NcclCommunicator::initialise(std::source_location where) {
    constexpr const char* call = "ncclCommInitRankConfig";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t result = ncclCommInitRankConfig(&comm_, size(), meeting_.id, member(), &config);
    if (result == ncclInProgress) result = wait_while_in_progress([this] { return state(); }, timeout_);
    if (result == ncclSuccess) return;
    if (result != ncclInProgress) fail(result, fmt::format("{} for communicator {}", call, name()), where);
    has_failed_ = true;
    throw RuntimeError(fmt::format(
        "communicator {} could not be made: {} waited {} s for {}, {} not come or can't be reached ({}: {} at {}); see "
        "what they say, check the network between the hosts (NCCL_DEBUG=INFO, NCCL_SOCKET_IFNAME), or give them longer "
        "with --timeout",
        name(), who(), timeout_.value, peers(), size() > 2 ? "some of whom have" : "which has", call, describe(result),
        place_in_source(where)));
}

NcclCommunicator::~NcclCommunicator() {
    if (comm_ == nullptr || is_aborted()) return;
    if (has_failed_ || std::uncaught_exceptions() > exceptions_at_start_) {
        abort();
        return;
    }
    ncclResult_t result = ncclSuccess;
    {
        const std::lock_guard lock(mutex_);
        if (is_aborted()) return;
        result = ncclCommFinalize(comm_);
    }
    if (result == ncclInProgress) result = wait_while_in_progress([this] { return state(); }, timeout_);
    if (result == ncclSuccess) {
        const std::lock_guard lock(mutex_);
        if (!is_aborted_.exchange(true)) ncclCommDestroy(comm_);
        return;
    }
    if (!is_aborted())
        fmt::print(stderr, "lockstep: communicator {} of {} could not be finalized: {}\n", name(), who(),
                   describe(result));
    abort();
}

/// With NCCL's last error, whatever becomes of the communicator meanwhile.
std::string NcclCommunicator::describe(ncclResult_t result) const {
    const std::lock_guard lock(mutex_);
    return describe_nccl(result, is_aborted() ? nullptr : comm_);
}

/// Of the communicator; ncclSuccess once it is aborted, so that waiting ends.
ncclResult_t NcclCommunicator::state() const {
    if (is_aborted()) return ncclSuccess;
    const std::lock_guard lock(mutex_);
    if (is_aborted()) return ncclSuccess;
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    return asked == ncclSuccess ? state : asked;
}

void NcclCommunicator::settle(ncclResult_t result, const std::string& what, std::source_location where) {
    if (result == ncclInProgress) result = wait_while_in_progress([this] { return state(); }, timeout_);
    throw_if_aborted(what);
    if (result != ncclSuccess) fail(result, what, where);
}

void NcclCommunicator::fail(ncclResult_t result, const std::string& what, std::source_location where) {
    has_failed_ = true;
    throw RuntimeError(fmt::format(
        "{} failed on {}: {} at {}{}", what, who(), describe(result), place_in_source(where),
        result == ncclInProgress ? fmt::format("; not done within {} s: its peers are {}", timeout_.value, peers())
                                 : advice_on(result)));
}

void NcclCommunicator::throw_if_aborted(const std::string& what) const {
    if (is_aborted())
        throw RuntimeError(
            fmt::format("{} on {}: communicator {} was aborted (this rank or another failed before); "
                        "the first error tells why",
                        what, who(), name()));
}

void NcclCommunicator::throw_if_failed(std::source_location where) {
    if (comm_ == nullptr) return;
    const ncclResult_t now = state();
    const bool is_fine = now == ncclSuccess || now == ncclInProgress;
    if (is_fine && !is_aborted()) return;
    const std::string what = fmt::format("communication over {}", name());
    throw_if_aborted(what);
    fail(now, what, where);
}

void NcclCommunicator::synchronize(cudaStream_t stream, const std::string& what, std::source_location where) {
    cudaError_t cuda = cudaSuccess;
    const ncclResult_t result = wait_while_in_progress(
        [&] {
            cuda = cudaStreamQuery(stream);
            if (cuda != cudaErrorNotReady) return ncclSuccess;
            const ncclResult_t now = comm_ != nullptr ? state() : ncclSuccess;
            return now == ncclSuccess && !is_aborted() ? ncclInProgress : now;
        },
        timeout_);
    if (cuda != cudaSuccess && cuda != cudaErrorNotReady) check_cuda(cuda, "cudaStreamQuery", where);
    throw_if_aborted(what);
    if (result != ncclSuccess) fail(result, what, where);
}

void NcclCommunicator::abort() noexcept {
    if (comm_ == nullptr || is_aborted_.exchange(true)) return;
    const std::lock_guard lock(mutex_);
    cudaSetDevice(device_);
    ncclCommAbort(comm_);
}

void abort_all(const std::vector<std::unique_ptr<NcclCommunicator>>& communicators) noexcept {
    std::vector<NcclCommunicator*> mine;
    std::vector<std::unique_lock<std::mutex>> locks;
    for (const auto& one : communicators) {
        if (!one || one->comm_ == nullptr || one->is_aborted_.exchange(true)) continue;
        mine.push_back(one.get());
        locks.emplace_back(one->mutex_);
    }
    if (mine.empty()) return;
    cudaSetDevice(mine.front()->device_);
    const bool grouped = can_group_aborts() && ncclGroupStart() == ncclSuccess;
    for (NcclCommunicator* one : mine) ncclCommAbort(one->comm_);
    if (grouped) ncclGroupEnd();
}

std::string NcclCommunicator::who() const { return meeting_.members[static_cast<std::size_t>(member())]; }

/// The other members, eight at most by name.
std::string NcclCommunicator::peers() const {
    constexpr int most = 8;
    std::string text;
    int named = 0;
    for (int i = 0; i < size() && named < most; ++i) {
        if (i == member()) continue;
        text += fmt::format("{}{}", named++ == 0 ? "" : ", ", meeting_.members[static_cast<std::size_t>(i)]);
    }
    if (size() - 1 > most) text += fmt::format(" and {} more", size() - 1 - most);
    return text;
}

std::vector<std::unique_ptr<NcclCommunicator>> make_communicators(const step::StepGraph& graph, world::World& world,
                                                                  Seconds timeout) {
    const std::string self = describe_rank(world);
    std::vector<std::unique_ptr<NcclCommunicator>> communicators;
    for (const step::Stream& stream : graph.streams) {
        communicators.push_back(nullptr);
        if (stream.lane != step::Stream::Lane::communication) continue;
        const step::Communicator& communicator = graph.communicators[stream.communicator.index()];
        const std::vector<int> members = step::members(graph.mesh, communicator, world.rank());
        // A rank that is in no group is the first of none either, so that its own number is a colour of its own.
        const int colour = members.empty() ? world.rank() : members.front();
        const std::unique_ptr<world::World> part = world.split(colour, world.rank());
        if (!members.empty())
            communicators.back() = std::make_unique<NcclCommunicator>(meet(*part, stream.name, self), timeout);
    }
    return communicators;
}

}  // namespace lockstep::gpu
