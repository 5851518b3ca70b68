#include "cpu/arena.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {

namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

void* map(std::size_t bytes) {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/// Maps whole large pages, starting on one: maps one more and gives back what sticks out on both sides.
void* map_large_pages(std::size_t bytes) {
    void* const mapped = map(bytes + large_page);
    if (mapped == MAP_FAILED) return mapped;
    auto* const begin = static_cast<std::byte*>(mapped);
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t before = round_up(address, large_page) - address;
    if (before > 0) munmap(begin, before);
    if (before < large_page) munmap(begin + before + bytes, large_page - before);
    madvise(begin + before, bytes, MADV_HUGEPAGE);  // a hint: without large pages it is slower, not wrong
    return begin + before;
}

}  // namespace

void Arena::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

Arena::Arena(std::int64_t bytes, const char* purpose) : bytes_(std::max<std::int64_t>(bytes, 64)) {
    const auto wanted = static_cast<std::size_t>(bytes_);
    const bool is_large = wanted >= large_page / 2;
    const std::size_t size = is_large ? round_up(wanted, large_page) : wanted;
    void* mapped = is_large ? map_large_pages(size) : map(size);
    if (mapped == MAP_FAILED)
        throw RuntimeError(fmt::format("{} MiB of memory for {} can't be had ({}); use a smaller batch", bytes_ >> 20,
                                       purpose, std::strerror(errno)));
    data_ = std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(mapped), Unmap{size});
}

void Arena::touch() const {
    constexpr std::int64_t piece = 1 << 20;
    std::byte* const data = data_.get();
    parallel_for((bytes_ + piece - 1) / piece, 1, [=, bytes = bytes_](std::int64_t i) {
        std::memset(data + i * piece, 0, static_cast<std::size_t>(std::min(piece, bytes - i * piece)));
    });
}

}  // namespace lockstep::cpu
