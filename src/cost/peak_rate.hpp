// The peak at which a device can carry out a product of a given multiplier type, or why it can't.
#pragma once

#include "machine/device.hpp"

namespace lockstep::cost {

/// Dense peak of `math` on `device` at the clock it runs at. Throws InputError when the device has no units for it,
/// naming the types it has and the precision to ask for instead: nothing is emulated in silence.
FlopRate peak_rate(const machine::Device& device, MathType math);

}  // namespace lockstep::cost
