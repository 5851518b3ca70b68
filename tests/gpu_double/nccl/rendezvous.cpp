#include "gpu_double/nccl/rendezvous.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "gpu_double/nccl/misuse.hpp"
#include "gpu_double/nccl/reduce.hpp"

namespace lockstep::nccl_double {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Presence>::is_always_lock_free);

/// Fresh shared memory is zero, which is the state before the first rank comes.
struct Rendezvous::Header {
    std::atomic<std::uint32_t> ranks;
    std::atomic<std::uint32_t> arrivals;
    std::atomic<std::uint32_t> bell;
    std::atomic<std::uint32_t> waiters;
};

namespace {

constexpr char prefix[] = "lockstep-nccl-double-";
constexpr std::size_t header_bytes = 4096;

std::array<char, 64> this_host() {
    std::array<char, 64> name{};
    gethostname(name.data(), name.size() - 1);
    return name;
}

/// A byte of the file for each rank, locked while the rank lives: the kernel unlocks it, however the rank ends.
struct flock lock_of(int rank) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = rank;
    lock.l_len = 1;
    return lock;
}

}  // namespace

std::string CollectiveCall::describe() const {
    constexpr const char* names[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast"};
    std::string text =
        fmt::format("{} of {} {}", names[static_cast<int>(kind)], count, name_of(static_cast<ncclDataType_t>(type)));
    if (kind == Kind::all_reduce || kind == Kind::reduce_scatter)
        text += fmt::format(" ({})", name_of(static_cast<ncclRedOp_t>(op)));
    if (kind == Kind::broadcast) text += fmt::format(" from rank {}", root);
    return text;
}

std::string MessageCall::describe() const {
    return fmt::format("{} {}", count, name_of(static_cast<ncclDataType_t>(type)));
}

ncclUniqueId Rendezvous::make_id() {
    std::random_device random;
    const std::string text = fmt::format("{}{:08x}{:08x}{:08x}", prefix, random(), random(), random());
    ncclUniqueId id{};
    std::copy(text.begin(), text.end(), id.internal);
    return id;
}

Rendezvous::Rendezvous(const ncclUniqueId& id, int ranks, int rank, const std::array<char, 16>& device)
    : ranks_(ranks), rank_(rank), is_quiet_(std::getenv("LOCKSTEP_DOUBLE_NCCL_QUIET") != nullptr) {
    const std::string text(id.internal, strnlen(id.internal, sizeof id.internal));
    if (!text.starts_with(prefix))
        misuse("a unique id that ncclGetUniqueId did not make (not broadcast to all ranks?)");
    name_ = "/" + text;
    const auto n = static_cast<std::size_t>(ranks);
    bytes_ = header_bytes + n * sizeof(Seat) + n * n * sizeof(Channel);
    file_ = shm_open(name_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file_ < 0) misuse("shm_open of {}: {}", name_, std::strerror(errno));
    if (ftruncate(file_, static_cast<off_t>(bytes_)) != 0) misuse("ftruncate of {}: {}", name_, std::strerror(errno));
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory == MAP_FAILED) misuse("mmap of {}: {}", name_, std::strerror(errno));
    memory_ = static_cast<std::byte*>(memory);

    std::uint32_t others = 0;
    if (!header().ranks.compare_exchange_strong(others, static_cast<std::uint32_t>(ranks)) &&
        others != static_cast<std::uint32_t>(ranks))
        misuse("rank {} makes a communicator of {} ranks where another makes one of {}", rank, ranks, others);
    struct flock lock = lock_of(rank);
    if (fcntl(file_, F_OFD_SETLK, &lock) != 0) misuse("two ranks {} in one communicator", rank);
    seat(rank).device = device;
    seat(rank).host = this_host();
    announce(Presence::arrived);
    // All have opened it: nothing is left behind, whoever is killed from now on.
    if (header().arrivals.fetch_add(1) + 1 == header().ranks) shm_unlink(name_.c_str());
}

Rendezvous::~Rendezvous() {
    if (seat(rank_).presence != Presence::destroyed) announce(Presence::aborted);
    if (header().arrivals < header().ranks) shm_unlink(name_.c_str());
    munmap(memory_, bytes_);
    close(file_);
}

Rendezvous::Header& Rendezvous::header() const { return *reinterpret_cast<Header*>(memory_); }

Seat& Rendezvous::seat(int rank) const {
    return reinterpret_cast<Seat*>(memory_ + header_bytes)[static_cast<std::size_t>(rank)];
}

Channel& Rendezvous::channel(int from, int to) const {
    std::byte* const channels = memory_ + header_bytes + static_cast<std::size_t>(ranks_) * sizeof(Seat);
    return reinterpret_cast<Channel*>(
        channels)[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to)];
}

bool Rendezvous::all_are(Presence least) const {
    for (int r = 0; r < ranks_; ++r) {
        const Presence there = seat(r).presence;
        if (there < least || there == Presence::aborted) return false;
    }
    return true;
}

bool Rendezvous::have_all_come() const { return header().arrivals == header().ranks; }

void Rendezvous::announce(Presence presence) {
    seat(rank_).presence = presence;
    ring();
}

int Rendezvous::same_device() const {
    for (int r = 0; r < ranks_; ++r)
        if (r != rank_ && seat(r).device == seat(rank_).device && seat(r).host == seat(rank_).host) return r;
    return -1;
}

bool Rendezvous::has_died(int rank) const {
    struct flock lock = lock_of(rank);
    return fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

std::string Rendezvous::missing_peer() {
    if (is_quiet_) return {};
    constexpr std::int64_t pause = 100'000'000;
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    std::int64_t due = next_look_;
    const bool looks = now >= due && next_look_.compare_exchange_strong(due, now + pause);
    for (int r = 0; r < ranks_; ++r) {
        if (r == rank_) continue;
        const Presence there = seat(r).presence;
        if (there == Presence::aborted) return fmt::format("rank {} has aborted the communicator", r);
        // One that leaves says so before it gives up its lock: look again.
        const bool takes_part = there == Presence::arrived || there == Presence::finalized;
        if (looks && takes_part && has_died(r) && seat(r).presence == there) return fmt::format("rank {} has died", r);
    }
    return {};
}

void Rendezvous::ring() const {
    header().bell.fetch_add(1);
    if (header().waiters.load() > 0)
        syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&header().bell), FUTEX_WAKE, INT32_MAX, nullptr, nullptr,
                0);
}

std::uint32_t Rendezvous::bell() const { return header().bell.load(); }

void Rendezvous::wait(std::uint32_t seen) const {
    for (int i = 0; i < 20; ++i) {
        if (bell() != seen) return;
        std::this_thread::yield();
    }
    const timespec most{0, 20'000'000};
    header().waiters.fetch_add(1);
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&header().bell), FUTEX_WAIT, seen, &most, nullptr, 0);
    header().waiters.fetch_sub(1);
}

}  // namespace lockstep::nccl_double
