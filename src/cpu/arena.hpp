// One block of memory for all tensors of a rank (and one for scratch), mapped and touched before the first step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::cpu {

/// Fresh pages cost microseconds each on virtual machines, so a step must never touch one: memory is mapped once, with
/// large pages where the system has them, and filled with zeros by the threads that will use it. A block of 1 MiB or
/// more starts on a large page and fills its last one, so that all of it is on large pages and equal blocks have equal
/// places in the caches, whatever else is mapped.
class Arena {
public:
    /// `purpose` is for messages. Throws RuntimeError when the system has not enough memory.
    Arena(std::int64_t bytes, const char* purpose);
    std::byte* data() const { return data_.get(); }
    std::int64_t bytes() const { return bytes_; }
    /// Writes zeros everywhere, with the calling thread's OpenMP threads.
    void touch() const;

private:
    struct Unmap {
        std::size_t bytes;
        void operator()(std::byte* data) const;
    };
    std::unique_ptr<std::byte, Unmap> data_{nullptr, Unmap{0}};
    std::int64_t bytes_ = 0;
};

}  // namespace lockstep::cpu
