// The section `knobs` of an experiment: read, set, expanded, kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files.hpp"

namespace lockstep::experiment {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using ExperimentKnobs = ExperimentFile;

TEST_F(ExperimentKnobs, are_read_and_kept_in_one_spelling) {
    const Experiment point = load(std::string(smallest) +
                                  "knobs: {peer_to_peer: false, nccl_algo: tree, power_cap: 0.25 kW, link_rates: "
                                  "{network: 100 Gb/s}}\n")
                                 .points.at(0);
    EXPECT_EQ(point.knobs.peer_to_peer, false);
    EXPECT_EQ(point.knobs.algorithm, machine::CollectiveAlgorithm::tree);
    EXPECT_EQ(point.knobs.power_cap, Watts{250});
    EXPECT_EQ(point.knobs.nic, 12.5_GBps);
    EXPECT_THAT(point.series_text(), AllOf(HasSubstr("\"power_cap\":\"250 W\""), HasSubstr("\"nccl_algo\":\"tree\"")));
}

TEST_F(ExperimentKnobs, tell_series_apart) {
    const auto with = [&](const std::string& cap) {
        return load(smallest, {"knobs.power_cap=" + cap}).points.at(0).series_text();
    };
    EXPECT_NE(with("250 W"), with("300 W"));
    EXPECT_NE(with("250 W"), load(smallest).points.at(0).series_text());
}

TEST_F(ExperimentKnobs, can_be_lists_that_make_points) {
    const auto loaded = load(smallest, {"knobs.nccl_algo=[ring, tree]", "knobs.link_rates.nvlink=[20 GB/s, 25 GB/s]"});
    ASSERT_EQ(loaded.points.size(), 4U);
    EXPECT_EQ(loaded.points[1].label, "knobs.nccl_algo=ring knobs.link_rates.nvlink=25 GB/s");
    EXPECT_EQ(loaded.points[1].knobs.nvlink, 25_GBps);
    EXPECT_EQ(loaded.points[2].knobs.algorithm, machine::CollectiveAlgorithm::tree);
}

TEST_F(ExperimentKnobs, of_wrong_values_are_refused_where_they_are_set) {
    EXPECT_THAT(failure_of(smallest, {"knobs.power_cap=-5 W"}), HasSubstr("--set knobs.power_cap=-5 W"));
    EXPECT_THAT(failure_of(smallest, {"knobs.nccl_proto=l128"}), HasSubstr("ll128"));
    EXPECT_THAT(failure_of(smallest, {"knobs.nics=4"}), HasSubstr("nics"));
    EXPECT_THAT(failure_of(smallest, {"knobs.nccl_algo=[ring, ring]"}), HasSubstr("in the list twice"));
}

TEST_F(ExperimentKnobs, a_machine_of_mixed_nodes_with_faults_is_read) {
    const auto text = std::string(smallest) +
                      "machine: {nodes: [{node: dgx-a100-80gb, count: 2}, {node: dgx-h100}], network: ib-hdr-8, "
                      "faults: [{node: 1, nic: 0, rate: 0.1}]}\n";
    EXPECT_EQ(load(text).points.at(0).machine.find("nodes")->items().size(), 2U);
    EXPECT_THAT(failure_of(std::string(smallest) + "machine: {nodes: [{node: dgx-h100, cont: 2}]}\n"),
                HasSubstr("did you mean 'count'"));
    EXPECT_THAT(failure_of(std::string(smallest) + "machine: {node: dgx-h100, faults: [{nic: 0, rate: 2}]}\n"),
                HasSubstr("between 0 and 1"));
}

}  // namespace
}  // namespace lockstep::experiment
