#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/catalog.hpp"
#include "machine/route.hpp"
#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using test::shipped_data;
using test::shipped_machine;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(Catalog, ships_the_devices_and_machines_of_the_first_release) {
    EXPECT_THAT(device_names(shipped_data()),
                IsSupersetOf({"v100-sxm2-16gb", "v100-sxm2-32gb", "a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb",
                              "a100-pcie-80gb", "h100-sxm5-80gb", "h200-sxm-141gb", "b200", "rtx-3090", "l40s", "a10",
                              "t4", "rtx-4090", "h100-pcie-80gb", "gb200"}));
    EXPECT_THAT(machine_names(shipped_data()),
                IsSupersetOf({"dgx-1v-16gb", "dgx-1v-32gb", "dgx-2", "dgx-a100-40gb", "dgx-a100-80gb", "dgx-h100",
                              "8x-rtx3090-pcie", "dgx-2h", "selene-dgx-a100-80gb", "eos-dgx-h100", "gb200-nvl72",
                              "meta-h100-400g-roce"}));
}

TEST(Catalog, every_shipped_device_is_complete_and_says_where_its_figures_come_from) {
    for (const auto& name : device_names(shipped_data())) {
        SCOPED_TRACE(name);
        const Device device = load_device(shipped_data(), name);
        EXPECT_EQ(device.name, name);
        EXPECT_FALSE(device.sources.empty());
        EXPECT_TRUE(device.peak(MathType::fp32).has_value());
        EXPECT_GT(device.memory.value, 0);
        EXPECT_GT(device.power.value, 0);
        const bool says_why_no_nvlink =
            std::ranges::any_of(device.notes, [](const std::string& n) { return n.starts_with("NVLink: none"); });
        EXPECT_NE(device.nvlink.links > 0, says_why_no_nvlink);
        EXPECT_GT(device.pcie.per_direction.value, 0);
        const bool says_why_no_price =
            std::ranges::any_of(device.notes, [](const std::string& n) { return n.starts_with("price: "); });
        EXPECT_NE(device.price.has_value(), says_why_no_price);
        if (device.price) { EXPECT_FALSE(device.price->date.empty()); }
    }
}

TEST(Catalog, every_shipped_machine_loads_with_sources_and_a_measured_calibration) {
    for (const auto& name : machine_names(shipped_data())) {
        SCOPED_TRACE(name);
        const Machine machine = shipped_machine(name);
        EXPECT_EQ(machine.name, name);
        EXPECT_FALSE(machine.sources.empty());
        EXPECT_THAT(machine.calibration.source, ::testing::Not(HasSubstr("default constants")));
        EXPECT_GE(machine.calibration.constant_sources.size(), 10U);
    }
}

TEST(Catalog, gpus_on_nvlink_use_all_links_their_device_has) {
    // A machine either wires every link of every GPU or, as PCIe servers, none.
    for (const auto& name : machine_names(shipped_data())) {
        SCOPED_TRACE(name);
        const Machine machine = shipped_machine(name);
        const int wired = name.ends_with("-pcie") ? 0 : machine.device.nvlink.links;
        for (int i = 0; i < machine.node.gpus(); ++i) EXPECT_EQ(nvlinks_of(machine.node, machine.node.gpu(i)), wired);
    }
}

TEST(Catalog, gpus_are_in_the_counts_that_the_machines_are_sold_with) {
    EXPECT_EQ(shipped_machine("dgx-1v-16gb").devices(), 8);
    EXPECT_EQ(shipped_machine("dgx-1v-16gb").node.nics(), 4);
    EXPECT_EQ(shipped_machine("dgx-2").devices(), 16);
    EXPECT_EQ(shipped_machine("dgx-a100-80gb").node.nics(), 8);
    EXPECT_EQ(shipped_machine("dgx-h100").devices(), 8);
}

TEST(Catalog, clusters_are_as_large_as_the_published_runs_on_them) {
    // Rows of training.csv: 2240 GPUs on Selene, 6144 on Eos; 16,384 for Llama 3 405B; one rack of 72.
    EXPECT_GE(shipped_machine("selene-dgx-a100-80gb").devices(), 2240);
    EXPECT_GE(shipped_machine("eos-dgx-h100").devices(), 6144);
    EXPECT_EQ(shipped_machine("meta-h100-400g-roce").devices(), 16384);
    EXPECT_EQ(shipped_machine("gb200-nvl72").devices_per_node(), 72);
    EXPECT_EQ(shipped_machine("dgx-1v-16gb-1xedr").network->nics_per_node, 1);
}

TEST(Catalog, what_a_cluster_file_assumes_is_said) {
    for (const auto& name : machine_names(shipped_data())) {
        const Machine machine = shipped_machine(name);
        if (machine.nodes > 1) { EXPECT_FALSE(machine.notes.empty()) << name; }
    }
}

TEST(Catalog, every_gpu_of_an_nvl72_reaches_every_other_over_all_18_switches) {
    const Machine rack = shipped_machine("gb200-nvl72");
    const Route route = find_route(rack.node, rack.node.gpu(0), rack.node.gpu(71));
    EXPECT_EQ(route.links.size(), 36U);  // up to each switch and down from it
    EXPECT_EQ(route.nvlinks, 18);
}

TEST(Catalog, widely_copied_wrong_figures_are_contradicted_in_the_device_files) {
    // NVIDIA, Ampere Architecture In-Depth, tables 2 and 3: V100 INT8 62 TOPS by DP4A; 32 FP64 cores in an A100 SM.
    const Device v100 = load_device(shipped_data(), "v100-sxm2-16gb");
    EXPECT_DOUBLE_EQ(v100.peak(MathType::int8)->value, 62e12);
    EXPECT_THAT(v100.notes, ::testing::Contains(HasSubstr("500 TOPS")));
    const Device a100 = load_device(shipped_data(), "a100-sxm4-40gb");
    EXPECT_EQ(a100.fp64_cores_per_sm, 32);
    EXPECT_THAT(a100.notes, ::testing::Contains(HasSubstr("64 FP64 cores")));
}

TEST(Catalog, a_name_that_is_not_there_is_answered_with_the_nearest_one) {
    try {
        load_machine(shipped_data(), "dgx-a100-40g");
        FAIL() << "expected an InputError";
    } catch (const InputError& error) { EXPECT_THAT(error.what(), HasSubstr("dgx-a100-40gb")); }
}

TEST(Machine, ranks_fill_node_after_node) {
    Machine machine = shipped_machine("dgx-a100-40gb");
    EXPECT_EQ(machine.place(4).ranks_per_node, 4);
    machine.nodes = 2;
    const Placement placement = machine.place(12);
    EXPECT_EQ(placement.nodes(), 2);
    EXPECT_EQ(placement.node_of(8), 1);
    EXPECT_EQ(placement.local_of(8), 0);
}

TEST(Machine, too_many_ranks_are_refused_with_both_numbers_and_what_to_do) {
    const Machine machine = shipped_machine("dgx-a100-40gb");
    try {
        machine.place(12);
        FAIL() << "expected an InputError";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("12 ranks do not fit dgx-a100-40gb (1 node of 8 devices = 8)"));
        EXPECT_THAT(error.what(), HasSubstr("use at most 8 ranks"));
        EXPECT_THAT(error.what(), HasSubstr("count: 2"));
    }
    EXPECT_THROW(machine.place(0), InputError);
    EXPECT_THROW(machine.place(-1), InputError);
}

}  // namespace
}  // namespace lockstep::machine
