// Ring collectives by point-to-point messages: they progress well inside test(), where MPI's own of large buffers do
// not.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "world/mpi_handles.hpp"

namespace lockstep::world {

/// What a ring works on. The data are `n` parts of `share` bytes (the last ones of an all-reduce may be shorter or
/// empty), of which rank i owns part i. Adding: n-1 steps after which the sums of the own part are in `out`. Passing:
/// n-1 steps that spread the own part in `out` to all. Reduce-scatter adds, all-gather passes, all-reduce does both.
struct RingJob {
    enum class Phases { add, pass, add_and_pass } phases;
    std::span<const std::byte> in;  ///< n parts; for passing alone not used
    std::span<std::byte> out;       ///< n parts; for adding alone the own part, which may be that of `in`
    std::size_t share = 0;
    Number type = Number::f32;
    Reduce op = Reduce::sum;
};
RingJob all_reduce_job(std::span<std::byte> data, Number type, Reduce op, int ranks);
RingJob reduce_scatter_job(std::span<const std::byte> send, std::span<std::byte> receive, Number type, Reduce op);
/// The own part is in place.
RingJob all_gather_job(std::span<std::byte> data, int ranks);

/// Each part is cut into windows; `lanes` windows of every part are in flight together. Per rank and phase (n-1)/n of
/// the bytes are sent. Each part is summed once, in ring order, so an all-reduce ends with equal bits everywhere.
class Ring final : public Request {
public:
    // 2 ranks on 2 Zen 3 cores, over plain MPI_Allreduce: alone, every choice from 4 x 256 KiB up gives 0.92 to 1.1 at
    // 64 KiB to 256 MiB (4 x 64 KiB 1.2). Beside one computing thread per rank each hand-over waits for the scheduler,
    // and what counts is to have few: 25 MiB take 450 ms with 4 x 256 KiB, 277 with 4 x 512 KiB, 210 with 4 x 1 MiB,
    // 144 with 4 x 2 MiB (164 with 8 x 1 MiB, 192 with 2 x 2 MiB; MPI_Allreduce 150 to 200, MPI_Iallreduce 240).
    static constexpr int lanes = 4;
    static constexpr std::size_t window_bytes = 2 * 1024 * 1024;

    /// Collective on `comm`; the tags first_tag ... first_tag + lanes - 1 are this request's own.
    Ring(const Communicator& comm, const RingJob& job, int first_tag, SendMode mode);
    bool test() override;
    void wait() override;

private:
    struct Lane {
        std::size_t window = 0;  // offset in a part
        int step = 0;
        std::array<MPI_Request, 2> messages{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        std::array<std::byte*, 2> room{};  // sums on their way: one is sent while the next is received
        bool active = false;
    };

    std::size_t bytes_of(const Lane& lane, int part) const;
    const std::byte* in(const Lane& lane, int part) const;
    std::byte* out(const Lane& lane, int part) const;
    void begin(Lane& lane, std::size_t window);
    void post(int lane);
    void add(Lane& lane) const;
    void advance(int lane);

    MPI_Comm comm_;
    int rank_, size_;
    RingJob job_;
    int first_tag_;
    SendMode mode_;
    int adding_ = 0, steps_ = 0;  // steps that add, steps in all
    std::size_t total_ = 0;       // bytes of all parts
    std::unique_ptr<std::byte[]> room_;
    std::array<Lane, lanes> lanes_;
    int active_ = 0;
};

}  // namespace lockstep::world
