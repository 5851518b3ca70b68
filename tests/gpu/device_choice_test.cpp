// Which GPU each rank takes, and what is refused before NCCL could hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "base/error.hpp"
#include "gpu/device_probe.hpp"
#include "gpu/rank_device.hpp"
#include "gpu/variable.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<GpuFacts> gpus_of_host(int count) {
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", std::to_string(count));
    return probe_devices();
}

// What each rank chose, or was told; `visible` by rank.
struct Outcome {
    std::vector<int> ordinals;
    std::vector<std::string> errors;
};
Outcome choose(const std::vector<std::vector<GpuFacts>>& visible) {
    Outcome outcome{std::vector<int>(visible.size(), -1), std::vector<std::string>(visible.size())};
    world::run_thread_world(static_cast<int>(visible.size()), [&](world::World& world) {
        const auto rank = static_cast<std::size_t>(world.rank());
        try {
            outcome.ordinals[rank] = choose_device(world, visible[rank]);
        } catch (const RuntimeError& error) { outcome.errors[rank] = error.what(); }
    });
    return outcome;
}
Outcome choose_of_all(int ranks, int gpus) {
    return choose(std::vector<std::vector<GpuFacts>>(static_cast<std::size_t>(ranks), gpus_of_host(gpus)));
}

TEST(DeviceChoice, ranks_that_see_all_gpus_take_them_in_order) {
    EXPECT_THAT(choose_of_all(1, 4).ordinals, ElementsAre(0));
    EXPECT_THAT(choose_of_all(2, 2).ordinals, ElementsAre(0, 1));
    EXPECT_THAT(choose_of_all(2, 4).ordinals, ElementsAre(0, 1));
    EXPECT_THAT(choose_of_all(4, 4).ordinals, ElementsAre(0, 1, 2, 3));
}

TEST(DeviceChoice, a_rank_that_sees_one_gpu_takes_it) {
    const auto gpus = gpus_of_host(4);
    EXPECT_THAT(choose({{gpus[3]}, {gpus[1]}, {gpus[0]}, {gpus[2]}}).ordinals, ElementsAre(0, 0, 0, 0));
}

TEST(DeviceChoice, ranks_that_see_two_gpus_each_take_their_first) {
    const auto gpus = gpus_of_host(4);
    EXPECT_THAT(choose({{gpus[0], gpus[1]}, {gpus[2], gpus[3]}}).ordinals, ElementsAre(0, 0));
}

TEST(DeviceChoice, two_ranks_on_one_gpu_are_refused_on_both_with_ranks_host_and_gpu) {
    const Outcome outcome = choose_of_all(2, 1);
    EXPECT_THAT(outcome.errors,
                Each(AllOf(HasSubstr("rank 1 on "), HasSubstr("the only one is taken: d0b1:0a:00.0 (test double"),
                           HasSubstr("by rank 0"), HasSubstr("srun --gpus-per-task=1"))));
    EXPECT_EQ(outcome.errors[0], outcome.errors[1]);
}

TEST(DeviceChoice, more_ranks_than_gpus_are_refused_on_all_ranks) {
    const Outcome outcome = choose_of_all(4, 2);
    EXPECT_THAT(outcome.errors, Each(AllOf(HasSubstr("rank 2 on "), HasSubstr("all 2 are taken"),
                                           HasSubstr("by rank 0"), HasSubstr("by rank 1"))));
}

TEST(DeviceChoice, a_rank_that_sees_none_is_named_on_all_ranks) {
    EXPECT_THAT(choose({gpus_of_host(1), {}}).errors, Each(AllOf(HasSubstr("rank 1 on "), HasSubstr("sees no GPU"))));
}

TEST(DeviceChoice, a_mig_instance_does_for_one_rank_and_not_for_more) {
    const Variable mig("LOCKSTEP_DOUBLE_MIG", "1");
    EXPECT_THAT(choose_of_all(1, 1).ordinals, ElementsAre(0));
    EXPECT_THAT(choose_of_all(2, 2).errors,
                Each(AllOf(HasSubstr("rank 0 on "), HasSubstr("MIG instance"), HasSubstr("nvidia-smi -mig 0"))));
}

}  // namespace
}  // namespace lockstep::gpu::testing
