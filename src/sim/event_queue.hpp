// The pending events of a simulation, earliest first; equal times leave in the order they came.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace lockstep::sim {

/// A 4-ary heap ordered by (time, sequence number), so that equal input gives equal order. `Payload` is a small
/// trivially copyable struct: an event costs no allocation once the heap has grown. Four children to a node halve the
/// levels of a binary heap, and share one or two cache lines (LaMarca and Ladner 1996).
template <class Payload>
class EventQueue {
public:
    struct Event {
        Picoseconds time;
        std::uint64_t sequence = 0;
        Payload payload;
    };

    bool is_empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }
    /// Events pushed since the start.
    std::uint64_t pushed() const { return sequence_; }

    void push(Picoseconds time, Payload payload) {
        const Event event{time, sequence_++, payload};
        heap_.emplace_back();
        sift_up(heap_.size() - 1, event);
    }

    /// Takes out the earliest event. The queue must not be empty.
    Event pop() {
        const Event first = heap_.front();
        const Event last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) sift_down(last);
        return first;
    }

private:
    static constexpr std::size_t arity = 4;

    static bool is_before(const Event& a, const Event& b) {
        return a.time.count != b.time.count ? a.time.count < b.time.count : a.sequence < b.sequence;
    }

    void sift_up(std::size_t hole, const Event& event) {
        while (hole > 0) {
            const std::size_t parent = (hole - 1) / arity;
            if (!is_before(event, heap_[parent])) break;
            heap_[hole] = heap_[parent];
            hole = parent;
        }
        heap_[hole] = event;
    }

    /// Places `event` from the root down.
    void sift_down(const Event& event) {
        const std::size_t size = heap_.size();
        std::size_t hole = 0;
        for (;;) {
            const std::size_t first = hole * arity + 1;
            if (first >= size) break;
            const std::size_t past = first + arity < size ? first + arity : size;
            std::size_t least = first;
            for (std::size_t child = first + 1; child < past; ++child)
                if (is_before(heap_[child], heap_[least])) least = child;
            if (!is_before(heap_[least], event)) break;
            heap_[hole] = heap_[least];
            hole = least;
        }
        heap_[hole] = event;
    }

    std::vector<Event> heap_;
    std::uint64_t sequence_ = 0;
};

}  // namespace lockstep::sim
