// With LOCKSTEP_DOUBLE_NCCL_RESIDENT=1: one NCCL kernel at a time per device, in the order in which streams reach them.
// On a real device that happens when kernels are many or large; programs that hang then are found so.
#pragma once

#include <functional>
#include <memory>

namespace lockstep::nccl_double {

class Place {
public:
    virtual ~Place() = default;  ///< leaves the device to the next
};
/// Waits until the device is free; null when gives_up() became true before. Without the option at once, and nothing to
/// hold.
std::unique_ptr<Place> take_place(int device, const std::function<bool()>& gives_up);

}  // namespace lockstep::nccl_double
