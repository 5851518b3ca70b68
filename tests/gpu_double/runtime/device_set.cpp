#include "gpu_double/runtime/device_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>

#include "gpu_double/control.hpp"

namespace lockstep::gpu_double {
namespace {

std::string text_of(const cudaUUID_t& uuid, bool mig) {
    std::string text = mig ? "MIG-" : "GPU-";
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
    }
    return text;
}

std::optional<Device> named(const std::vector<Device>& all, const std::string& entry) {
    int ordinal = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), ordinal);
    if (error == std::errc{} && end == entry.data() + entry.size()) {
        if (ordinal < 0 || ordinal >= static_cast<int>(all.size())) return std::nullopt;
        return all[static_cast<std::size_t>(ordinal)];
    }
    for (const Device& device : all)
        if (entry.size() > 4 && device.uuid_text.starts_with(entry)) return device;  // a prefix will do
    return std::nullopt;
}

std::vector<Device> list_all(const Controls& controls) {
    std::vector<Device> devices;
    for (int number = 0; number < controls.devices; ++number) {
        Device device{number, {}, {}, 0xd0b1, number + 10};
        std::memcpy(device.uuid.bytes, "test double GPU", 15);
        device.uuid.bytes[3] = static_cast<char>(number);  // among the digits that people shorten a UUID to
        device.uuid_text = text_of(device.uuid, controls.mig);
        devices.push_back(device);
    }
    return devices;
}

std::vector<Device> list_visible(const Controls& controls) {
    const std::vector<Device> all = list_all(controls);
    if (!controls.visible) return all;
    std::vector<Device> visible;
    std::istringstream entries(*controls.visible);
    for (std::string entry; std::getline(entries, entry, ',');) {
        const auto device = named(all, entry);
        if (!device) break;
        if (std::any_of(visible.begin(), visible.end(), [&](const Device& d) { return d.number == device->number; }))
            break;
        visible.push_back(*device);
    }
    return visible;
}

/// The lists, until the controls change.
struct Lists {
    std::shared_ptr<const Controls> valid_for;
    std::shared_ptr<const std::vector<Device>> all, visible;
};
Lists current_lists() {
    static std::mutex& mutex = *new std::mutex;
    static Lists& lists = *new Lists;
    const std::lock_guard lock(mutex);
    if (const auto now = controls(); now != lists.valid_for) {
        lists.all = std::make_shared<const std::vector<Device>>(list_all(*now));
        lists.visible = std::make_shared<const std::vector<Device>>(list_visible(*now));
        lists.valid_for = now;
    }
    return lists;
}

}  // namespace

std::string pci_bus_id(const Device& device) {
    return fmt::format("{:04X}:{:02X}:00.0", device.pci_domain, device.pci_bus);
}

std::shared_ptr<const std::vector<Device>> all_devices() { return current_lists().all; }

std::shared_ptr<const std::vector<Device>> visible_devices() { return current_lists().visible; }

}  // namespace lockstep::gpu_double
