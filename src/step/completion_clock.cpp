#include "step/completion_clock.hpp"

#include <algorithm>

namespace lockstep::step {

void CompletionClock::restart() {
    known_.clear();
    stream_of_.clear();
    std::fill(last_.begin(), last_.end(), -1);
    host_sync_ = -1;
}

void CompletionClock::follow(std::int32_t* row, std::int32_t earlier) {
    const auto before = static_cast<std::size_t>(earlier);
    const std::int32_t* known = known_.data() + before * width_;
    for (std::size_t s = 0; s < width_; ++s) row[s] = std::max(row[s], known[s]);
    std::int32_t& of_stream = row[static_cast<std::size_t>(stream_of_[before])];
    of_stream = std::max(of_stream, earlier);
}

const std::vector<std::int32_t>& CompletionClock::next(const OpInstance& op,
                                                       const std::vector<std::int64_t>& dependencies) {
    const auto position = static_cast<std::int32_t>(stream_of_.size());
    const std::int32_t stream = op.op->stream.value;
    known_.resize(known_.size() + width_, -1);
    std::int32_t* row = known_.data() + known_.size() - width_;
    std::int32_t& last = last_[static_cast<std::size_t>(stream)];
    if (last >= 0) follow(row, last);
    if (host_sync_ >= 0) follow(row, host_sync_);
    waits_.clear();
    // The latest first: what it waited for need not be waited for again.
    for (auto earlier = dependencies.rbegin(); earlier != dependencies.rend(); ++earlier) {
        const auto at = static_cast<std::int32_t>(*earlier);
        if (at <= row[stream_of_[static_cast<std::size_t>(at)]]) continue;
        waits_.push_back(at);
        follow(row, at);
    }
    stream_of_.push_back(stream);
    last = position;
    if (std::holds_alternative<HostSync>(op.op->kind)) host_sync_ = position;
    return waits_;
}

}  // namespace lockstep::step
