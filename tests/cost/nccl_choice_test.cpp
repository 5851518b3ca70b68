// Values of NCCL's model by hand: which algorithm and protocol is taken, and how long it takes.
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cost/collective_cost.hpp"
#include "cost/peak_rate.hpp"
#include "cost/small_machine.hpp"

namespace lockstep::cost {
namespace {

using machine::CollectiveAlgorithm;
using machine::CollectiveProtocol;
using step::CollectiveKind;

std::vector<int> first(int n) {
    std::vector<int> ranks(static_cast<std::size_t>(n));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

machine::Machine known(const std::string& capability, int nodes = 1) {
    machine::Machine m = a100_machine(nodes);
    m.device.compute_capability = capability;
    m.calibration.link = 0.8;
    m.calibration.collective_base = 20_us;
    m.calibration.per_hop = 3.4_us;  // NCCL's own, so that all other hops are NCCL's too
    m.calibration.network_per_hop = 14_us;
    return m;
}

Wires wires_of(const machine::Machine& m) { return find_wires(m, m.place(m.devices()), first(m.devices())); }

CollectiveChoice choice(const machine::Machine& m, Bytes buffer, CollectiveKind kind = CollectiveKind::all_reduce) {
    return choose_collective(m.calibration, wires_of(m), kind, buffer);
}

TEST(NcclChoice, is_simple_for_large_buffers_with_the_time_of_the_calibration) {
    const auto c = choice(known("8.0"), 1_GiB);
    EXPECT_EQ(c.algorithm, CollectiveAlgorithm::ring);
    EXPECT_EQ(c.protocol, CollectiveProtocol::simple);
    EXPECT_NEAR(c.time.latency.value, 20e-6 + 14 * 3.4e-6, 1e-12);
    EXPECT_DOUBLE_EQ(c.time.transfer.value, 1.75 * 1073741824 / 240e9);
}

TEST(NcclChoice, is_ll_for_small_buffers) {
    const auto c = choice(known("8.0"), Bytes{1024});
    EXPECT_EQ(c.protocol, CollectiveProtocol::ll);
    // Base 20 - 8.4 + 6.6 us, 14 steps of 0.6 us; 1.75 KiB at most_ll, 87.7 GB/s, below half of 240.
    EXPECT_NEAR(c.time.latency.value, 18.2e-6 + 14 * 0.6e-6, 1e-12);
    EXPECT_DOUBLE_EQ(c.time.transfer.value, 1.75 * 1024 / 87.7e9);
}

TEST(NcclChoice, is_ll128_between_them) {
    const auto c = choice(known("8.0"), 4_MiB);
    EXPECT_EQ(c.protocol, CollectiveProtocol::ll128);
    // Base 20 + 14 - 8.4 us, 14 steps of 1.9 us, 0.92 of 240 GB/s.
    EXPECT_NEAR(c.time.latency.value, 25.6e-6 + 14 * 1.9e-6, 1e-12);
    EXPECT_NEAR(c.time.transfer.value, 1.75 * 4194304 / (0.92 * 240e9), 1e-15);
}

TEST(NcclChoice, ll128_is_not_offered_where_NICs_are_not_known_to_be_near) {
    EXPECT_TRUE(wires_of(known("8.0")).offer.has_ll128);
    EXPECT_FALSE(wires_of(known("8.0", 2)).offer.has_ll128);
    EXPECT_FALSE(wires_of(known("6.0")).offer.has_ll128);
}

TEST(NcclChoice, of_a_device_without_compute_capability_is_simple) {
    EXPECT_EQ(choice(known(""), Bytes{8}).protocol, CollectiveProtocol::simple);
    machine::Machine cpu = known("8.0");
    cpu.device.kind = machine::DeviceKind::cpu;
    EXPECT_EQ(choice(cpu, Bytes{8}).protocol, CollectiveProtocol::simple);
}

TEST(NcclChoice, is_nvls_for_large_all_reduces_where_switches_add_up) {
    const machine::Machine m = known("9.0");
    const auto c = choice(m, 1_GiB);
    EXPECT_EQ(c.algorithm, CollectiveAlgorithm::nvls);
    // 2 x 0.85 x 320/450 x 7/8 of the port: 317.33 of 300 GB/s; base 20 - 8.4, one step of 25 us.
    EXPECT_NEAR(c.time.transfer.value, 1.75 * 1073741824 / (2 * 0.85 * 320 / 450 * 0.875 * 300e9), 1e-12);
    EXPECT_NEAR(c.time.latency.value, 36.6e-6, 1e-12);
    EXPECT_EQ(choice(m, 1_GiB, CollectiveKind::all_gather).algorithm, CollectiveAlgorithm::ring);
    EXPECT_EQ(choice(known("8.0"), 1_GiB).algorithm, CollectiveAlgorithm::ring);
}

TEST(NcclChoice, of_nvls_on_two_nodes_uses_the_network_both_ways) {
    const auto c = choice(known("9.0", 2), 1_GiB);
    EXPECT_EQ(c.algorithm, CollectiveAlgorithm::nvls);
    // Inside 317.33 GB/s is below 2 x 200 x 0.92 between the nodes.
    EXPECT_NEAR(c.time.transfer.value, 1.875 * 1073741824 / (2 * 0.85 * 320 / 450 * 0.875 * 300e9), 1e-12);
    // 20 - 8.4 + 25 + 2 x 1 level x (20.9 + 2 us of the network)
    EXPECT_NEAR(c.time.latency.value, 36.6e-6 + 2 * 22.9e-6, 1e-12);
}

TEST(NcclChoice, takes_what_is_forced_where_the_collective_has_it) {
    machine::Machine m = known("9.0");
    m.forced = {CollectiveAlgorithm::tree, CollectiveProtocol::simple};
    const auto c = choice(m, Bytes{1024});
    EXPECT_EQ(c.algorithm, CollectiveAlgorithm::tree);
    EXPECT_EQ(c.protocol, CollectiveProtocol::simple);
    // A chain of 8: 20 + 2 x 7 x 4 us (NCCL's tree step is 4.0 where the ring's is 3.4); 2 S at 0.92 x 240 GB/s.
    EXPECT_NEAR(c.time.latency.value, 20e-6 + 14 * 4e-6, 1e-12);
    EXPECT_NEAR(c.time.transfer.value, 2 * 1024 / (0.92 * 240e9), 1e-15);
    EXPECT_EQ(choice(m, Bytes{1024}, CollectiveKind::all_gather).algorithm, CollectiveAlgorithm::ring);
}

TEST(NcclChoice, forced_is_never_faster_than_the_free_one) {
    for (const char* capability : {"7.0", "8.0", "9.0", "10.0"})
        for (const int nodes : {1, 2, 4})
            for (double size = 8; size < 1e10; size *= 8) {
                machine::Machine m = known(capability, nodes);
                const double free = (choice(m, Bytes{size}).time.latency + choice(m, Bytes{size}).time.transfer).value;
                for (const auto protocol :
                     {CollectiveProtocol::ll, CollectiveProtocol::ll128, CollectiveProtocol::simple}) {
                    m.forced.protocol = protocol;
                    const auto forced = choice(m, Bytes{size}).time;
                    EXPECT_LE(free, (forced.latency + forced.transfer).value) << capability << " " << size;
                }
            }
}

TEST(NcclChoice, reaches_the_share_of_the_NICs_that_the_calibration_says) {
    machine::Machine m = a100_machine(2);
    m.calibration.network = 0.5;
    EXPECT_DOUBLE_EQ(collective_time(m.calibration, wires_of(m), CollectiveKind::all_gather, 1_GiB).transfer.value,
                     15.0 / 16 * 1073741824 / 100e9);
}

TEST(ComputeClock, under_a_power_cap_slows_the_units_and_not_the_memory) {
    machine::Machine m = a100_machine();
    m.device.clock = 0.5;
    EXPECT_EQ(peak_rate(m.device, MathType::bf16), 156_TFLOPS);
}

}  // namespace
}  // namespace lockstep::cost
