// The Backend of this module.
#pragma once

#include "gpu/backend.hpp"

namespace lockstep::gpu {

class GpuBackend final : public Backend {
public:
    std::vector<GpuFacts> devices() override;
    int choose_device(world::World& world) override;
    std::string binding_warning(int ordinal) override;
    std::unique_ptr<step::Executor> executor(world::World& world, const GpuOptions& options) override;
    GpuLinks links(int ordinal) override;
    DeviceMeasurement measure(int ordinal) override;
    CollectiveMeasurement measure_collectives(world::World& world, int ordinal) override;
    std::string versions() override;
    std::map<std::string, std::string> provenance() override;
};

}  // namespace lockstep::gpu
