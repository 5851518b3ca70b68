#include "search/reasons.hpp"

#include <array>
#include <utility>

namespace lockstep::search {

namespace {

using Kind = analysis::Reason::Kind;

bool crosses_nodes(const plan::Plan& plan, const machine::Placement& placement) {
    return plan.mesh.tp > placement.ranks_per_node;
}

}  // namespace

TimeParts parts_of(const analysis::Breakdown& b) {
    TimeParts parts;
    parts.compute = b.compute + b.launch + b.input + b.idle;
    parts.communication = b.exposed_communication + b.wait;
    parts.bubble = b.bubble;
    parts.optimizer = b.optimizer;
    return parts;
}

analysis::Reason why_slower(const Timed& slower, const Timed& best, const machine::Placement& placement) {
    constexpr std::array<std::pair<Kind, Seconds TimeParts::*>, 6> all{
        {{Kind::compute, &TimeParts::compute},
         {Kind::recomputation, &TimeParts::recomputation},
         {Kind::communication, &TimeParts::communication},
         {Kind::bubble, &TimeParts::bubble},
         {Kind::synchronisation, &TimeParts::synchronisation},
         {Kind::optimizer, &TimeParts::optimizer}}};
    analysis::Reason reason;
    reason.total = slower.parts.total();
    reason.best_total = best.parts.total();
    if (reason.total <= reason.best_total) return reason;
    Seconds most;
    for (const auto& [kind, part] : all) {
        const Seconds more = slower.parts.*part - best.parts.*part;
        if (more <= most) continue;
        most = more;
        reason.kind = kind;
        reason.part = slower.parts.*part;
        reason.best_part = best.parts.*part;
    }
    const bool computes_again = slower.plan.split.recompute > best.plan.split.recompute;
    if (reason.kind == Kind::compute && computes_again) reason.kind = Kind::recomputation;
    if (reason.kind == Kind::recomputation) reason.recompute = to_string(slower.plan.split.recompute);
    if (reason.kind == Kind::communication && crosses_nodes(slower.plan, placement) &&
        !crosses_nodes(best.plan, placement))
        reason.tp_across_nodes = slower.plan.mesh.tp;
    return reason;
}

analysis::Reason why_too_large(Bytes needs, Bytes limit) {
    analysis::Reason reason;
    reason.kind = Kind::memory;
    reason.needs = needs;
    reason.limit = limit;
    return reason;
}

}  // namespace lockstep::search
