#include "gpu/device_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "gpu/gpu_backend.hpp"
#include "gpu/numa.hpp"
#include "gpu/variable.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string reason_without_gpus() {
    try {
        probe_devices();
    } catch (const RuntimeError& error) { return error.what(); }
    return "there are GPUs";
}

TEST(DeviceProbe, tells_what_a_gpu_is) {
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", "2");
    const auto gpus = probe_devices();
    ASSERT_EQ(gpus.size(), 2U);
    const GpuFacts& gpu = gpus[1];
    EXPECT_EQ(gpu.ordinal, 1);
    EXPECT_EQ(gpu.name, "test double of NVIDIA H100 80GB HBM3");
    EXPECT_TRUE(gpu.is_test_double);
    EXPECT_FALSE(gpu.is_mig);
    EXPECT_EQ(gpu.uuid.size(), 40U);
    EXPECT_TRUE(gpu.uuid.starts_with("GPU-"));
    EXPECT_EQ(gpu.pci_bus_id, "d0b1:0b:00.0");  // lower case, as the system's folders
    EXPECT_EQ(gpu.compute_major, 9);
    EXPECT_EQ(gpu.multiprocessors, 132);
    EXPECT_EQ(gpu.memory, 4_GiB);
    EXPECT_EQ(gpu.free_memory, 4_GiB);
    EXPECT_EQ(gpu.clock, Frequency{1.98e9});
    // 2 x 2.619 GHz x 5120 bit / 8
    EXPECT_DOUBLE_EQ(gpu.memory_bandwidth.value, 3.35232e12);
    EXPECT_NE(gpu.uuid, gpus[0].uuid);
}

TEST(DeviceProbe, visible_devices_are_named_by_ordinals_or_uuids) {
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", "4");
    const auto all = probe_devices();
    const auto visible = [&](const std::string& list) {
        const Variable variable("CUDA_VISIBLE_DEVICES", list);
        std::vector<int> numbers;
        for (const GpuFacts& gpu : probe_devices())
            for (const GpuFacts& other : all)
                if (gpu.uuid == other.uuid) numbers.push_back(other.ordinal);
        return numbers;
    };
    EXPECT_THAT(visible("2"), ::testing::ElementsAre(2));
    EXPECT_THAT(visible("3,0"), ::testing::ElementsAre(3, 0));
    EXPECT_THAT(visible(all[1].uuid), ::testing::ElementsAre(1));
    EXPECT_THAT(visible("1,7,0"), ::testing::ElementsAre(1)) << "CUDA ends the list at what it doesn't know";
}

TEST(DeviceProbe, without_a_driver_it_says_which_is_needed) {
    const Variable driver("LOCKSTEP_DOUBLE_DRIVER", "none");
    EXPECT_THAT(reason_without_gpus(), AllOf(HasSubstr("no NVIDIA driver is installed"), HasSubstr("CUDA 13.0 needs"),
                                             HasSubstr("--backend cpu")));
}

TEST(DeviceProbe, of_an_old_driver_it_says_what_it_is_for) {
    const Variable driver("LOCKSTEP_DOUBLE_DRIVER", "12020");
    EXPECT_THAT(reason_without_gpus(), AllOf(HasSubstr("too old"), HasSubstr("for CUDA 12.2"), HasSubstr("580")));
}

TEST(DeviceProbe, when_all_are_hidden_it_says_by_what) {
    const Variable visible("CUDA_VISIBLE_DEVICES", "");
    EXPECT_THAT(reason_without_gpus(), HasSubstr("no GPU is visible (CUDA_VISIBLE_DEVICES=)"));
}

TEST(DeviceProbe, mig_instances_are_told_from_gpus) {
    const Variable mig("LOCKSTEP_DOUBLE_MIG", "1");
    const auto gpus = probe_devices();
    EXPECT_TRUE(gpus.at(0).is_mig);
    EXPECT_TRUE(gpus.at(0).uuid.starts_with("MIG-"));
}

TEST(DeviceProbe, other_failures_name_call_and_place) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "cudaGetDeviceProperties:1:999");
    EXPECT_THAT(reason_without_gpus(), AllOf(HasSubstr("cudaGetDeviceProperties failed: 999 cudaErrorUnknown"),
                                             HasSubstr("device_probe.cpp:")));
}

