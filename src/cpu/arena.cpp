#include "cpu/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {

void Arena::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

Arena::Arena(std::int64_t bytes, const char* purpose) : bytes_(std::max<std::int64_t>(bytes, 64)) {
    const auto size = static_cast<std::size_t>(bytes_);
    void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        throw RuntimeError(fmt::format("{} MiB of memory for {} can't be had ({}); use a smaller batch", bytes_ >> 20,
                                       purpose, std::strerror(errno)));
    data_ = std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(mapped), Unmap{size});
    madvise(mapped, size, MADV_HUGEPAGE);  // a hint: without large pages it is slower, not wrong
}

void Arena::touch() const {
    constexpr std::int64_t piece = 1 << 20;
    std::byte* const data = data_.get();
    parallel_for((bytes_ + piece - 1) / piece, 1, [=, bytes = bytes_](std::int64_t i) {
        std::memset(data + i * piece, 0, static_cast<std::size_t>(std::min(piece, bytes - i * piece)));
    });
}

}  // namespace lockstep::cpu
