#include <fmt/format.h>

#include "config/quantity.hpp"
#include "report/search_tables.hpp"

namespace lockstep::report {

namespace {

using Kind = analysis::Reason::Kind;

double percent(Seconds part, Seconds whole) { return whole > Seconds{} ? 100 * (part / whole) : 0; }

/// What the part alone adds to the best plan's step.
std::string costs(const analysis::Reason& r) {
    return fmt::format("+{:.1f} %", percent(r.part - r.best_part, r.best_total));
}

}  // namespace

std::string reason_text(const analysis::Reason& r) {
    switch (r.kind) {
        case Kind::none: return "";
        case Kind::compute: return fmt::format("kernels {}", costs(r));
        case Kind::recomputation: return fmt::format("recompute {} costs {}", r.recompute, costs(r));
        case Kind::communication:
            return fmt::format("{}exposed communication {}",
                               r.tp_across_nodes > 0 ? fmt::format("tp {} crosses nodes: ", r.tp_across_nodes) : "",
                               costs(r));
        case Kind::bubble:
            return fmt::format("bubble {:.1f} % (best {:.1f} %)", percent(r.part, r.total),
                               percent(r.best_part, r.best_total));
        case Kind::synchronisation: return fmt::format("gradients and parameters {}", costs(r));
        case Kind::optimizer: return fmt::format("optimizer {}", costs(r));
        case Kind::memory: return fmt::format("needs {} of {}", config::format(r.needs), config::format(r.limit));
    }
    return "";
}

}  // namespace lockstep::report
