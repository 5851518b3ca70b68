// The points in a measurement of a GPU.
#pragma once

#include <vector>

#include "calibrate/points.hpp"
#include "gpu/measurement.hpp"

namespace lockstep::calibrate {

DevicePoints points_of(const gpu::DeviceMeasurement& measured);
std::vector<CollectivePoint> points_of(const gpu::CollectiveMeasurement& measured);

}  // namespace lockstep::calibrate
