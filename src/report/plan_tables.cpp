#include "report/plan_tables.hpp"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lockstep::report {

namespace {

/// What the ops of one kind in one phase add up to over a step of a rank.
struct Work {
    std::int64_t ops = 0;
    Flops flops;
    Bytes bytes;
    Seconds host_time;
};
using WorkByKind = std::map<std::pair<step::Phase, std::string>, Work>;

/// One communication op: how often it is issued in a step.
struct Sent {
    const step::Op* op = nullptr;
    std::int64_t times = 0;
};

struct Summary {
    WorkByKind work;
    std::vector<Sent> sent;  // in order of first issue
};

Summary summarise(const step::StepGraph& graph, const step::RankClass& rank_class) {
    Summary summary;
    std::map<std::int32_t, std::size_t> known;
    step::for_each_op(graph, rank_class.program, [&](const step::OpInstance& instance) {
        const step::Op& op = *instance.op;
        Work& work = summary.work[{op.phase, std::string(step::kind_name(op))}];
        ++work.ops;
        work.flops += op.flops;
        work.bytes += op.bytes;
        work.host_time += op.host_time;
        if (!step::is_communication(op)) return;
        const auto [place, is_new] = known.try_emplace(instance.number, summary.sent.size());
        if (is_new) summary.sent.push_back({&op, 0});
        ++summary.sent[place->second].times;
    });
    return summary;
}

std::string communicator_of(const step::StepGraph& graph, const step::Op& op) {
    const auto* collective = std::get_if<step::Collective>(&op.kind);
    const auto id = collective ? collective->communicator : std::get<step::P2PGroup>(op.kind).communicator;
    return graph.communicators[id.index()].name;
}

std::string dtype_of(const step::Op& op) {
    const auto* collective = std::get_if<step::Collective>(&op.kind);
    return collective ? std::string(to_string(collective->dtype)) : "";
}

/// "weights, 4 x (forward, backward), optimizer": a run of equal micro-batches is written once.
std::string format_issues(const step::StepGraph& graph, const step::Program& program) {
    std::string text;
    std::size_t i = 0;
    auto name = [&](std::size_t at) -> const std::string& { return graph.block(program.issues[at].block).name; };
    auto append = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    while (i < program.issues.size()) {
        // The shortest group of issues from here that comes again.
        std::size_t length = 1, times = 1;
        for (std::size_t n = 1; n <= 4 && i + 2 * n <= program.issues.size() && times == 1; ++n) {
            auto repeats = [&](std::size_t start) {
                if (start + n > program.issues.size()) return false;
                for (std::size_t k = 0; k < n; ++k)
                    if (program.issues[start + k].block != program.issues[i + k].block) return false;
                return true;
            };
            while (repeats(i + times * n)) ++times;
            if (times > 1) length = n;
        }
        std::string group = name(i);
        for (std::size_t k = 1; k < length; ++k) group += ", " + name(i + k);
        append(times == 1 ? group : fmt::format("{} x ({})", times, group));
        i += length * times;
    }
    return text;
}

void append_class(const step::StepGraph& graph, const step::RankClass& rank_class, std::string& text) {
    const Summary summary = summarise(graph, rank_class);
    text += fmt::format("\nclass {} ({} ranks): {}\n", rank_class.name, rank_class.multiplicity,
                        format_issues(graph, rank_class.program));
    text +=
        fmt::format("  {:<14} {:<18} {:>7} {:>12} {:>12} {:>10}\n", "phase", "kind", "ops", "Gflop", "MB", "host ms");
    for (const auto& [key, work] : summary.work)
        text +=
            fmt::format("  {:<14} {:<18} {:>7} {:>12.3f} {:>12.3f} {:>10.3f}\n", step::to_string(key.first), key.second,
                        work.ops, work.flops.value * 1e-9, work.bytes.value * 1e-6, work.host_time.value * 1e3);
    if (summary.sent.empty()) {
        text += "  no communication\n";
        return;
    }
    text += fmt::format("  {:<28} {:<16} {:<14} {:>6} {:>12} {:>6}\n", "message", "kind", "communicator", "dtype", "MB",
                        "times");
    for (const Sent& sent : summary.sent)
        text +=
            fmt::format("  {:<28} {:<16} {:<14} {:>6} {:>12.3f} {:>6}\n", sent.op->name, step::kind_name(*sent.op),
                        communicator_of(graph, *sent.op), dtype_of(*sent.op), sent.op->bytes.value * 1e-6, sent.times);
}

config::Json class_json(const step::StepGraph& graph, const step::RankClass& rank_class) {
    const Summary summary = summarise(graph, rank_class);
    config::Json json = config::Json::object();
    json.set("name", rank_class.name);
    json.set("multiplicity", rank_class.multiplicity);
    json.set("issues", format_issues(graph, rank_class.program));
    config::Json& all_work = json.set("work", config::Json::array());
    for (const auto& [key, work] : summary.work) {
        config::Json& entry = all_work.push(config::Json::object());
        entry.set("phase", step::to_string(key.first));
        entry.set("kind", key.second);
        entry.set("ops", work.ops);
        entry.set("flops", work.flops.value);
        entry.set("bytes", work.bytes.value);
        entry.set("host_s", work.host_time.value);
    }
    config::Json& messages = json.set("communication", config::Json::array());
    for (const Sent& sent : summary.sent) {
        config::Json& entry = messages.push(config::Json::object());
        entry.set("op", sent.op->name);
        entry.set("kind", step::kind_name(*sent.op));
        entry.set("communicator", communicator_of(graph, *sent.op));
        entry.set("dtype", dtype_of(*sent.op));
        entry.set("bytes", sent.op->bytes.value);
        entry.set("times", sent.times);
    }
    return json;
}

std::string peak_op(const step::StepGraph& graph, const step::MemoryPlan& memory) {
    return memory.peak_op < 0 ? "" : graph.op(memory.peak_op).name;
}

}  // namespace

