#include "machine/smi_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using test::shipped_machine;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Cells = std::vector<std::vector<std::string>>;

/// The rows that start with GPU or a NIC's name, cut at white space.
Cells read_rows(std::istream& in) {
    Cells rows;
    for (std::string line; std::getline(in, line) && !line.starts_with("Legend");) {
        std::istringstream words(line);
        std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
        if (line.starts_with("GPU") || line.starts_with("NIC") || line.starts_with("mlx5")) rows.push_back(row);
    }
    return rows;
}

Cells rows_of(const std::string& machine) {
    std::istringstream text(format_smi_matrix(shipped_machine(machine).node));
    return read_rows(text);
}

std::optional<std::filesystem::path> corpus() {
    const char* const folder = std::getenv("LOCKSTEP_CORPUS");
    if (folder == nullptr || !std::filesystem::exists(std::filesystem::path(folder) / "topologies"))
        return std::nullopt;
    return std::filesystem::path(folder) / "topologies";
}

TEST(SmiMatrix, is_laid_out_with_tabs_and_a_legend) {
    Topology t;
    t.vertices = {{VertexKind::gpu, "gpu0", 0, 0},
                  {VertexKind::gpu, "gpu1", 1, 0},
                  {VertexKind::nic, "nic0", 0, 0},
                  {VertexKind::pcie_switch, "pcie_switch0", 0, 0},
                  {VertexKind::cpu, "cpu0", 0, 0}};
    t.links = {{VertexId{0}, VertexId{1}, LinkKind::nvlink, 2, 50_GBps, {}},
               {VertexId{0}, VertexId{3}, LinkKind::pcie, 1, 16_GBps, {}},
               {VertexId{2}, VertexId{3}, LinkKind::pcie, 1, 16_GBps, {}},
               {VertexId{3}, VertexId{4}, LinkKind::pcie, 1, 16_GBps, {}},
               {VertexId{1}, VertexId{4}, LinkKind::pcie, 1, 16_GBps, {}}};
    EXPECT_THAT(format_smi_matrix(t), StartsWith("\tGPU0\tGPU1\tNIC0\tNUMA Affinity\n"
                                                 "GPU0\t X \tNV2\tPIX\t0\n"
                                                 "GPU1\tNV2\t X \tNODE\t0\n"
                                                 "NIC0\tPIX\tNODE\t X \t\n"
                                                 "\n"
                                                 "Legend:\n\n  X    = Self\n"));
}

TEST(SmiMatrix, of_the_dgx_1v_has_single_and_double_links_of_the_hybrid_cube_mesh) {
    const Cells rows = rows_of("dgx-1v-16gb");
    ASSERT_EQ(rows.size(), 12U);
    EXPECT_EQ(rows[0], (std::vector<std::string>{"GPU0", "X", "NV1", "NV1", "NV2", "NV2", "SYS", "SYS", "SYS", "PIX",
                                                 "PHB", "SYS", "SYS", "0"}));
    EXPECT_EQ(rows[6], (std::vector<std::string>{"GPU6", "SYS", "SYS", "NV1", "SYS", "NV1", "NV2", "X", "NV2", "SYS",
                                                 "SYS", "PHB", "PIX", "1"}));
}

TEST(SmiMatrix, is_symmetric_for_every_shipped_machine) {
    for (const auto& name : machine_names(test::shipped_data())) {
        const Cells rows = rows_of(name);
        for (std::size_t i = 0; i < rows.size(); ++i)
            for (std::size_t j = 0; j < rows.size(); ++j) EXPECT_EQ(rows[i][j + 1], rows[j][i + 1]) << name;
    }
}

TEST(SmiMatrix, of_the_dgx_1v_equals_the_one_nvidia_smi_printed) {
    const auto folder = corpus();
    if (!folder) GTEST_SKIP() << "LOCKSTEP_CORPUS is not set or holds no topologies/";
    std::ifstream file(*folder / "smi_v100x8_hcm_mlx5.txt");
    const Cells real = read_rows(file), ours = rows_of("dgx-1v-16gb");
    ASSERT_EQ(real.size(), 9U);  // 8 GPUs and the one card of that server, which sits where our nic1 does
    for (std::size_t i = 0; i < 8; ++i) {
        for (std::size_t j = 1; j <= 8; ++j) EXPECT_EQ(ours[i][j], real[i][j]) << "row " << i << " column " << j;
        // That server has Xeon Scalable processors with a host bridge for each port (NODE); a DGX-1V says PHB there.
        const std::string card = real[i][9] == "NODE" ? "PHB" : real[i][9];
        EXPECT_EQ(ours[i][10], card) << "row " << i;
    }
}

TEST(SmiMatrix, of_the_dgx_2_equals_the_rows_nvidia_smi_printed) {
    const auto folder = corpus();
    if (!folder) GTEST_SKIP() << "LOCKSTEP_CORPUS is not set or holds no topologies/";
    std::ifstream file(*folder / "smi_dgx2_v100x16_nv6_TRUNCATED.txt");
    const Cells real = read_rows(file), ours = rows_of("dgx-2");
    ASSERT_EQ(real.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 1; j <= 20; ++j) EXPECT_EQ(ours[i][j], real[i][j]) << "row " << i << " column " << j;
}

TEST(SmiMatrix, of_nvswitch_machines_equals_what_nvidia_smi_printed_between_gpus) {
    const auto folder = corpus();
    if (!folder) GTEST_SKIP() << "LOCKSTEP_CORPUS is not set or holds no topologies/";
    const std::pair<const char*, const char*> pairs[] = {{"smi_a100x8_nv12_reflowed.txt", "dgx-a100-40gb"},
                                                         {"smi_h100x8_nv18.txt", "dgx-h100"}};
    for (const auto& [name, machine] : pairs) {
        std::ifstream file(*folder / name);
        const Cells real = read_rows(file), ours = rows_of(machine);
        ASSERT_EQ(real.size(), 8U);
        for (std::size_t i = 0; i < 8; ++i)
            for (std::size_t j = 1; j <= 8; ++j) EXPECT_EQ(ours[i][j], real[i][j]) << machine;
    }
}

}  // namespace
}  // namespace lockstep::machine
