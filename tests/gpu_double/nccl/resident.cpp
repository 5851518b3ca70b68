#include "gpu_double/nccl/resident.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

namespace lockstep::nccl_double {
namespace {

bool one_at_a_time() {
    const char* const value = std::getenv("LOCKSTEP_DOUBLE_NCCL_RESIDENT");
    return value != nullptr && std::strcmp(value, "1") == 0;
}

struct Devices {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<int, std::deque<const Place*>> queues;  // the first is resident
};
Devices& devices() {
    static auto* const all = new Devices;  // outlives the threads of streams
    return *all;
}

class QueuedPlace final : public Place {
public:
    explicit QueuedPlace(int device) : device_(device) {
        const std::lock_guard lock(devices().mutex);
        devices().queues[device_].push_back(this);
    }
    ~QueuedPlace() override {
        const std::lock_guard lock(devices().mutex);
        auto& queue = devices().queues[device_];
        queue.erase(std::find(queue.begin(), queue.end(), this));
        devices().changed.notify_all();
    }
    bool wait(const std::function<bool()>& gives_up) const {
        std::unique_lock lock(devices().mutex);
        while (devices().queues[device_].front() != this) {
            if (gives_up()) return false;
            devices().changed.wait_for(lock, std::chrono::milliseconds(20));
        }
        return true;
    }

private:
    int device_;
};

class Anywhere final : public Place {};

}  // namespace

std::unique_ptr<Place> take_place(int device, const std::function<bool()>& gives_up) {
    if (!one_at_a_time()) return std::make_unique<Anywhere>();
    auto place = std::make_unique<QueuedPlace>(device);
    if (!place->wait(gives_up)) return nullptr;
    return place;
}

}  // namespace lockstep::nccl_double
