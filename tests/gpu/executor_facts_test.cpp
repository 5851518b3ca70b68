#include "gpu/executor_facts.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace lockstep::gpu::testing {
namespace {

TEST(ExecutorFacts, algorithms_of_alike_ops_take_one_line_and_others_one_each) {
    EXPECT_EQ(algorithms_text({{"layer0.qkv", "A"},
                               {"layer1.qkv", "A"},
                               {"layer10.qkv", "A"},
                               {"layer0.conv1", "A"},
                               {"layer0.conv2", "B"},
                               {"head", "C"}}),
              "head: C\nlayer0.conv1: A\nlayer0.conv2: B\nlayer*.qkv (3 ops): A\n");
    EXPECT_EQ(algorithms_text({}), "");
}

TEST(ExecutorFacts, recording_says_in_which_steps_and_what_it_costs) {
    // 2400 events of half a microsecond: 1.2 ms a step.
    const auto open = sampling_facts(Sampling(0, 2400, Seconds{0.5e-6}), 2400);
    EXPECT_NE(open.at("spans").find("decided after the first 3"), std::string::npos);
    EXPECT_EQ(open.at("span_cost"), "1200.0 us of a step with spans, for its 2400 events, measured");
    EXPECT_EQ(sampling_facts(Sampling(1, 2, Seconds{1e-6}), 2).at("spans"), "every step");
    EXPECT_EQ(sampling_facts(Sampling(7, 2, Seconds{1e-6}), 2).at("spans"), "every k-th step, k = 7");
}

TEST(Sampling, the_interval_keeps_the_cost_below_its_share_of_the_shortest_of_the_first_steps) {
    // 2400 events of 0.5 us are 1.2 ms: 6 % of 20 ms, 12 times 0.5 %.
    const auto world = world::make_self_world();
    Sampling sampling(0, 2400, Seconds{0.5e-6});
    for (const auto& [step, time] : {std::pair{0, 0.5}, {1, 0.0200001}, {2, 0.04}}) {
        EXPECT_FALSE(sampling.is_decided());
        sampling.step_took(step, Seconds{time}, *world);
    }
    EXPECT_TRUE(sampling.is_decided());
    EXPECT_EQ(sampling.every(), 12);
    EXPECT_TRUE(sampling.takes_times(2));
    EXPECT_FALSE(sampling.takes_times(13));
    EXPECT_TRUE(sampling.takes_times(24));
    sampling.step_took(3, Seconds{1e-6}, *world);
    EXPECT_EQ(sampling.every(), 12);
}

TEST(ExecutorFacts, communicators_are_named_with_their_ranks_and_nccl_with_its_version) {
    std::vector<std::unique_ptr<NcclCommunicator>> communicators(2);  // of the first stream: none
    communicators[1] =
        std::make_unique<NcclCommunicator>(NcclMeeting{"dp", 0, {"rank 3 (host n1, GPU 0)"}, {}}, Seconds{10});
    const auto facts = nccl_facts(communicators);
    EXPECT_EQ(facts.at("communicator dp"), "1 rank: rank 3 (host n1, GPU 0)");
    EXPECT_EQ(facts.at("nccl_algorithm"), "not recorded");
    EXPECT_EQ(facts.at("nccl_version").rfind("2.", 0), 0U);
    EXPECT_EQ(facts.size(), 3U);
}

}  // namespace
}  // namespace lockstep::gpu::testing