std::string format_plan(const step::StepGraph& graph, const step::MemoryPlan& memory) {
    const plan::Mesh& mesh = graph.mesh;
    std::string text = fmt::format(
        "{}, {}: {} ranks (dp {} tp {} pp {} cp {} ep {}), {} per node\n"
        "global batch {} = dp {} x micro-batch {} x accumulation {}\n"
        "{} ops, {} tensors; {:.3f} Tflop of the model per rank and step\n",
        graph.name, to_string(graph.precision), mesh.ranks(), mesh.dp, mesh.tp, mesh.pp, mesh.cp, mesh.ep,
        graph.placement.ranks_per_node, graph.global_batch, mesh.dp, graph.micro_batch, graph.micro_batches,
        graph.op_count(), graph.tensors.size(), graph.model_flops.value * 1e-12);
    for (const step::RankClass& rank_class : graph.classes) append_class(graph, rank_class, text);
    const step::MemoryUse& peak = memory.peak;
    text += fmt::format("\nmemory per rank (MB), at its peak in {}\n", peak_op(graph, memory));
    const std::pair<const char*, Bytes> rows[] = {{"parameters", peak.parameters}, {"gradients", peak.gradients},
                                                  {"optimizer", peak.optimizer},   {"activations", peak.activations},
                                                  {"workspace", peak.workspace},   {"total", peak.total}};
    for (const auto& [name, bytes] : rows) text += fmt::format("  {:<14} {:>12.3f}\n", name, bytes.value * 1e-6);
    if (memory.arena_bytes > 0)
        text += fmt::format("  {:<14} {:>12.3f}\n", "arena", static_cast<double>(memory.arena_bytes) * 1e-6);
    return text;
}

config::Json plan_json(const step::StepGraph& graph, const step::MemoryPlan& memory) {
    config::Json json = config::Json::object();
    json.set("name", graph.name);
    json.set("precision", to_string(graph.precision));
    config::Json& mesh = json.set("mesh", config::Json::object());
    for (const plan::Axis axis : {plan::Axis::dp, plan::Axis::tp, plan::Axis::pp, plan::Axis::cp, plan::Axis::ep})
        mesh.set(plan::to_string(axis), graph.mesh.extent(axis));
    json.set("ranks_per_node", graph.placement.ranks_per_node);
    json.set("global_batch", graph.global_batch);
    json.set("micro_batch", graph.micro_batch);
    json.set("accumulation", graph.micro_batches);
    json.set("ops", graph.op_count());
    json.set("tensors", graph.tensors.size());
    json.set("model_flops", graph.model_flops.value);
    config::Json& classes = json.set("classes", config::Json::array());
    for (const step::RankClass& rank_class : graph.classes) classes.push(class_json(graph, rank_class));
    config::Json& use = json.set("memory_bytes_per_rank", config::Json::object());
    use.set("parameters", memory.peak.parameters.value);
    use.set("gradients", memory.peak.gradients.value);
    use.set("optimizer", memory.peak.optimizer.value);
    use.set("activations", memory.peak.activations.value);
    use.set("workspace", memory.peak.workspace.value);
    use.set("total", memory.peak.total.value);
    json.set("arena_bytes", memory.arena_bytes);
    json.set("peak_op", peak_op(graph, memory));
    return json;
}

}  // namespace lockstep::report
