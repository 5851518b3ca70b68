#include "machine/knobs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "machine/route.hpp"
#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using test::shipped_data;
using test::shipped_machine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Machine cluster(const std::string& text) {
    config::Diagnostics diagnostics;
    Machine machine = load_machine(shipped_data(), config::parse_text(text, "m.yaml"), diagnostics);
    diagnostics.throw_if_any();
    return machine;
}

Knobs knobs(const std::string& text) {
    config::Diagnostics diagnostics;
    const Knobs knobs = read_knobs(config::parse_text(text, "k.yaml"), diagnostics);
    diagnostics.throw_if_any();
    return knobs;
}

std::vector<std::string> errors_of(const std::string& text) {
    config::Diagnostics diagnostics;
    read_knobs(config::parse_text(text, "k.yaml"), diagnostics);
    return diagnostics.errors();
}

std::string refusal(const Machine& machine, const std::string& text) {
    try {
        apply_knobs(machine, knobs(text));
    } catch (const InputError& error) { return error.what(); }
    return "accepted";
}

TEST(Knobs, that_are_not_set_change_nothing) {
    const Machine m = apply_knobs(shipped_machine("dgx-h100"), knobs("{nccl_algo: auto}"));
    EXPECT_THAT(knobs("{nccl_algo: auto}").names(), IsEmpty());
    EXPECT_EQ(m.device.clock, 1);
    EXPECT_EQ(m.node.links.size(), shipped_machine("dgx-h100").node.links.size());
    EXPECT_FALSE(m.forced.algorithm.has_value());
}

TEST(Knobs, without_peer_to_peer_all_traffic_goes_by_host_memory) {
    const Machine m = apply_knobs(shipped_machine("dgx-a100-80gb"), knobs("{peer_to_peer: false}"));
    const Route route = find_route(m.node, m.node.gpu(0), m.node.gpu(1));
    EXPECT_EQ(route.nvlinks, 0);
    // gpu0, PCIe switch, CPU and back, though both GPUs may be below one switch.
    EXPECT_EQ(route.links.size(), 4U);
    EXPECT_EQ(route.bandwidth, 31.5_GBps);
    EXPECT_NE(rings_of_node(m.node)->proximity, Proximity::nvlink);
}

TEST(Knobs, rates_are_those_of_one_healthy_link) {
    const Machine m = apply_knobs(
        cluster("{node: dgx-a100-80gb, count: 2, network: ib-hdr-8, faults: [{node: 1, link: [gpu0, nvswitch0], rate: "
                "0.5}, {node: 1, nic: 3, rate: 0.2}]}"),
        knobs("{link_rates: {nvlink: 20 GB/s, network: 100 Gb/s}}"));
    EXPECT_EQ(find_route(m.node, m.node.gpu(0), m.node.gpu(1)).bandwidth, 240_GBps);  // 12 x 20
    // The bundle of two to one of six switches carries half: 240 - 20.
    const Topology& slow = m.topology_of(1);
    EXPECT_EQ(find_route(slow, slow.gpu(0), slow.gpu(1)).bandwidth, 220_GBps);
    EXPECT_EQ(m.nics_of(0)[3], 12.5_GBps);
    EXPECT_EQ(m.nics_of(1)[3], 2.5_GBps);
}

TEST(Knobs, of_nics_leave_the_first_ones) {
    const Machine m = apply_knobs(
        cluster("{node: dgx-a100-80gb, count: 2, network: ib-hdr-8, faults: [{node: 1, nic: 0, missing: true}]}"),
        knobs("{nics_per_node: 2}"));
    EXPECT_THAT(m.nics_of(0), ElementsAre(25_GBps, 25_GBps));
    EXPECT_THAT(m.nics_of(1), ElementsAre(Bandwidth{0}, 25_GBps));
}

