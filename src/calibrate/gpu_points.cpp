#include "calibrate/gpu_points.hpp"

#include <fmt/format.h>

namespace lockstep::calibrate {

namespace {

std::string_view name_of(step::Pass pass) {
    switch (pass) {
        case step::Pass::forward: return "forward";
        case step::Pass::backward_data: return "backward data";
        case step::Pass::backward_weights: return "backward weights";
    }
    return "";
}

}  // namespace

DevicePoints points_of(const gpu::DeviceMeasurement& measured) {
    DevicePoints points;
    for (const gpu::ProductRate& p : measured.products) {
        const auto n = static_cast<double>(p.n);
        const Flops work{2 * n * n * n};
        points.products.push_back({"product", fmt::format("{0} x {0} x {0}", p.n), p.math, work, work / p.rate});
    }
    for (const gpu::ConvolutionRate& c : measured.convolutions)
        points.convolutions.push_back({fmt::format("{} {}", c.name, name_of(c.pass)),
                                       fmt::format("{} x {} x {}", c.batch, c.image_size, c.image_size), c.math, c.work,
                                       c.work / c.rate});
    points.memory = measured.add;
    points.kernel_overhead = measured.kernel;
    return points;
}

std::vector<CollectivePoint> points_of(const gpu::CollectiveMeasurement& measured) {
    std::vector<CollectivePoint> points;
    for (const gpu::CollectiveTime& t : measured.times) points.push_back({t.kind, t.buffer, t.time});
    return points;
}

}  // namespace lockstep::calibrate
