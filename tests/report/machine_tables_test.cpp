#include "report/machine_tables.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "machine/catalog.hpp"

namespace lockstep::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

config::DataPath shipped_data() { return config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}); }

std::vector<machine::Device> all_devices() {
    std::vector<machine::Device> devices;
    for (const auto& name : machine::device_names(shipped_data()))
        devices.push_back(machine::load_device(shipped_data(), name));
    return devices;
}

std::size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    std::size_t widest = 0;
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
}

TEST(DeviceTables, list_has_a_line_for_each_device_within_100_columns) {
    const auto devices = all_devices();
    const std::string text = format_device_list(devices);
    for (const auto& device : devices) EXPECT_THAT(text, HasSubstr(device.name));
    EXPECT_LE(widest_line(text), 100U);
}

TEST(DeviceTables, show_has_dense_and_sparse_apart_with_notes_and_sources) {
    const auto a100 = machine::load_device(shipped_data(), "a100-sxm4-40gb");
    const std::string text = format_device(a100);
    EXPECT_THAT(text, AllOf(HasSubstr("312 TFLOP/s"), HasSubstr("624 TFLOP/s"), HasSubstr("with 2:4 sparsity")));
    EXPECT_THAT(text, HasSubstr("12 links of 25 GB/s = 300 GB/s in one direction"));
    EXPECT_THAT(text, AllOf(HasSubstr("Sources"), HasSubstr("Notes"), HasSubstr(a100.file.string())));
    for (const auto& device : all_devices()) {
        auto without_file = device;
        without_file.file.clear();
        EXPECT_LE(widest_line(format_device(without_file)), 100U) << device.name;
    }
}

TEST(DeviceTables, json_has_rates_in_base_units_and_null_for_what_is_not_known) {
    const std::string b200 = device_json(machine::load_device(shipped_data(), "b200")).dump();
    EXPECT_THAT(b200, AllOf(HasSubstr("\"price\": null"), HasSubstr("\"l2_bytes\": null"),
                            HasSubstr("\"per_link\": 50000000000")));
}

TEST(MachineTables, list_shows_ring_channels_within_100_columns) {
    std::vector<machine::Machine> machines;
    for (const auto& name : machine::machine_names(shipped_data()))
        machines.push_back(machine::load_machine(shipped_data(), name));
    const std::string text = format_machine_list(machines);
    EXPECT_THAT(text, AllOf(HasSubstr("6 x 25 GB/s = 150 GB/s"), HasSubstr("18 x 25 GB/s = 450 GB/s")));
    EXPECT_LE(widest_line(text), 100U);
}

TEST(MachineTables, show_has_matrix_links_rings_calibration_and_sources) {
    const std::string text = format_machine(machine::load_machine(shipped_data(), "dgx-a100-40gb"));
    EXPECT_THAT(text, HasSubstr("GPU0\t X \tNV12"));
    EXPECT_THAT(text, ::testing::ContainsRegex("gpu0 +nvswitch0-5 +nvlink +2 +50 GB/s"));
    EXPECT_THAT(text, HasSubstr("Ring channels over the 8 devices of a node: 12 x 25 GB/s = 300 GB/s"));
    EXPECT_THAT(text, HasSubstr("6 x  0 1 2 3 4 5 6 7"));
    EXPECT_THAT(text, AllOf(HasSubstr("Calibration"), HasSubstr("Sources"), Not(HasSubstr("default constants"))));
}

TEST(MachineTables, lines_but_for_the_matrix_stay_within_100_columns) {
    for (const auto& name : machine::machine_names(shipped_data())) {
        auto machine = machine::load_machine(shipped_data(), name);
        machine.file.clear();
        std::istringstream lines(format_machine(machine));
        for (std::string line; std::getline(lines, line);) {
            const bool is_of_smi =
                line.find('\t') != std::string::npos || line.find("= Connection") != std::string::npos;
            if (!is_of_smi) { EXPECT_LE(line.size(), 100U) << name << ": " << line; }
        }
    }
}

TEST(MachineTables, cluster_shows_its_network_with_sources) {
    config::Diagnostics diagnostics;
    const auto cluster = machine::load_machine(
        shipped_data(), config::parse_text("{node: dgx-a100-80gb, count: 4, network: ib-hdr-8}", "e.yaml"),
        diagnostics);
    diagnostics.throw_if_any();
    EXPECT_THAT(format_machine(cluster),
                AllOf(HasSubstr("4 nodes of 8 a100-sxm4-80gb"), HasSubstr("ib-hdr-8: 8 x 25 GB/s"),
                      HasSubstr("Sources of the network")));
}

TEST(MachineTables, show_tells_kinds_of_nodes_faults_and_leaves) {
    config::Diagnostics diagnostics;
    const auto cluster = machine::load_machine(
        shipped_data(),
        config::parse_text("{nodes: [{node: dgx-a100-80gb, count: 3}, {node: dgx-h100}], network: {per_nic: 25 GB/s, "
                           "latency: 1 us, nodes_per_leaf: 2, rails: true}, faults: [{node: 1, link: [gpu0, "
                           "nvswitch0], rate: 0.5}]}",
                           "e.yaml"),
        diagnostics);
    diagnostics.throw_if_any();
    EXPECT_THAT(format_machine(cluster),
                AllOf(HasSubstr("2 nodes of 8 a100-sxm4-80gb"), HasSubstr("1 node of 8 h100-sxm5-80gb"),
                      HasSubstr("Nodes 0, 2 of a100-sxm4-80gb"), HasSubstr("Node 3 of h100-sxm5-80gb"),
                      HasSubstr("node 1: gpu0-nvswitch0 nvlink at 25 GB/s of 50 GB/s"),
                      HasSubstr("1 node of 8 a100-sxm4-80gb, not whole"), HasSubstr("2 nodes a rail")));
    EXPECT_THAT(machine_json(cluster).dump(-1),
                AllOf(HasSubstr("\"kinds\":[{\"nodes\":[[0,0],[2,2]]"), HasSubstr("\"nodes_per_leaf\":2"),
                      HasSubstr("\"faults\":[{\"node\":1,")));
}

TEST(MachineTables, json_has_the_matrix_and_every_ring) {
    const std::string text = machine_json(machine::load_machine(shipped_data(), "dgx-1v-16gb")).dump(-1);
    EXPECT_THAT(text, AllOf(HasSubstr("\"total\":150000000000"), HasSubstr("\"NV2\""), HasSubstr("\"network\":null")));
}

}  // namespace
}  // namespace lockstep::report
