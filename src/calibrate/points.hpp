// What was measured, as points that constants are fitted through, wherever they come from.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/units.hpp"
#include "step/op.hpp"

namespace lockstep::calibrate {

/// One kernel alone on its device.
struct WorkPoint {
    std::string what;  ///< "product", "layer2 3x3 forward"
    std::string size;  ///< as people say it: "1024 x 1024 x 1024", "64 images"
    MathType math = MathType::fp32;
    Flops work;
    Seconds time;
};

/// One collective over ranks of one node; the buffer as cost::buffer_bytes counts it.
struct CollectivePoint {
    step::CollectiveKind kind = step::CollectiveKind::all_reduce;
    Bytes buffer;
    Seconds time;
};

struct DevicePoints {
    std::vector<WorkPoint> products, convolutions;
    Bandwidth memory;         ///< of a streaming kernel, read and written
    Seconds kernel_overhead;  ///< of a kernel that does next to nothing
};

}  // namespace lockstep::calibrate
