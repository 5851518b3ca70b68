#include "gpu/device_sampler.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "gpu/variable.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu::testing {
namespace {

std::string first_gpu() {
    char id[32] = "";
    EXPECT_EQ(cudaDeviceGetPCIBusId(id, sizeof id, 0), cudaSuccess);
    return id;
}

constexpr Seconds interval{1e-3};

/// The first sample begun at `since` or later; none after 5 s.
std::optional<step::DeviceSample> wait_for_sample(const DeviceSampler& sampler, Nanoseconds since) {
    for (int i = 0; i < 5000; ++i) {
        if (auto sample = sampler.latest(since)) return sample;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return std::nullopt;
}

TEST(DeviceSampler, samples_come_from_the_first_step_on_and_say_when_they_were_taken) {
    const Nanoseconds epoch = world::steady_now();
    DeviceSampler sampler(first_gpu(), epoch, interval);
    EXPECT_TRUE(sampler.has_device());
    EXPECT_EQ(sampler.description(), "every 1 ms, by NVML");
    EXPECT_FALSE(sampler.latest({0}));
    sampler.start();
    sampler.start();  // as every step does
    const auto sample = wait_for_sample(sampler, {0});
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->sm_clock, Frequency{1755e6});
    EXPECT_EQ(sample->memory_clock, Frequency{2619e6});
    EXPECT_EQ(sample->power, Watts{412.5});
    EXPECT_EQ(sample->power_limit, Watts{700});
    EXPECT_EQ(sample->temperature, 50);
    EXPECT_EQ(sample->throttle, step::ThrottleReasons{});
    EXPECT_LE(sample->time, world::steady_now() - epoch);
    const Nanoseconds now = world::steady_now() - epoch;
    const auto later = wait_for_sample(sampler, now);
    ASSERT_TRUE(later);
    EXPECT_GE(later->time, now);
    EXPECT_FALSE(sampler.latest(world::steady_now() - epoch + Nanoseconds{1'000'000'000}));
}

TEST(DeviceSampler, throttle_reasons_are_kept_also_those_without_a_name) {
    const Variable throttle("LOCKSTEP_DOUBLE_THROTTLE", "1060");  // 0x424
    DeviceSampler sampler(first_gpu(), world::steady_now(), interval);
    sampler.start();
    const auto sample = wait_for_sample(sampler, {0});
    ASSERT_TRUE(sample);
    EXPECT_TRUE(sample->throttle->has(step::ThrottleReason::power_cap));
    EXPECT_EQ(to_string(*sample->throttle), "power cap, thermal slowdown, reason 0x400");
    EXPECT_EQ(sample->throttle->of_power_and_heat().bits, 0x24U);
}

TEST(DeviceSampler, what_a_gpu_does_not_tell_is_not_there_and_named) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "nvmlDeviceGetPowerUsage:1:3,nvmlDeviceGetPowerUsage:2:3");
    DeviceSampler sampler(first_gpu(), world::steady_now(), Seconds{10});
    EXPECT_EQ(sampler.description(), "every 10000 ms, by NVML; not told: power: Not Supported");
    sampler.start();
    const auto sample = wait_for_sample(sampler, {0});
    ASSERT_TRUE(sample);
    EXPECT_FALSE(sample->power);
    EXPECT_TRUE(sample->sm_clock);
}

TEST(DeviceSampler, without_nvml_or_for_an_unknown_gpu_there_are_no_samples_and_it_says_why) {
    DeviceSampler unknown("dead:be:ef.0", world::steady_now(), interval);
    EXPECT_EQ(unknown.description(), "none: NVML about dead:be:ef.0: Not Found");
    const Variable driver("LOCKSTEP_DOUBLE_DRIVER", "none");
    DeviceSampler absent("0000:01:00.0", world::steady_now(), interval);
    EXPECT_EQ(absent.description(), "none: NVML does not start: Driver Not Loaded");
    for (DeviceSampler* sampler : {&unknown, &absent}) {
        EXPECT_FALSE(sampler->has_device());
        sampler->start();
        EXPECT_FALSE(sampler->latest({0}));
    }
}

TEST(DeviceSampler, an_nvml_that_never_answers_holds_nobody_up) {
    const Variable hang("LOCKSTEP_DOUBLE_HANG", "nvmlDeviceGetPowerUsage:2");  // the thread's first
    const auto begin = std::chrono::steady_clock::now();
    {
        DeviceSampler sampler(first_gpu(), world::steady_now(), interval);
        sampler.start();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(sampler.latest({0}));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace lockstep::gpu::testing