// cap = i P + (1 - i) P r^3 with i = 0.15: 250 of 400 W leave (0.625 - 0.15) / 0.85 = 0.5588 of the dynamic power.
TEST(Knobs, a_power_cap_lowers_the_clock_by_the_cube_root_of_the_dynamic_power) {
    EXPECT_DOUBLE_EQ(clock_under_cap(Watts{400}, Watts{400}), 1);
    EXPECT_NEAR(clock_under_cap(Watts{250}, Watts{400}), 0.8237, 1e-4);
    const Machine m = apply_knobs(shipped_machine("dgx-a100-80gb"), knobs("{power_cap: 250 W}"));
    EXPECT_NEAR(m.device.clock, 0.8237, 1e-4);
    EXPECT_EQ(m.device.memory_bandwidth, 2039_GBps);
}

TEST(Knobs, force_what_NCCL_offers) {
    const Machine m = apply_knobs(shipped_machine("dgx-h100"), knobs("{nccl_algo: nvls, nccl_proto: simple}"));
    EXPECT_EQ(m.forced.algorithm, CollectiveAlgorithm::nvls);
    EXPECT_EQ(m.forced.protocol, CollectiveProtocol::simple);
    EXPECT_THAT(refusal(shipped_machine("dgx-a100-80gb"), "{nccl_algo: nvls}"), HasSubstr("compute capability 9.0"));
    EXPECT_THAT(refusal(shipped_machine("dgx-h100"), "{nccl_algo: nvls, nccl_proto: ll}"),
                HasSubstr("simple protocol"));
    EXPECT_THAT(refusal(shipped_machine("8x-rtx3090-pcie"), "{nccl_proto: ll128}"), HasSubstr("NVLink"));
    EXPECT_THAT(refusal(shipped_machine("dgx-h100"), "{nccl_proto: ll128, peer_to_peer: false}"), HasSubstr("NVLink"));
}

TEST(Knobs, that_make_no_sense_on_a_machine_are_refused_with_the_reason) {
    const Machine a100 = shipped_machine("dgx-a100-80gb");
    EXPECT_THAT(refusal(a100, "{power_cap: 500 W}"), HasSubstr("above the 400 W of a100-sxm4-80gb"));
    EXPECT_THAT(refusal(a100, "{power_cap: 50 W}"), HasSubstr("use 100 W to 400 W"));
    EXPECT_THAT(refusal(a100, "{nics_per_node: 2}"), HasSubstr("has no network"));
    const Machine two = cluster("{node: dgx-a100-80gb, count: 2, network: ib-hdr-8}");
    EXPECT_THAT(refusal(two, "{nics_per_node: 9}"), HasSubstr("use 1 to 8"));
    EXPECT_THAT(refusal(shipped_machine("8x-rtx3090-pcie"), "{link_rates: {nvlink: 20 GB/s}}"),
                HasSubstr("has no such link"));
    EXPECT_THAT(refusal(a100, "{link_rates: {network: 20 GB/s}}"), HasSubstr("has no network"));
    const Machine bare =
        cluster("{title: T, device: v100-sxm2-16gb, vertices: {gpu: 2}, links: [[gpu0, gpu1, nvlink]]}");
    EXPECT_THAT(refusal(bare, "{peer_to_peer: false}"), HasSubstr("gpu0 can't reach gpu1"));
}

TEST(Knobs, in_a_wrong_form_are_refused_at_their_place) {
    EXPECT_THAT(errors_of("{power_cap: 0 W}"), ElementsAre(HasSubstr("above 0")));
    EXPECT_THAT(errors_of("{power_cap: -5 W}"), ElementsAre(HasSubstr("-5")));
    EXPECT_THAT(errors_of("{power_cap: 250}"), ElementsAre(HasSubstr("W")));
    EXPECT_THAT(errors_of("{nics_per_node: 0}"), ElementsAre(HasSubstr("from 1")));
    EXPECT_THAT(errors_of("{nccl_algo: rings}"), ElementsAre(HasSubstr("did you mean 'ring'")));
    EXPECT_THAT(errors_of("{link_rates: {nvlink: 0 GB/s, ether: 1 GB/s}}"),
                ElementsAre(HasSubstr("above 0"), HasSubstr("ether")));
    EXPECT_THAT(errors_of("{power_cup: 5 W}"), ElementsAre(HasSubstr("did you mean 'power_cap'")));
}

}  // namespace
}  // namespace lockstep::machine
