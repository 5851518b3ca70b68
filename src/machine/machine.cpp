#include "machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::machine {

Placement Machine::place(int ranks) const {
    if (ranks < 1)
        throw InputError(fmt::format("{} ranks on {} (at least 1 is needed); use 1 to {}", ranks, name, devices()));
    if (ranks > devices())
        throw InputError(
            fmt::format("{} ranks do not fit {} ({} of {} = {}); use at most {} ranks, or a machine "
                        "{{node: NAME, count: {}, network: NAME}}",
                        ranks, name, nodes == 1 ? "1 node" : fmt::format("{} nodes", nodes),
                        devices_per_node() == 1 ? "1 device" : fmt::format("{} devices", devices_per_node()), devices(),
                        devices(), (ranks + devices_per_node() - 1) / devices_per_node()));
    return {ranks, std::min(ranks, devices_per_node())};
}

}  // namespace lockstep::machine
