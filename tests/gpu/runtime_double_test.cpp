// The test double of the CUDA runtime does what CUDA promises, and finds what CUDA forbids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/handles.hpp"
#include "gpu/variable.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::ExitedWithCode;
using ::testing::KilledBySignal;

void check(cudaError_t result, std::source_location where = std::source_location::current()) {
    check_cuda(result, "a call", where);
}

// Each misuse in a process of its own: the double ends it with status 97, though the program itself says 0.
class RuntimeMisuse : public ::testing::Test {
protected:
    RuntimeMisuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
    static void expect(const std::function<void()>& misuse, const char* message) {
        EXPECT_EXIT(
            {
                misuse();
                std::exit(HasFailure() ? 1 : 0);  // seen from here as another status
            },
            ExitedWithCode(97), message);
    }
};

TEST(RuntimeDouble, work_of_a_stream_runs_in_order_and_of_two_streams_as_events_say) {
    const Variable delay("LOCKSTEP_DOUBLE_DELAY", "500");
    for (int repeat = 0; repeat < 10; ++repeat) {
        std::vector<int> seen;
        struct Note {
            std::vector<int>* seen;
            int value;
        };
        std::vector<Note> notes(6);
        const auto note = [](void* data) {
            const auto* n = static_cast<Note*>(data);
            n->seen->push_back(n->value);
        };
        const Stream a = make_stream(), b = make_stream(StreamPriority::high);
        const Event half = make_event(EventUse::ordering);
        for (int i = 0; i < 6; ++i) notes[static_cast<std::size_t>(i)] = {&seen, i};
        for (std::size_t i = 0; i < 3; ++i) check(cudaLaunchHostFunc(a.get(), note, &notes[i]));
        check(cudaEventRecord(half.get(), a.get()));
        check(cudaStreamWaitEvent(b.get(), half.get(), 0));
        for (std::size_t i = 3; i < 6; ++i) check(cudaLaunchHostFunc(b.get(), note, &notes[i]));
        check(cudaStreamSynchronize(b.get()));
        EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
    }
}

TEST(RuntimeDouble, an_event_stands_for_its_last_record_at_the_time_of_the_wait) {
    const Stream a = make_stream(), b = make_stream();
    const Event event = make_event(EventUse::ordering);
    check(cudaEventRecord(event.get(), a.get()));
    check(cudaStreamWaitEvent(b.get(), event.get(), 0));
    std::atomic<bool> open = false;
    check(cudaLaunchHostFunc(
        a.get(), [](void* data) { static_cast<std::atomic<bool>*>(data)->wait(false); }, &open));
    check(cudaEventRecord(event.get(), a.get()));
    EXPECT_EQ(cudaEventQuery(event.get()), cudaErrorNotReady);
    check(cudaStreamSynchronize(b.get()));  // not held up by the second record
    open = true;
    open.notify_all();
    check(cudaEventSynchronize(event.get()));
    EXPECT_EQ(cudaEventQuery(event.get()), cudaSuccess);
}

TEST(RuntimeDouble, events_carry_the_time_between_them) {
    const Stream stream = make_stream();
    const Event begin = make_event(EventUse::timing), end = make_event(EventUse::timing);
    check(cudaEventRecord(begin.get(), stream.get()));
    check(cudaLaunchHostFunc(
        stream.get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
    check(cudaEventRecord(end.get(), stream.get()));
    float ms = 0;
    EXPECT_EQ(cudaEventElapsedTime(&ms, begin.get(), end.get()), cudaErrorNotReady);
    check(cudaEventSynchronize(end.get()));
    check(cudaEventElapsedTime(&ms, begin.get(), end.get()));
    EXPECT_GE(ms, 20);
    EXPECT_LT(ms, 2000);
}

TEST(RuntimeDouble, memory_begins_as_not_a_number_and_is_counted) {
    std::size_t before = 0, during = 0, total = 0;
    check(cudaMemGetInfo(&before, &total));
    const DeviceMemory memory = allocate_device(1 << 20, "a test");
    check(cudaMemGetInfo(&during, &total));
    EXPECT_EQ(before - during, std::size_t{1} << 20);
    float value = 0;
    check(cudaMemcpy(&value, memory.get(), sizeof value, cudaMemcpyDeviceToHost));
    EXPECT_TRUE(std::isnan(value));
    check(cudaMemset(memory.get(), 0, 1 << 20));
    check(cudaMemcpy(&value, memory.get(), sizeof value, cudaMemcpyDeviceToHost));
    EXPECT_EQ(value, 0);
}

TEST(RuntimeDouble, memory_runs_out) {
    const Variable memory("LOCKSTEP_DOUBLE_MEMORY", "1000");
    EXPECT_THROW(allocate_device(1001, "a test"), RuntimeError);
    EXPECT_NO_THROW(allocate_device(1000, "a test"));
}

TEST(RuntimeDouble, the_nth_call_fails_and_those_beside_it_do_not) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "cudaEventCreateWithFlags:2:2");
    make_event(EventUse::timing);
    try {
        make_event(EventUse::timing);
        FAIL() << "did not fail";
    } catch (const RuntimeError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("cudaEventCreateWithFlags failed: 2 cudaErrorMemoryAllocation"));
    }
    make_event(EventUse::timing);
}

