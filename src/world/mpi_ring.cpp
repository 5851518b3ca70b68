#include "world/mpi_ring.hpp"

#include <algorithm>

#include "world/number.hpp"

namespace lockstep::world {

RingAllReduce::RingAllReduce(const Communicator& comm, std::span<std::byte> data, Number type, Reduce op, int first_tag)
    : comm_(comm.get()),
      rank_(comm.rank()),
      size_(comm.size()),
      data_(data),
      type_(type),
      op_(op),
      first_tag_(first_tag),
      windows_((data.size() + window_bytes_per_rank * size_ - 1) / (window_bytes_per_rank * size_)),
      room_(std::make_unique_for_overwrite<std::byte[]>(lanes * window_bytes_per_rank)) {
    for (int i = 0; i < lanes && static_cast<std::size_t>(i) < windows_; ++i) {
        in_flight_[i].window = static_cast<std::size_t>(i);
        in_flight_[i].incoming = {room_.get() + i * window_bytes_per_rank, window_bytes_per_rank};
        in_flight_[i].active = true;
        ++active_;
        post(i);
    }
}

// Part `index` (taken modulo n) of the lane's window: an equal share in whole numbers, the last ones shorter or empty.
std::span<std::byte> RingAllReduce::part(const Lane& lane, int index) const {
    const std::size_t whole = window_bytes_per_rank * size_;
    const auto window = data_.subspan(lane.window * whole, std::min(whole, data_.size() - lane.window * whole));
    const std::size_t number = size_of(type_);
    const std::size_t share = (window.size() / number + size_ - 1) / size_ * number;
    const std::size_t begin = std::min(window.size(), share * static_cast<std::size_t>((index + 2 * size_) % size_));
    return window.subspan(begin, std::min(share, window.size() - begin));
}

void RingAllReduce::post(int index) {
    Lane& lane = in_flight_[index];
    const bool is_adding = lane.step < size_ - 1;
    const int passed = is_adding ? rank_ - lane.step : rank_ + 1 - (lane.step - (size_ - 1));
    const auto outgoing = part(lane, passed);
    const auto target = part(lane, passed - 1);
    std::byte* incoming = is_adding ? lane.incoming.data() : target.data();
    const int left = (rank_ + size_ - 1) % size_, right = (rank_ + 1) % size_, tag = first_tag_ + index;
    check(MPI_Irecv(incoming, static_cast<int>(target.size()), MPI_BYTE, left, tag, comm_, &lane.messages[0]));
    check(
        MPI_Isend(outgoing.data(), static_cast<int>(outgoing.size()), MPI_BYTE, right, tag, comm_, &lane.messages[1]));
}

void RingAllReduce::advance(int index) {
    Lane& lane = in_flight_[index];
    int complete = 0;
    check(MPI_Testall(2, lane.messages.data(), &complete, MPI_STATUSES_IGNORE));
    if (complete == 0) return;
    if (lane.step < size_ - 1) {
        const auto target = part(lane, rank_ - lane.step - 1);
        accumulate(target, lane.incoming.first(target.size()), type_, op_);
    }
    if (++lane.step == 2 * (size_ - 1)) {
        lane.step = 0;
        lane.window += lanes;
        lane.active = lane.window < windows_;
        if (!lane.active) --active_;
    }
    if (lane.active) post(index);
}

bool RingAllReduce::test() {
    for (int i = 0; i < lanes; ++i)
        if (in_flight_[i].active) advance(i);
    return active_ == 0;
}

void RingAllReduce::wait() {
    while (!test()) {}
}

}  // namespace lockstep::world
