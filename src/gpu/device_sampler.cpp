#include "gpu/device_sampler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "gpu/nvml.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu {

struct DeviceSampler::State {
    NvmlDevice device;
    Nanoseconds epoch;
    std::chrono::duration<double> interval;
    std::mutex mutex;  // never held while NVML is asked
    std::condition_variable changed;
    std::optional<step::DeviceSample> latest;
    bool is_told_to_end = false, has_ended = false;

    State(NvmlDevice asked, Nanoseconds times_count_from, Seconds between)
        : device(std::move(asked)), epoch(times_count_from), interval(between.value) {}

    void run() {
        std::unique_lock lock(mutex);
        while (!is_told_to_end) {
            lock.unlock();
            const Nanoseconds begin = world::steady_now() - epoch;
            step::DeviceSample sample = device.sample();
            sample.time = begin;
            lock.lock();
            latest = std::move(sample);
            changed.wait_for(lock, interval, [this] { return is_told_to_end; });
        }
        has_ended = true;
        changed.notify_all();
    }
};

DeviceSampler::DeviceSampler(const std::string& pci_bus_id, Nanoseconds epoch, Seconds interval) {
    std::string why;
    std::optional<NvmlDevice> device = Nvml().device(pci_bus_id, why);
    if (!device) {
        description_ = "none: " + why;
        return;
    }
    std::vector<std::string> untold;
    device->sample(&untold);
    description_ = fmt::format("every {:g} ms, by NVML", interval.value * 1e3);
    if (!untold.empty()) description_ += fmt::format("; not told: {}", fmt::join(untold, ", "));
    state_ = std::make_shared<State>(std::move(*device), epoch, interval);
}

DeviceSampler::~DeviceSampler() {
    if (!thread_.joinable()) return;
    std::unique_lock lock(state_->mutex);
    state_->is_told_to_end = true;
    state_->changed.notify_all();
    const bool has_ended =
        state_->changed.wait_for(lock, std::chrono::seconds(1), [this] { return state_->has_ended; });
    lock.unlock();
    if (has_ended)
        thread_.join();
    else
        thread_.detach();
}

void DeviceSampler::start() {
    if (state_ && !thread_.joinable()) thread_ = std::thread([state = state_] { state->run(); });
}

std::optional<step::DeviceSample> DeviceSampler::latest(Nanoseconds since) const {
    if (!state_) return std::nullopt;
    const std::lock_guard lock(state_->mutex);
    return state_->latest && state_->latest->time >= since ? state_->latest : std::nullopt;
}

}  // namespace lockstep::gpu
