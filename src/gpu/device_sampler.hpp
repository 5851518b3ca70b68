// Looks at a GPU's clocks, power and temperature again and again while steps run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/time.hpp"
#include "base/units.hpp"
#include "step/device_sample.hpp"

namespace lockstep::gpu {

/// NVML answers within tens of microseconds to a millisecond, so a thread of its own asks; nobody waits for an answer.
/// Without NVML there are no samples, and description() says why.
class DeviceSampler {
public:
    /// Looks the GPU up by "0000:3b:00.0". `epoch` is on world::steady_now(): times of samples count from there.
    DeviceSampler(const std::string& pci_bus_id, Nanoseconds epoch, Seconds interval = Seconds{0.1});
    /// A thread that NVML doesn't answer within a second is left behind.
    ~DeviceSampler();
    DeviceSampler(const DeviceSampler&) = delete;
    DeviceSampler& operator=(const DeviceSampler&) = delete;

    bool has_device() const { return state_ != nullptr; }
    /// "every 100 ms, by NVML; not told: power: Not Supported", or "none: " and why.
    const std::string& description() const { return description_; }
    /// From the first call on samples are taken.
    void start();
    /// The latest sample that is complete, unless it was begun before `since`.
    std::optional<step::DeviceSample> latest(Nanoseconds since) const;

private:
    struct State;
    std::shared_ptr<State> state_;  // the thread has it too
    std::thread thread_;
    std::string description_;
};

}  // namespace lockstep::gpu
