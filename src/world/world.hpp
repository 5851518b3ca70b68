// A World is a group of ranks that can move bytes and numbers between one another; it knows no domain words.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace lockstep::world {

enum class Number { f32, f64, bf16, i32, i64 };
enum class Reduce { sum, max, min };
/// When a send of an MPI world completes: at the library's will, which has buffers for small messages, or not before
/// its receive is posted. Buffers hide deadlocks, so tests send synchronously; ranks as threads always do.
enum class SendMode { standard, synchronous };

/// Bytes of one number.
std::size_t size_of(Number type);

/// An operation in flight. Progress happens only inside test() and wait(): call them from one thread at a time.
class Request {
public:
    virtual ~Request() = default;
    virtual bool test() = 0;  ///< true once the operation is complete; never blocks
    virtual void wait() = 0;
};

/// A part of a grouped exchange. All messages of a group progress together, so that cyclic patterns can't deadlock.
struct Send {
    std::span<const std::byte> data;
    int to = 0;
    int tag = 0;
};
struct Receive {
    std::span<std::byte> data;
    int from = 0;
    int tag = 0;
};

/// Collective calls must be made by all ranks of the world in the same order; the order may differ between worlds, and
/// requests may be completed in any. Buffers of start_* must stay until the request completes. Lengths in bytes; `data`
/// of a reduction is a whole number of `type`s. Buffers don't overlap, but for the two places named below.
/// Implementations throw RuntimeError when the wire fails.
class World {
public:
    virtual ~World() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual int local_rank() const = 0;  ///< among the ranks that share this host's memory
    virtual int local_size() const = 0;
    virtual std::string host() const = 0;

    /// Ranks with equal colour form a new world, ordered by (key, rank). Collective.
    virtual std::unique_ptr<World> split(int colour, int key) = 0;

    virtual void barrier() = 0;
    virtual void broadcast(std::span<std::byte> data, int root) = 0;
    /// `receive` holds size() * send.size() bytes on the root, and is ignored elsewhere.
    virtual void gather(std::span<const std::byte> send, std::span<std::byte> receive, int root) = 0;
    /// `receive` holds size() parts; `send` may be the part of this rank in it.
    virtual void all_gather(std::span<const std::byte> send, std::span<std::byte> receive) = 0;
    virtual void all_reduce(std::span<std::byte> data, Number type, Reduce op) = 0;
    /// `send` holds size() equal parts; `receive` gets the reduced part of this rank, and may be that part of `send`.
    virtual void reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive, Number type,
                                Reduce op) = 0;
    /// Part p of `send` goes to rank p, part p of `receive` comes from it; all parts are equal.
    virtual void all_to_all(std::span<const std::byte> send, std::span<std::byte> receive) = 0;
    /// The same with parts of `send_bytes[p]` and `receive_bytes[p]` bytes, one after another. What a rank receives
    /// from p must be what p sends to it; else RuntimeError or LogicError, on the receiving rank at least. The lengths
    /// need not outlive the call.
    virtual void all_to_all_v(std::span<const std::byte> send, std::span<const std::size_t> send_bytes,
                              std::span<std::byte> receive, std::span<const std::size_t> receive_bytes) = 0;
    virtual void exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;

    virtual std::unique_ptr<Request> start_broadcast(std::span<std::byte> data, int root) = 0;
    virtual std::unique_ptr<Request> start_all_reduce(std::span<std::byte> data, Number type, Reduce op) = 0;
    virtual std::unique_ptr<Request> start_reduce_scatter(std::span<const std::byte> send, std::span<std::byte> receive,
                                                          Number type, Reduce op) = 0;
    virtual std::unique_ptr<Request> start_all_gather(std::span<const std::byte> send,
                                                      std::span<std::byte> receive) = 0;
    virtual std::unique_ptr<Request> start_all_to_all(std::span<const std::byte> send,
                                                      std::span<std::byte> receive) = 0;
    virtual std::unique_ptr<Request> start_all_to_all_v(std::span<const std::byte> send,
                                                        std::span<const std::size_t> send_bytes,
                                                        std::span<std::byte> receive,
                                                        std::span<const std::size_t> receive_bytes) = 0;
    virtual std::unique_ptr<Request> start_exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;

    /// Ends every rank of the program at once with this exit status; for errors that only this rank knows of.
    [[noreturn]] virtual void abort(int exit_status) = 0;
};

/// A world of one rank: collectives copy.
std::unique_ptr<World> make_self_world();

/// Runs `body(world)` on `ranks` threads of this process, each with its rank of one world; rethrows the first exception
/// by rank order after all have ended (an exception in one rank makes pending operations of the others throw).
class Body {
public:
    virtual ~Body() = default;
    virtual void run(World& world) = 0;
};
void run_thread_world(int ranks, Body& body);
template <class F>
void run_thread_world(int ranks, F body) {
    struct Adapter final : Body {
        explicit Adapter(F& f) : f_(f) {}
        void run(World& w) override { f_(w); }
        F& f_;
    } adapter(body);
    run_thread_world(ranks, static_cast<Body&>(adapter));
}

/// What the environment says about how this process was started, read without calling MPI.
struct Launcher {
    enum class Kind { none, mpi } kind = Kind::none;
    std::string name;       ///< "mpirun", "srun (pmix)" or ""
    int expected_size = 1;  ///< world size the variables announce
    int rank = 0;           ///< rank in it that they announce
};
/// Throws UsageError for a Slurm step with several tasks that gives its ranks no launcher variables (names `srun
/// --mpi=pmix`).
Launcher detect_launcher();

/// Owns MPI for the life of the program (MPI_THREAD_MULTIPLE; allocator settings made before MPI_Init so that large
/// temporaries are not returned to the system each time). Does not finalize while an exception unwinds: peers may be
/// gone, and finalize would hang.
class MpiSession {
public:
    MpiSession(int& argc, char**& argv);
    ~MpiSession();
    MpiSession(const MpiSession&) = delete;
    MpiSession& operator=(const MpiSession&) = delete;
    /// Bytes that one MPI call may carry in all; its counts are ints, and some implementations multiply them by the
    /// number of ranks.
    static constexpr std::size_t default_largest_call = std::size_t{1} << 30;
    /// The world of all ranks. Collective. Transfers above `largest_call` bytes are cut (tests cut small ones); `mode`
    /// holds for it and all worlds split from it.
    std::unique_ptr<World> world(std::size_t largest_call = default_largest_call, SendMode mode = SendMode::standard);
    static std::string library_version();

private:
    int uncaught_at_start_;
};

/// glibc keeps large blocks instead of returning them to the system at free(): call before the first large allocation.
void keep_large_blocks();

}  // namespace lockstep::world
