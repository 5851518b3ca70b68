#include "world/mpi_request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::world {

MPI_Request* MpiRequest::add() {
    parts_.push_back(MPI_REQUEST_NULL);
    expected_.push_back(no_receive);
    return &parts_.back();
}

MPI_Request* MpiRequest::add_receive(std::size_t bytes) {
    MPI_Request* part = add();
    expected_.back() = static_cast<int>(bytes);
    return part;
}

void MpiRequest::reserve(std::size_t parts) {
    parts_.reserve(parts);
    expected_.reserve(parts);
}

void MpiRequest::check_parts(int code) const {
    if (code == MPI_ERR_IN_STATUS)
        for (const auto& status : statuses_)
            if (status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING) check(status.MPI_ERROR);
    check(code);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (expected_[i] == no_receive) continue;
        int received = 0;
        check(MPI_Get_count(&statuses_[i], MPI_BYTE, &received));
        if (received != expected_[i])
            throw RuntimeError(fmt::format("a message of {} bytes came from rank {} where {} were expected", received,
                                           statuses_[i].MPI_SOURCE, expected_[i]));
    }
}

bool MpiRequest::test() {
    if (done_) return true;
    statuses_.resize(parts_.size());
    int complete = 0;
    const int code = MPI_Testall(static_cast<int>(parts_.size()), parts_.data(), &complete, statuses_.data());
    if (code == MPI_SUCCESS && complete == 0) return false;
    check_parts(code);
    done_ = true;
    return true;
}

void MpiRequest::wait() {
    if (done_) return;
    statuses_.resize(parts_.size());
    check_parts(MPI_Waitall(static_cast<int>(parts_.size()), parts_.data(), statuses_.data()));
    done_ = true;
}

namespace {

// Calls f(offset, bytes) for each piece; a message of length zero is one piece.
template <class F>
void for_each_piece(std::size_t bytes, std::size_t largest, F f) {
    std::size_t offset = 0;
    do {
        const std::size_t piece = std::min(largest, bytes - offset);
        f(offset, static_cast<int>(piece));
        offset += piece;
    } while (offset < bytes);
}

}  // namespace

void post_send(std::span<const std::byte> data, int to, int tag, MPI_Comm comm, SendMode mode, MPI_Request* request) {
    const auto send = mode == SendMode::synchronous ? MPI_Issend : MPI_Isend;
    check(send(data.data(), static_cast<int>(data.size()), MPI_BYTE, to, tag, comm, request));
}

void post_messages(MpiRequest& request, MPI_Comm comm, std::size_t largest, SendMode mode, std::span<const Send> sends,
                   std::span<const Receive> receives) {
    request.reserve(sends.size() + receives.size());
    for (const auto& r : receives)
        for_each_piece(r.data.size(), largest, [&](std::size_t offset, int bytes) {
            MPI_Request* part = request.add_receive(static_cast<std::size_t>(bytes));
            check(MPI_Irecv(r.data.data() + offset, bytes, MPI_BYTE, r.from, r.tag, comm, part));
        });
    for (const auto& s : sends)
        for_each_piece(s.data.size(), largest, [&](std::size_t offset, int bytes) {
            const auto piece = s.data.subspan(offset, static_cast<std::size_t>(bytes));
            post_send(piece, s.to, s.tag, comm, mode, request.add());
        });
}

}  // namespace lockstep::world
