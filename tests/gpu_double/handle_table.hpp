// Handles of a double: numbers that are never given twice and point nowhere, so that a stale or foreign one is noticed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace lockstep::gpu_double {

/// `Handle` is a pointer type; tables with different `kind`s have no handle in common.
template <class Handle, class State>
class HandleTable {
public:
    explicit HandleTable(std::uint16_t kind) : next_((std::uint64_t{0xd0} << 56) | (std::uint64_t{kind} << 32)) {}

    Handle add(std::shared_ptr<State> state) {
        const std::lock_guard lock(mutex_);
        states_[++next_] = std::move(state);
        return reinterpret_cast<Handle>(next_);
    }
    /// Null when there is no such handle, or no longer.
    std::shared_ptr<State> find(Handle handle) const {
        const std::lock_guard lock(mutex_);
        const auto found = states_.find(reinterpret_cast<std::uint64_t>(handle));
        return found == states_.end() ? nullptr : found->second;
    }
    std::shared_ptr<State> remove(Handle handle) {
        const std::lock_guard lock(mutex_);
        const auto node = states_.extract(reinterpret_cast<std::uint64_t>(handle));
        return node ? node.mapped() : nullptr;
    }
    std::vector<std::shared_ptr<State>> all() const {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<State>> result;
        for (const auto& [handle, state] : states_) result.push_back(state);
        return result;
    }

private:
    mutable std::mutex mutex_;
    std::uint64_t next_;
    std::map<std::uint64_t, std::shared_ptr<State>> states_;
};

}  // namespace lockstep::gpu_double
