#include <array>

#include "report/search_tables.hpp"

namespace lockstep::report {

namespace {

using config::Json;
using Kind = analysis::Reason::Kind;

constexpr std::array<const char*, 8> kinds{"none",   "compute",         "recomputation", "communication",
                                           "bubble", "synchronisation", "optimizer",     "memory"};

Json reason_json(const analysis::Reason& reason) {
    if (reason.kind == Kind::none) return {};
    Json json = Json::object();
    json.set("kind", kinds.at(static_cast<std::size_t>(reason.kind)));
    json.set("text", reason_text(reason));
    if (reason.kind == Kind::memory) {
        json.set("needs_bytes", reason.needs.value);
        json.set("limit_bytes", reason.limit.value);
    } else {
        json.set("part_s", reason.part.value);
        json.set("best_part_s", reason.best_part.value);
    }
    return json;
}

Json plans_json(const std::vector<analysis::RankedPlan>& plans) {
    Json all = Json::array();
    for (const analysis::RankedPlan& plan : plans) {
        Json json = Json::object();
        json.set("plan", plan.plan);
        json.set("estimate_s", plan.estimate ? Json(plan.estimate->value) : Json());
        json.set("reason", reason_json(plan.reason));
        json.set("result", result_json(plan.run));
        all.push(json);
    }
    return all;
}

Json axes_json(const std::vector<analysis::AxisValue>& axes) {
    Json all = Json::array();
    for (const analysis::AxisValue& one : axes) {
        Json json = Json::object();
        json.set("axis", one.axis);
        json.set("value", one.value);
        json.set("plan", one.plan.empty() ? Json() : Json(one.plan));
        json.set("step_time_s", one.time ? Json(one.time->value) : Json());
        json.set("is_estimate", one.is_estimate);
        json.set("reason", reason_json(one.reason));
        all.push(json);
    }
    return all;
}

Json counts_json(const analysis::SearchFindings& findings) {
    const analysis::SearchCounts& n = findings.counts;
    Json json = Json::object();
    json.set("status", findings.is_complete ? "complete" : "stopped");
    json.set("limit_bytes", findings.limit.value);
    json.set("limit_source", findings.limit_source);
    Json space = Json::array();
    for (const auto& line : findings.space) space.push(line);
    json.set("space", space);
    json.set("exhaustive", findings.is_exhaustive);
    json.set("why_exhaustive", findings.why_exhaustive.empty() ? Json() : Json(findings.why_exhaustive));
    json.set("combinations", n.combinations);
    json.set("plans", n.plans);
    json.set("above_memory", n.above_memory);
    json.set("above_bound", n.above_bound);
    json.set("estimated", n.estimated);
    json.set("simulated", n.simulated);
    json.set("small_graphs", n.small_graphs);
    json.set("left_within_margin", n.left_within_margin);
    json.set("margin", findings.margin);
    return json;
}

}  // namespace

config::Json search_json(const std::vector<analysis::SearchFindings>& searches) {
    Json warnings = Json::array(), results = Json::array();
    for (const analysis::SearchFindings& findings : searches) {
        if (!findings.is_complete) warnings.push("the search was stopped: its result is what it had found");
        Json result = Json::object();
        result.set("experiment", findings.experiment);
        result.set("label", findings.label);
        result.set("search", counts_json(findings));
        result.set("ranking", plans_json(findings.ranking));
        result.set("front", plans_json(findings.front));
        result.set("axes", axes_json(findings.axes));
        results.push(result);
    }
    Json json = Json::object();
    json.set("schema_version", 1);
    json.set("warnings", warnings);
    json.set("results", results);
    return json;
}

}  // namespace lockstep::report