TEST(RuntimeDouble, a_failure_meant_for_another_rank_passes_this_one_by) {
    const Variable rank("OMPI_COMM_WORLD_RANK", "0");
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "cudaEventCreateWithFlags:1@1");
    EXPECT_NO_THROW(make_event(EventUse::timing));
}

TEST_F(RuntimeMisuse, a_program_that_frees_what_it_made_ends_well) {
    EXPECT_EXIT(
        {
            {
                const Stream stream = make_stream();
                const Event event = make_event(EventUse::timing);
                const DeviceMemory memory = allocate_device(100, "a test");
                const PinnedMemory pinned = allocate_pinned(100, "a test");
                check(cudaMemcpyAsync(pinned.get(), memory.get(), 100, cudaMemcpyDeviceToHost, stream.get()));
                check(cudaStreamSynchronize(stream.get()));
            }
            std::exit(0);
        },
        ExitedWithCode(0), "");
}

TEST_F(RuntimeMisuse, leaks_are_listed_at_exit) {
    expect([] { allocate_device(100, "a test").release(); }, "device block 1 of 100 bytes was not freed");
    expect([] { make_stream().release(); }, "1 streams were not destroyed");
    expect([] { make_event(EventUse::timing).release(); }, "1 events were not destroyed");
}

TEST_F(RuntimeMisuse, a_program_that_fails_keeps_its_own_status) {
    EXPECT_EXIT(
        {
            make_stream().release();
            std::exit(1);
        },
        ExitedWithCode(1), "");
}

