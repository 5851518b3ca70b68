#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "machine/host_probe.hpp"
#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

HostStructure eight_cores() {
    HostStructure s;
    s.host_name = "node1";
    s.cpu_model = "Test CPU \"X\": 3 GHz";
    s.cores = 8;
    s.allowed_cores = 8;
    s.sockets = 2;
    s.numa_nodes = 2;
    s.memory = 64_GiB;
    s.l2 = 1_MiB;
    s.isa = "avx2";
    return s;
}

HostRates two_ranks() {
    HostRates r;
    r.threads_per_rank = 2;
    r.measured_ranks = 2;
    r.gemm_fp32 = FlopRate{123.4567890123e9};
    r.convolution_share = 0.85;
    r.attention_share = 0.4;
    r.memory = Bandwidth{9.87654321e9};
    r.op_overhead = Seconds{3.21e-6};
    r.all_reduce_bus = Bandwidth{4.5e9};
    r.all_reduce_latency = Seconds{8e-6};
    r.compute_slowdown = 0.25;
    r.when = "2026-12-01T10:00:00Z";
    r.how = "lockstep machine detect, 2 ranks, 2 threads each, 2.1 s";
    return r;
}

std::filesystem::path scratch_file(const std::string& name) {
    return std::filesystem::path(::testing::TempDir()) / ("lockstep-host-test-" + std::to_string(::getpid())) / name;
}

TEST(HostStructure, is_read_from_this_machine) {
    const HostStructure s = read_host_structure();
    EXPECT_FALSE(s.host_name.empty());
    EXPECT_FALSE(s.cpu_model.empty());
    EXPECT_FALSE(s.isa.empty());
    EXPECT_GE(s.cores, s.allowed_cores);
    EXPECT_GE(s.allowed_cores, 1);
    EXPECT_GE(s.sockets, 1);
    EXPECT_GT(s.memory.value, 1e8);
}

TEST(HostStructure, counts_only_the_cores_this_process_is_bound_to) {
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &before) != 0) {
            CPU_SET(cpu, &one);
            break;
        }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const int bound = read_host_structure().allowed_cores;
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    EXPECT_EQ(bound, 1);
}

TEST(HostRates, read_back_exactly_as_written) {
    const auto file = scratch_file("rates/host-node1.yaml");
    HostRates rates = two_ranks();
    rates.gemm_bf16 = FlopRate{1.0 / 3 * 1e12};
    write_host_rates(rates, eight_cores(), file);
    const auto read = read_host_rates(file);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->gemm_fp32, rates.gemm_fp32);
    EXPECT_EQ(read->gemm_bf16, rates.gemm_bf16);
    EXPECT_EQ(read->memory, rates.memory);
    EXPECT_EQ(read->all_reduce_latency, rates.all_reduce_latency);
    EXPECT_EQ(read->op_overhead, rates.op_overhead);
    EXPECT_EQ(read->compute_slowdown, rates.compute_slowdown);
    EXPECT_EQ(read->measured_ranks, 2);
    EXPECT_EQ(read->how, rates.how);
}

TEST(HostRates, that_were_never_written_are_none) {
    EXPECT_FALSE(read_host_rates(scratch_file("absent.yaml")).has_value());
}

TEST(HostRates, in_a_damaged_file_are_an_error_that_names_it) {
    const auto file = scratch_file("damaged.yaml");
    write_host_rates(two_ranks(), eight_cores(), file);
    std::ofstream(file, std::ios::app) << "memroy: 3 GB/s\n";
    try {
        read_host_rates(file);
        FAIL() << "expected an InputError";
    } catch (const InputError& error) { EXPECT_THAT(error.what(), HasSubstr("damaged.yaml:")); }
}

TEST(HostRates, that_cant_be_written_say_where_and_what_to_do) {
    const auto file = scratch_file("plain");
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "a file, not a folder";
    EXPECT_THROW(write_host_rates(two_ranks(), eight_cores(), file / "host.yaml"), RuntimeError);
}

TEST(HostMachine, rings_and_calibration_give_back_the_measured_all_reduce) {
    const HostRates rates = two_ranks();
    const Machine m = make_host_machine(eight_cores(), rates, 2);
    EXPECT_EQ(m.devices(), 2);
    EXPECT_EQ(m.device.kind, DeviceKind::cpu);
    const RingChannels rings = find_rings(m.node, {0, 1});
    EXPECT_DOUBLE_EQ(rings.total().value * m.calibration.link, rates.all_reduce_bus.value);
    // 2(n-1) = 2 steps of 4 us are the measured 8 us.
    EXPECT_DOUBLE_EQ(m.calibration.per_hop.value, 4e-6);
    EXPECT_DOUBLE_EQ(m.device.peak(MathType::fp32)->value * m.calibration.gemm, rates.gemm_fp32.value);
    EXPECT_EQ(m.device.memory, 32_GiB);
    EXPECT_THAT(m.sources, Contains(HasSubstr("2 ranks, 2 threads each")));
}

TEST(HostMachine, of_all_cores_has_a_ring_over_both_sockets) {
    const int ranks = host_ranks(eight_cores(), two_ranks());
    EXPECT_EQ(ranks, 4);  // 8 cores, 2 for each rank
    const Machine m = make_host_machine(eight_cores(), two_ranks(), ranks);
    const RingChannels rings = find_rings(m.node, test::first_gpus(4));
    EXPECT_EQ(rings.total(), Bandwidth{4.5e9});
    EXPECT_EQ(rings.proximity, Proximity::sys);
    EXPECT_THAT(m.notes, Contains(HasSubstr("measured with 2 ranks")));
}

TEST(HostMachine, of_several_ranks_wants_rates_measured_between_ranks) {
    HostRates rates = two_ranks();
    rates.measured_ranks = 1;
    rates.all_reduce_bus = {};
    EXPECT_EQ(host_ranks(eight_cores(), rates), 1);
    EXPECT_EQ(make_host_machine(eight_cores(), rates, 1).devices(), 1);
    EXPECT_THROW(make_host_machine(eight_cores(), rates, 2), InputError);
    EXPECT_THROW(make_host_machine(eight_cores(), rates, 0), InputError);
}

TEST(HostMachine, without_rates_names_the_command_that_measures_them) {
    const auto folder = scratch_file("empty-cache");
    const char* const old = std::getenv("XDG_CACHE_HOME");
    const std::string kept = old == nullptr ? "" : old;
    ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    try {
        load_machine(test::shipped_data(), "host");
        ADD_FAILURE() << "expected an InputError";
    } catch (const InputError& error) { EXPECT_THAT(error.what(), HasSubstr("lockstep machine detect")); }
    const HostStructure s = read_host_structure();
    write_host_rates(two_ranks(), s, host_rates_file(s));
    const Machine m = load_machine(test::shipped_data(), "host");
    EXPECT_EQ(m.name, "host");
    EXPECT_GE(m.devices(), 2);
    EXPECT_EQ(m.file, folder / "lockstep" / ("host-" + s.host_name + ".yaml"));
    old == nullptr ? ::unsetenv("XDG_CACHE_HOME") : ::setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace lockstep::machine
