#include "gpu_double/runtime/memory.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "gpu_double/runtime/api.hpp"
#include "gpu_double/runtime/stream_queue.hpp"

namespace lockstep::gpu_double {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 256;   // no more than CUDA promises
constexpr int red = 0xFD, unset = 0xFF;  // 0xFF...: a NaN of every floating-point type

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

struct Memory {
    std::mutex mutex;
    std::map<const std::byte*, Block> blocks;  ///< by begin; freed ones stay
    std::map<int, std::size_t> used;           ///< device memory, of each device
    int count = 0;
    struct sigaction handler_before {};
};

std::vector<std::string> leaks();
void explain_fault(int signal, siginfo_t* info, void* context);

Memory& memory() {
    static Memory& memory = *[] {
        add_leak_check(leaks);
        auto* created = new Memory;
        struct sigaction action {};
        action.sa_sigaction = explain_fault;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, &created->handler_before);
        return created;
    }();
    return memory;
}

std::string name_of(const Block& block) {
    return fmt::format("{} block {} of {} bytes", block.pinned ? "pinned" : "device", block.number, block.bytes);
}

// The nearest block at or below an address, freed ones too.
const Block* nearest(const std::byte* address) {
    const auto above = memory().blocks.upper_bound(address);
    return above == memory().blocks.begin() ? nullptr : &std::prev(above)->second;
}

// Says which block was left, then lets the fault happen again under the handler that was there before.
void explain_fault(int, siginfo_t* info, void*) {
    const auto* address = static_cast<const std::byte*>(info->si_addr);
    if (memory().mutex.try_lock()) {
        const Block* block = nearest(address);
        if (block && block->freed && block->holds(address, 1))
            fmt::print(stderr, "test double: access to {}, {} bytes into it, after it was freed\n", name_of(*block),
                       address - block->begin);
        else if (block && address < block->begin + round_up(block->bytes, alignment) + page)
            fmt::print(stderr, "test double: access {} bytes past {}\n", address - block->begin - block->bytes,
                       name_of(*block));
        memory().mutex.unlock();
    }
    sigaction(SIGSEGV, &memory().handler_before, nullptr);
}

// Where the writable pages of a block begin and how long they are.
std::pair<std::byte*, std::size_t> body_of(const Block& block) {
    const std::size_t usable = round_up(block.bytes, alignment), body = round_up(usable, page);
    return {block.begin - (body - usable), body};
}

bool red_zones_intact(const Block& block) {
    const auto [begin, bytes] = body_of(block);
    const auto is_red = [](std::byte b) { return b == static_cast<std::byte>(red); };
    return std::all_of(begin, block.begin, is_red) && std::all_of(block.begin + block.bytes, begin + bytes, is_red);
}

std::vector<std::string> leaks() {
    const std::lock_guard lock(memory().mutex);
    std::vector<std::string> lines;
    for (const auto& [begin, block] : memory().blocks) {
        if (block.freed) continue;
        lines.push_back(name_of(block) + " was not freed");
        if (!red_zones_intact(block)) lines.push_back("something was written beside " + name_of(block));
    }
    return lines;
}

cudaError_t allocate(void** result, std::size_t bytes, bool pinned) {
    if (bytes == 0) {
        *result = nullptr;
        return cudaSuccess;
    }
    const int device = current_device();
    if (device < 0) return cudaErrorNoDevice;
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    if (!pinned && m.used[device] + bytes > controls()->memory) return cudaErrorMemoryAllocation;
    const std::size_t usable = round_up(bytes, alignment), body = round_up(usable, page);
    void* mapping = mmap(nullptr, body + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return cudaErrorMemoryAllocation;
    std::byte* begin = static_cast<std::byte*>(mapping) + page;
    if (mprotect(begin, body, PROT_READ | PROT_WRITE) != 0) return cudaErrorMemoryAllocation;
    const Block block{begin + (body - usable), bytes, device, pinned, false, ++m.count};
    std::memset(begin, red, body - usable);
    std::memset(block.begin, unset, bytes);
    std::memset(block.begin + bytes, red, usable - bytes);
    m.blocks[block.begin] = block;
    if (!pinned) m.used[device] += bytes;
    *result = block.begin;
    return cudaSuccess;
}

cudaError_t release(void* address, bool pinned, const char* function) {
    if (address == nullptr) return cudaSuccess;
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto found = m.blocks.find(static_cast<std::byte*>(address));
    if (found == m.blocks.end())
        return misuse(cudaErrorInvalidValue, fmt::format("{}: not the begin of a block", function));
    Block& block = found->second;
    if (block.freed)
        return misuse(cudaErrorInvalidValue, fmt::format("{}: {} was freed before", function, name_of(block)));
    if (block.pinned != pinned)
        return misuse(cudaErrorInvalidValue, fmt::format("{}: of {}", function, name_of(block)));
    for (const auto& stream : streams_of(block.device))
        if (!stream->idle())
            return misuse(cudaErrorInvalidValue,
                          fmt::format("{}: {} while work enqueued before is unfinished", function, name_of(block)));
    if (!red_zones_intact(block))
        return misuse(cudaErrorIllegalAddress,
                      fmt::format("{}: something was written beside {}", function, name_of(block)));
    const auto [begin, bytes] = body_of(block);
    // The pages go back to the system; the addresses don't.
    mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    block.freed = true;
    if (!pinned) m.used[block.device] -= block.bytes;
    return cudaSuccess;
}

}  // namespace

std::optional<Block> find_block(const void* address) {
    const std::lock_guard lock(memory().mutex);
    const Block* block = nearest(static_cast<const std::byte*>(address));
    if (!block || block->freed || !block->holds(address, 0)) return std::nullopt;
    return *block;
}

bool is_device_range(const void* begin, std::size_t bytes) {
    if (bytes == 0) return true;
    const auto block = find_block(begin);
    return block && !block->pinned && block->holds(begin, bytes);
}

bool expect_device_range(const void* begin, std::size_t bytes, const char* what) {
    if (is_device_range(begin, bytes)) return true;
    report_misuse(fmt::format("{} ({} bytes) is not within a block of device memory", what, bytes));
    return false;
}

}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
    return api("cudaMalloc", [&] { return allocate(address, bytes, false); });
}
cudaError_t cudaMallocHost(void** address, std::size_t bytes) {
    return api("cudaMallocHost", [&] { return allocate(address, bytes, true); });
}
cudaError_t cudaFree(void* address) {
    return api("cudaFree", [&] { return release(address, false, "cudaFree"); });
}
cudaError_t cudaFreeHost(void* address) {
    return api("cudaFreeHost", [&] { return release(address, true, "cudaFreeHost"); });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    return api("cudaMemGetInfo", [&] {
        const int device = current_device();
        if (device < 0) return cudaErrorNoDevice;
        const std::lock_guard lock(memory().mutex);
        *total = controls()->memory;
        *free = *total - memory().used[device];
        return cudaSuccess;
    });
}
}