TEST_F(RuntimeMisuse, copies_outside_of_a_block_or_in_the_wrong_direction_are_found) {
    expect(
        [] {
            const DeviceMemory memory = allocate_device(16, "a test");
            std::array<char, 17> host{};
            EXPECT_EQ(cudaMemcpy(memory.get(), host.data(), 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
        },
        "cudaMemcpy of 17 bytes: the target goes past the end of its block");
    expect(
        [] {
            const DeviceMemory memory = allocate_device(16, "a test");
            std::array<char, 16> host{};
            EXPECT_EQ(cudaMemcpy(host.data(), memory.get(), 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
        },
        "the target is no device memory");
    expect(
        [] {
            const DeviceMemory memory = allocate_device(16, "a test");
            const Stream stream = make_stream();
            std::array<char, 16> host{};
            cudaMemcpyAsync(host.data(), memory.get(), 16, cudaMemcpyDeviceToHost, stream.get());
        },
        "pageable memory");
}

TEST_F(RuntimeMisuse, results_are_not_read_before_the_work_that_makes_them_is_complete) {
    expect(
        [] {
            const Stream stream = make_stream();
            const DeviceMemory memory = allocate_device(4, "a test");
            check(cudaLaunchHostFunc(
                stream.get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, nullptr));
            std::array<char, 4> host{};
            EXPECT_EQ(cudaMemcpy(host.data(), memory.get(), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
            check(cudaStreamSynchronize(stream.get()));
        },
        "cudaMemcpy while work on another stream is unfinished");
}

TEST_F(RuntimeMisuse, freed_memory_is_not_freed_again_nor_touched) {
    expect(
        [] {
            std::byte* memory = allocate_device(16, "a test").release();
            check(cudaFree(memory));
            EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
        },
        "device block 1 of 16 bytes was freed before");
    expect(
        [] {
            const DeviceMemory memory = allocate_device(16, "a test");
            cudaFree(memory.get() + 4);
        },
        "not the begin of a block");
    EXPECT_EXIT(
        {
            std::byte* memory = allocate_device(16, "a test").release();
            cudaFree(memory);
            std::memset(memory, 0, 1);
        },
        KilledBySignal(SIGSEGV), "access to device block 1 of 16 bytes, 0 bytes into it, after it was freed");
}

TEST_F(RuntimeMisuse, writing_beside_a_block_is_found_at_once_or_when_it_is_freed) {
    EXPECT_EXIT(std::memset(allocate_device(256, "a test").get(), 0, 257), KilledBySignal(SIGSEGV),
                "access 0 bytes past device block 1 of 256 bytes");
    expect([] { std::memset(allocate_device(16, "a test").get(), 0, 17); },
           "something was written beside device block 1");
}

TEST_F(RuntimeMisuse, memory_that_unfinished_work_may_use_is_not_freed) {
    expect(
        [] {
            const Stream stream = make_stream();
            const DeviceMemory memory = allocate_device(16, "a test");
            check(cudaLaunchHostFunc(
                stream.get(), [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, nullptr));
        },
        "cudaFree: device block 1 of 16 bytes while work enqueued before is unfinished");
}

TEST_F(RuntimeMisuse, destroyed_and_foreign_handles_are_found) {
    expect(
        [] {
            cudaStream_t stream = nullptr;
            {
                const Stream owner = make_stream();
                stream = owner.get();
            }
            EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
        },
        "cudaStreamSynchronize: no such stream");
    expect(
        [] {
            const Stream stream = make_stream();
            cudaEventRecord(reinterpret_cast<cudaEvent_t>(stream.get()), stream.get());
        },
        "cudaEventRecord: no such event");
}

TEST_F(RuntimeMisuse, times_are_asked_only_of_timed_recorded_events) {
    expect(
        [] {
            const Event a = make_event(EventUse::timing), b = make_event(EventUse::timing);
            float ms = 0;
            EXPECT_EQ(cudaEventElapsedTime(&ms, a.get(), b.get()), cudaErrorInvalidResourceHandle);
        },
        "never recorded");
    expect(
        [] {
            const Event a = make_event(EventUse::timing), b = make_event(EventUse::ordering);
            float ms = 0;
            EXPECT_EQ(cudaEventElapsedTime(&ms, a.get(), b.get()), cudaErrorInvalidResourceHandle);
        },
        "an event without times");
}

TEST_F(RuntimeMisuse, launches_need_a_kernel) {
    expect(
        [] {
            static const int no_kernel = 0;
            EXPECT_EQ(cudaLaunchKernel(&no_kernel, dim3(1), dim3(1), nullptr, 0, nullptr),
                      cudaErrorInvalidDeviceFunction);
        },
        "cudaLaunchKernel: no kernel");
}

TEST_F(RuntimeMisuse, streams_of_another_device_than_the_event_are_found) {
    expect(
        [] {
            const Variable devices("LOCKSTEP_DOUBLE_DEVICES", "2");
            const Event event = make_event(EventUse::ordering);
            check(cudaSetDevice(1));
            const Stream stream = make_stream();
            EXPECT_EQ(cudaEventRecord(event.get(), stream.get()), cudaErrorInvalidResourceHandle);
        },
        "event and stream are of two devices");
}

TEST_F(RuntimeMisuse, a_faulty_kernel_fails_every_later_call) {
    EXPECT_EXIT(
        {
            const Variable fail("LOCKSTEP_DOUBLE_FAIL", "cudaStreamSynchronize:1:700");
            const Stream stream = make_stream();
            EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaErrorIllegalAddress);
            std::exit(cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 5 : 6);
        },
        ExitedWithCode(5), "");
}

TEST_F(RuntimeMisuse, work_that_hangs_never_completes) {
    EXPECT_EXIT(
        {
            const Variable hang("LOCKSTEP_DOUBLE_HANG", "cudaMemsetAsync:2");
            const Stream stream = make_stream();
            const DeviceMemory memory = allocate_device(16, "a test");
            check(cudaMemsetAsync(memory.get(), 0, 16, stream.get()));
            check(cudaStreamSynchronize(stream.get()));
            check(cudaMemsetAsync(memory.get(), 0, 16, stream.get()));
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            std::exit(cudaStreamQuery(stream.get()) == cudaErrorNotReady ? 5 : 6);
        },
        ExitedWithCode(5), "");
}

}  // namespace
}  // namespace lockstep::gpu::testing
