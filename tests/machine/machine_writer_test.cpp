#include "machine/machine_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "machine/catalog.hpp"
#include "machine/shipped.hpp"
#include "machine/smi_matrix.hpp"

namespace lockstep::machine {
namespace {

using test::shipped_data;
using ::testing::HasSubstr;
using ::testing::Not;

Machine read_back(const std::string& text) {
    config::Diagnostics diagnostics;
    Machine machine = load_machine(shipped_data(), config::parse_text(text, "m.yaml"), diagnostics);
    EXPECT_THAT(diagnostics.errors(), ::testing::IsEmpty()) << text;
    return machine;
}

void expect_same_calibration(const Calibration& a, const Calibration& b) {
    EXPECT_EQ(a.source, b.source);
    EXPECT_THAT(a.constant_sources, ::testing::UnorderedElementsAreArray(b.constant_sources));
    EXPECT_DOUBLE_EQ(a.gemm, b.gemm);
    EXPECT_DOUBLE_EQ(a.gemm_half_work_gflop, b.gemm_half_work_gflop);
    EXPECT_DOUBLE_EQ(a.link, b.link);
    EXPECT_DOUBLE_EQ(a.per_hop.value, b.per_hop.value);
    EXPECT_DOUBLE_EQ(a.compute_slowdown, b.compute_slowdown);
}

TEST(MachineWriter, every_shipped_machine_is_read_back_as_it_was) {
    for (const std::string& name : machine_names(shipped_data())) {
        const Machine m = load_machine(shipped_data(), name);
        if (m.nodes > 1) continue;  // a cluster is written by the names of its nodes
        const Machine again = read_back(machine_text(m));
        EXPECT_EQ(again.title, m.title);
        EXPECT_EQ(again.device.name, m.device.name);
        EXPECT_EQ(format_smi_matrix(again.node), format_smi_matrix(m.node)) << name;
        ASSERT_EQ(again.node.links.size(), m.node.links.size());
        for (std::size_t i = 0; i < m.node.links.size(); ++i)
            EXPECT_NEAR(again.node.links[i].per_direction / m.node.links[i].per_direction, 1, 1e-5);
        expect_same_calibration(again.calibration, m.calibration);
        EXPECT_EQ(again.sources, m.sources);
        EXPECT_EQ(again.notes, m.notes);
    }
}

TEST(MachineWriter, a_device_without_a_file_is_written_in_place) {
    Machine m = load_machine(shipped_data(), "dgx-a100-40gb");
    m.device.file.clear();
    m.device.title = m.device.name = "\"a\": new, # device";
    const std::string text = machine_text(m);
    EXPECT_THAT(text, HasSubstr("device:\n  title: "));
    const Machine again = read_back(text);
    EXPECT_EQ(again.device.name, m.device.name);
    EXPECT_EQ(again.device.peak(MathType::bf16), m.device.peak(MathType::bf16));
    EXPECT_EQ(again.device.memory, m.device.memory);
    EXPECT_EQ(again.device.nvlink.links, m.device.nvlink.links);
    EXPECT_EQ(again.device.notes, m.device.notes);
}

TEST(MachineWriter, a_calibration_with_every_constant_leaves_nothing_of_the_device_s) {
    const Machine m = load_machine(shipped_data(), "dgx-h100");
    EXPECT_THAT(read_back(machine_text(m)).calibration.source, Not(HasSubstr("the rest")));
}

TEST(MachineWriter, errors_of_a_device_in_place_are_reported_there) {
    config::Diagnostics diagnostics;
    load_machine(shipped_data(),
                 config::parse_text("title: T\ndevice:\n  title: D\n  colour: red\nvertices: {gpu: 1}\n", "m.yaml"),
                 diagnostics);
    EXPECT_THAT(diagnostics.errors(), ::testing::Contains(HasSubstr("m.yaml:4")));
    EXPECT_THAT(diagnostics.errors(), ::testing::Contains(HasSubstr("'peaks' is missing")));
}

TEST(MachineWriter, a_cluster_is_refused) {
    Machine m = load_machine(shipped_data(), "dgx-h100");
    m.nodes = 2;
    EXPECT_THROW(machine_text(m), LogicError);
}

}  // namespace
}  // namespace lockstep::machine