TEST(DeviceProbe, the_numa_node_is_the_systems_or_else_the_drivers) {
    const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "device_probe" / "0000:3b:00.0";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "numa_node") << "1\n";
    EXPECT_EQ(pci_numa_node("0000:3b:00.0", folder.parent_path()), 1);
    EXPECT_EQ(pci_numa_node("0000:3c:00.0", folder.parent_path()), -1);
    const Variable devices("LOCKSTEP_DOUBLE_DEVICES", "2"), numa("LOCKSTEP_DOUBLE_NUMA", "0,1");
    EXPECT_EQ(probe_devices().at(1).numa_node, 1);
}

TEST(Numa, a_rank_far_from_its_gpu_is_warned_and_no_other) {
    GpuFacts gpu;
    gpu.pci_bus_id = "0000:3b:00.0";
    gpu.numa_node = 1;
    EXPECT_THAT(numa_warning(gpu, {0}),
                AllOf(HasSubstr("NUMA node 0"), HasSubstr("0000:3b:00.0"), HasSubstr("--cpunodebind=1")));
    EXPECT_EQ(numa_warning(gpu, {1}), "");
    EXPECT_EQ(numa_warning(gpu, {0, 1}), "");  // not bound
    EXPECT_EQ(numa_warning(gpu, {}), "");
    gpu.numa_node = -1;
    EXPECT_EQ(numa_warning(gpu, {0}), "");
}

TEST(Numa, nodes_are_those_of_the_cores_this_process_may_use) {
    const std::filesystem::path nodes = std::filesystem::path(::testing::TempDir()) / "numa_nodes";
    for (const auto& [node, cores] : {std::pair{"node0", "0-1023"}, {"node1", "1024-1025"}, {"node2", ""}}) {
        std::filesystem::create_directories(nodes / node);
        std::ofstream(nodes / node / "cpulist") << cores << "\n";
    }
    std::filesystem::create_directories(nodes / "power");
    EXPECT_THAT(allowed_numa_nodes(nodes), ::testing::ElementsAre(0));
    EXPECT_TRUE(allowed_numa_nodes(nodes / "absent").empty());
}

TEST(Numa, the_backend_warns_of_the_rank_it_runs_in) {
    if (allowed_numa_nodes().empty()) GTEST_SKIP() << "this system tells of no NUMA nodes";
    const Variable numa("LOCKSTEP_DOUBLE_NUMA", "1000");
    EXPECT_THAT(GpuBackend().binding_warning(0), HasSubstr("on node 1000"));
}

TEST(Provenance, holds_driver_versions_gpus_and_nccl_variables_only) {
    const Variable nccl("NCCL_ALGO", "Ring"), secret("LOCKSTEP_TEST_TOKEN", "secret");
    GpuBackend backend;
    const auto provenance = backend.provenance();
    std::set<std::string> keys;
    for (const auto& [key, value] : provenance) {
        EXPECT_EQ(value.find("secret"), std::string::npos);
        if (!key.starts_with("env.NCCL_")) keys.insert(key);
    }
    EXPECT_THAT(keys, ::testing::ElementsAre("gpu0", "gpu_libraries", "nvidia_driver", "nvidia_driver_cuda"));
    EXPECT_EQ(provenance.at("env.NCCL_ALGO"), "Ring");
    EXPECT_EQ(provenance.at("nvidia_driver_cuda"), "13.0");
    EXPECT_THAT(provenance.at("gpu_libraries"), HasSubstr("CUDA 13.0, cuBLASLt"));
}

TEST(Provenance, without_a_driver_says_so) {
    const Variable driver("LOCKSTEP_DOUBLE_DRIVER", "none");
    GpuBackend backend;
    const auto provenance = backend.provenance();
    EXPECT_EQ(provenance.at("nvidia_driver_cuda"), "none");
    EXPECT_THAT(provenance.at("nvidia_driver"), HasSubstr("Driver Not Loaded"));
    EXPECT_THAT(provenance.at("gpu0"), HasSubstr("no NVIDIA driver"));
}

}  // namespace
}  // namespace lockstep::gpu::testing
