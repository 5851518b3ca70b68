#include "world/mpi_ring.hpp"

#include <algorithm>
#include <cstring>

#include "world/mpi_request.hpp"
#include "world/number.hpp"

namespace lockstep::world {

RingJob all_reduce_job(std::span<std::byte> data, Number type, Reduce op, int ranks) {
    const std::size_t number = size_of(type), n = static_cast<std::size_t>(ranks);
    return {RingJob::Phases::add_and_pass, data, data, (data.size() / number + n - 1) / n * number, type, op};
}

RingJob reduce_scatter_job(std::span<const std::byte> send, std::span<std::byte> receive, Number type, Reduce op) {
    return {RingJob::Phases::add, send, receive, receive.size(), type, op};
}

RingJob all_gather_job(std::span<std::byte> data, int ranks) {
    return {RingJob::Phases::pass, data, data, data.size() / static_cast<std::size_t>(ranks)};
}

Ring::Ring(const Communicator& comm, const RingJob& job, int first_tag, SendMode mode)
    : comm_(comm.get()), rank_(comm.rank()), size_(comm.size()), job_(job), first_tag_(first_tag), mode_(mode) {
    adding_ = job_.phases == RingJob::Phases::pass ? 0 : size_ - 1;
    steps_ = adding_ + (job_.phases == RingJob::Phases::add ? 0 : size_ - 1);
    total_ = job_.in.size();
    const std::size_t room = std::min(window_bytes, job_.share);
    const std::size_t rooms = std::min(adding_, 2);  // of a lane
    const std::size_t lanes_used = std::min<std::size_t>(lanes, (job_.share + window_bytes - 1) / window_bytes);
    room_ = std::make_unique_for_overwrite<std::byte[]>(lanes_used * rooms * room);
    for (std::size_t i = 0; i < lanes_used; ++i) {
        for (std::size_t k = 0; k < rooms; ++k) lanes_[i].room[k] = room_.get() + (i * rooms + k) * room;
        begin(lanes_[i], i * window_bytes);
        if (!lanes_[i].active) continue;
        ++active_;
        post(static_cast<int>(i));
    }
}

// Bytes of a part (its index taken modulo n) inside the lane's window.
std::size_t Ring::bytes_of(const Lane& lane, int part) const {
    const std::size_t first = job_.share * static_cast<std::size_t>((part + 2 * size_) % size_) + lane.window;
    return first >= total_ ? 0 : std::min({window_bytes, job_.share - lane.window, total_ - first});
}

const std::byte* Ring::in(const Lane& lane, int part) const {
    return job_.in.data() + job_.share * static_cast<std::size_t>((part + 2 * size_) % size_) + lane.window;
}

std::byte* Ring::out(const Lane& lane, int part) const {
    if (job_.phases == RingJob::Phases::add) return job_.out.data() + lane.window;
    return job_.out.data() + job_.share * static_cast<std::size_t>((part + 2 * size_) % size_) + lane.window;
}

void Ring::begin(Lane& lane, std::size_t window) {
    lane.window = window;
    lane.step = 0;
    lane.active = window < job_.share && steps_ > 0;
    if (lane.active && job_.phases == RingJob::Phases::add && out(lane, rank_) != in(lane, rank_))
        std::memcpy(out(lane, rank_), in(lane, rank_), bytes_of(lane, rank_));
}

// While adding, rank r passes the sum of part r-1, then r-2, ... on to its right, so that after n-1 steps that of part
// r comes home; while passing it begins with part r.
void Ring::post(int index) {
    Lane& lane = lanes_[index];
    const bool is_adding = lane.step < adding_;
    const int sent = is_adding ? rank_ - 1 - lane.step : rank_ - (lane.step - adding_);
    const std::byte* outgoing = !is_adding       ? out(lane, sent)
                                : lane.step == 0 ? in(lane, sent)
                                                 : lane.room[(lane.step - 1) % 2];
    std::byte* incoming = is_adding ? lane.room[lane.step % 2] : out(lane, sent - 1);
    const int left = (rank_ + size_ - 1) % size_, right = (rank_ + 1) % size_, tag = first_tag_ + index;
    check(
        MPI_Irecv(incoming, static_cast<int>(bytes_of(lane, sent - 1)), MPI_BYTE, left, tag, comm_, &lane.messages[0]));
    post_send({outgoing, bytes_of(lane, sent)}, right, tag, comm_, mode_, &lane.messages[1]);
}

void Ring::add(Lane& lane) const {
    const int part = rank_ - 2 - lane.step;
    const std::span<std::byte> sum{lane.room[lane.step % 2], bytes_of(lane, part)};
    if (lane.step < adding_ - 1)
        accumulate(sum, {in(lane, part), sum.size()}, job_.type, job_.op);
    else
        accumulate({out(lane, rank_), sum.size()}, sum, job_.type, job_.op);
}

void Ring::advance(int index) {
    Lane& lane = lanes_[index];
    int complete = 0;
    check(MPI_Testall(2, lane.messages.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete == 0) return;
    if (lane.step < adding_) add(lane);
    if (++lane.step == steps_) begin(lane, lane.window + lanes * window_bytes);
    if (lane.active)
        post(index);
    else
        --active_;
}

bool Ring::test() {
    for (int i = 0; i < lanes; ++i)
        if (lanes_[i].active) advance(i);
    return active_ == 0;
}

void Ring::wait() {
    while (!test()) {}
}

}  // namespace lockstep::world
