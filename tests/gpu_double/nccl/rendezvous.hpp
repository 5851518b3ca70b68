// Where the ranks of a communicator meet: a piece of shared memory named after the unique id, for processes and for
// threads of one process alike.
#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep::nccl_double {

/// What all ranks of a collective must agree on.
struct CollectiveCall {
    enum class Kind : std::int32_t { all_reduce, reduce_scatter, all_gather, broadcast } kind = Kind::all_reduce;
    std::int32_t type = 0;
    std::int32_t op = 0;
    std::int32_t root = 0;
    std::uint64_t count = 0;
    bool operator==(const CollectiveCall&) const = default;
    std::string describe() const;
};
/// What both ends of a message must agree on.
struct MessageCall {
    std::int32_t type = 0;
    std::uint64_t count = 0;
    bool operator==(const MessageCall&) const = default;
    std::string describe() const;
};

enum class Presence : std::uint32_t { absent, arrived, finalized, destroyed, aborted };

/// A rank's part of the shared memory. Counters only grow; what they guard is written before and read after.
struct Seat {
    static constexpr std::size_t chunk_bytes = 1 << 20;
    std::atomic<Presence> presence;
    std::array<char, 16> device;  // UUID
    std::array<char, 64> host;
    std::atomic<std::uint64_t> posted;   // collectives this rank has begun
    std::atomic<std::uint64_t> written;  // chunks
    std::atomic<std::uint64_t> read;     // chunks
    CollectiveCall call;                 // of the last one posted
    alignas(64) std::array<std::byte, chunk_bytes> chunk;
};
/// From one rank to another.
struct Channel {
    static constexpr std::size_t chunk_bytes = 1 << 18;
    std::atomic<std::uint64_t> sends, receives;  // begun
    std::atomic<std::uint64_t> written, taken;   // chunks
    MessageCall send, receive;                   // of the last ones begun
    alignas(64) std::array<std::byte, chunk_bytes> chunk;
};

class Rendezvous {
public:
    static ncclUniqueId make_id();
    /// Opens (the first rank makes) the shared memory, and takes this rank's seat in it.
    Rendezvous(const ncclUniqueId& id, int ranks, int rank, const std::array<char, 16>& device);
    /// Leaves: aborted, unless destroyed was announced before.
    ~Rendezvous();
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

    int ranks() const { return ranks_; }
    int rank() const { return rank_; }
    Seat& seat(int rank) const;
    Channel& channel(int from, int to) const;

    bool have_all_come() const;
    bool all_are(Presence least) const;  ///< every rank has come at least that far (aborted ranks count as absent)
    void announce(Presence presence);
    /// A rank whose device is this one's; -1: none.
    int same_device() const;
    /// Why a peer can't take part any more ("rank 2 has died"); empty: all can. Deaths are looked for every 100 ms.
    std::string missing_peer();

    /// Tells all that wait that something changed.
    void ring() const;
    std::uint32_t bell() const;
    /// Returns after the next ring since `seen` was bell(), or after some 20 ms.
    void wait(std::uint32_t seen) const;

private:
    bool has_died(int rank) const;
    struct Header;
    Header& header() const;

    std::string name_;
    int ranks_, rank_;
    int file_ = -1;
    std::byte* memory_ = nullptr;
    std::size_t bytes_ = 0;
    bool is_quiet_ = false;
    std::atomic<std::int64_t> next_look_ = 0;  // ns of the steady clock
};

}  // namespace lockstep::nccl_double
