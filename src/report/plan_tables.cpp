#include "report/plan_tables.hpp"

#include <algorithm>
#include <map>
#include <tuple>
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

/// Messages whose names differ in numbers only, taken together.
struct Alike {
    std::string name;  ///< with * for numbers that differ
    std::string kind, communicator, dtype;
    std::int64_t times = 0;
    Bytes most, total;
    const step::Op* largest = nullptr;
};

std::string without_numbers(const std::string& name) {
    std::string pattern;
    for (const char c : name)
        if (!(c >= '0' && c <= '9'))
            pattern += c;
        else if (pattern.empty() || pattern.back() != '*')
            pattern += '*';
    return pattern;
}

std::vector<Alike> group_alike(const step::StepGraph& graph, const std::vector<Sent>& sent) {
    std::vector<Alike> groups;
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
    for (const Sent& one : sent) {
        const std::string pattern = without_numbers(one.op->name);
        const auto [place, is_new] =
            known.try_emplace({pattern, communicator_of(graph, *one.op), dtype_of(*one.op)}, groups.size());
        if (is_new)
            groups.push_back({one.op->name, std::string(step::kind_name(*one.op)), communicator_of(graph, *one.op),
                              dtype_of(*one.op), 0, Bytes{}, Bytes{}});
        else
            groups[place->second].name = pattern;
        Alike& group = groups[place->second];
        group.times += one.times;
        if (group.largest == nullptr || group.most < one.op->bytes) group.largest = one.op;
        group.most = std::max(group.most, one.op->bytes);
        group.total += static_cast<double>(one.times) * one.op->bytes;
    }
    return groups;
}

/// True when two classes do the same work in the same order.
bool is_alike(const Summary& a, const Summary& b) {
    return std::equal(a.work.begin(), a.work.end(), b.work.begin(), b.work.end(), [](const auto& x, const auto& y) {
        return x.first == y.first && x.second.ops == y.second.ops && x.second.flops == y.second.flops &&
               x.second.bytes == y.second.bytes;
    });
}

/// "ring ll128"; "" where it isn't known or is a message.
std::string algorithm_of(const PlanView& view, const step::RankClass& rank_class, const step::Op& op) {
    const auto* collective = std::get_if<step::Collective>(&op.kind);
    return collective != nullptr && view.algorithm_of ? view.algorithm_of(rank_class, *collective) : "";
}

void append_class(const PlanView& view, const step::RankClass& rank_class, const Summary& summary, std::string& text) {
    const step::StepGraph& graph = view.graph;
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
    const std::vector<Alike> alike = group_alike(graph, summary.sent);
    text += fmt::format("  {:<42} {:<16} {:<14} {:>6} {:>6} {:>12} {:>12}{}\n", "message", "kind", "communicator",
                        "dtype", "times", "largest MB", "MB in all", view.algorithm_of ? "   largest by" : "");
    for (const Alike& group : alike) {
        const std::string algorithm = algorithm_of(view, rank_class, *group.largest);
        text += fmt::format("  {:<42} {:<16} {:<14} {:>6} {:>6} {:>12.3f} {:>12.3f}{}{}\n", group.name, group.kind,
                            group.communicator, group.dtype, group.times, group.most.value * 1e-6,
                            group.total.value * 1e-6, algorithm.empty() ? "" : "   ", algorithm);
    }
}

config::Json memory_json(const step::MemoryUse& use) {
    config::Json json = config::Json::object();
    json.set("parameters", use.parameters.value);
    json.set("gradients", use.gradients.value);
    json.set("optimizer", use.optimizer.value);
    json.set("activations", use.activations.value);
    json.set("workspace", use.workspace.value);
    json.set("total", use.total.value);
    return json;
}

std::string passes_text(const plan::ShortenedPasses& passes) {
    return fmt::format("{} passes, from steps of {} and {}", passes.all, passes.fewer, passes.more);
}

std::string peak_op(const step::StepGraph& graph, const step::MemoryPlan& memory) {
    return memory.peak_op < 0 ? "" : graph.op(memory.peak_op).name;
}

config::Json class_json(const PlanView& view, const step::RankClass& rank_class, const step::MemoryPlan& memory) {
    const step::StepGraph& graph = view.graph;
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
        const std::string algorithm = algorithm_of(view, rank_class, *sent.op);
        if (!algorithm.empty()) entry.set("algorithm", algorithm);
    }
    json.set("memory_bytes_per_rank", memory_json(memory.peak));
    json.set("peak_op", peak_op(graph, memory));
    return json;
}

/// Where a communicator's first group lies.
struct Reach {
    std::vector<int> ranks;
    int nodes = 1;
    int per_node = 1;  ///< ranks of it on its fullest node
};

Reach reach_of(const step::StepGraph& graph, const step::Communicator& communicator) {
    Reach reach{step::members(graph.mesh, communicator, 0), 0, 0};
    std::map<int, int> on_node;
    for (const int rank : reach.ranks)
        reach.per_node = std::max(reach.per_node, ++on_node[graph.placement.node_of(rank)]);
    reach.nodes = static_cast<int>(on_node.size());
    return reach;
}

/// NICs a communicator's traffic leaves a node by, when all groups of its kind share them evenly.
double nics_of(const PlanView& view, const Reach& reach) {
    return static_cast<double>(view.nics_per_node) * reach.per_node / view.graph.placement.ranks_per_node;
}

std::string format_ranks(const std::vector<int>& ranks) {
    if (ranks.size() <= 4) return fmt::format("{}", fmt::join(ranks, " "));
    return fmt::format("{} {} {} ... {}", ranks[0], ranks[1], ranks[2], ranks.back());
}

std::string format_communicators(const PlanView& view) {
    if (view.graph.communicators.empty()) return "";
    std::string text = fmt::format("\n  {:<14} {:>6} {:>6} {:>14}   {}\n", "communicator", "ranks", "nodes",
                                   "NICs a node", "first group");
    for (const step::Communicator& communicator : view.graph.communicators) {
        const Reach reach = reach_of(view.graph, communicator);
        const std::string nics = reach.nodes < 2           ? "-"
                                 : view.nics_per_node == 0 ? "?"
                                                           : fmt::format("{:.3g}", nics_of(view, reach));
        text += fmt::format("  {:<14} {:>6} {:>6} {:>14}   {}\n", communicator.name, communicator.size, reach.nodes,
                            nics, format_ranks(reach.ranks));
    }
    return text;
}

const step::MemoryPlan& largest(const std::vector<step::MemoryPlan>& memory) {
    return *std::max_element(memory.begin(), memory.end(), [](const step::MemoryPlan& x, const step::MemoryPlan& y) {
        return x.peak.total < y.peak.total;
    });
}

std::string format_memory(const PlanView& view) {
    std::string text =
        fmt::format("\nmemory per rank at its peak (MB)\n  {:<12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}   {}\n",
                    "class", "parameters", "gradients", "optimizer", "activations", "workspace", "total", "peak in");
    for (std::size_t i = 0; i < view.memory.size(); ++i) {
        const step::MemoryUse& peak = view.memory[i].peak;
        text += fmt::format("  {:<12}", view.graph.classes[i].name);
        for (const Bytes bytes :
             {peak.parameters, peak.gradients, peak.optimizer, peak.activations, peak.workspace, peak.total})
            text += fmt::format(" {:>12.3f}", bytes.value * 1e-6);
        text += "   " + peak_op(view.graph, view.memory[i]) + "\n";
    }
    if (view.memory_passes) text += "  " + passes_text(*view.memory_passes) + "\n";
    if (!(view.capacity.value > 0)) return text;
    const Bytes most = largest(view.memory).peak.total;
    text += fmt::format("  {} has {:.1f} GiB: {}", view.device, view.capacity / Bytes{1073741824},
                        most <= view.capacity ? "the step fits" : "THE STEP DOES NOT FIT");
    if (view.largest_micro_batch)
        text += *view.largest_micro_batch == 0
                    ? "; not even a micro-batch of 1 does"
                    : fmt::format("; the largest micro-batch that fits is {}", *view.largest_micro_batch);
    return text + "\n";
}

}  // namespace

std::string format_plan(const PlanView& view) {
    const step::StepGraph& graph = view.graph;
    const plan::Mesh& mesh = graph.mesh;
    std::string text = fmt::format(
        "{}, {}: {} ranks (tp {} cp {} ep {} dp {}{} pp {}), {} per node\n"
        "global batch {} = replicas {} x micro-batch {} x accumulation {}\n"
        "{} ops, {} tensors; {:.3f} Tflop of the model per rank and step\n",
        graph.name, to_string(graph.precision), mesh.ranks(), mesh.tp, mesh.cp, mesh.ep, mesh.dp,
        mesh.replica > 1 ? fmt::format(" replica {}", mesh.replica) : "", mesh.pp, graph.placement.ranks_per_node,
        graph.global_batch, mesh.replicas(), graph.micro_batch, graph.micro_batches, graph.op_count(),
        graph.tensors.size(), graph.model_flops.value * 1e-12);
    Summary before;
    for (std::size_t i = 0; i < graph.classes.size(); ++i) {
        Summary summary = summarise(graph, graph.classes[i]);
        if (i > 0 && is_alike(summary, before))
            text += fmt::format("\nclass {} ({} ranks): the work of {}\n", graph.classes[i].name,
                                graph.classes[i].multiplicity, graph.classes[i - 1].name);
        else
            append_class(view, graph.classes[i], summary, text);
        before = std::move(summary);
    }
    return text + format_communicators(view) + format_memory(view);
}

config::Json plan_json(const PlanView& view) {
    const step::StepGraph& graph = view.graph;
    config::Json json = config::Json::object();
    json.set("name", graph.name);
    json.set("precision", to_string(graph.precision));
    config::Json& mesh = json.set("mesh", config::Json::object());
    for (const plan::Axis axis :
         {plan::Axis::tp, plan::Axis::cp, plan::Axis::ep, plan::Axis::dp, plan::Axis::replica, plan::Axis::pp})
        mesh.set(plan::to_string(axis), graph.mesh.extent(axis));
    json.set("ranks_per_node", graph.placement.ranks_per_node);
    json.set("global_batch", graph.global_batch);
    json.set("micro_batch", graph.micro_batch);
    json.set("accumulation", graph.micro_batches);
    json.set("ops", graph.op_count());
    json.set("tensors", graph.tensors.size());
    json.set("model_flops", graph.model_flops.value);
    config::Json& communicators = json.set("communicators", config::Json::array());
    for (const step::Communicator& communicator : graph.communicators) {
        const Reach reach = reach_of(graph, communicator);
        config::Json& entry = communicators.push(config::Json::object());
        entry.set("name", communicator.name);
        entry.set("ranks", communicator.size);
        entry.set("nodes", reach.nodes);
        entry.set("nics", reach.nodes < 2 ? 0.0 : nics_of(view, reach));
    }
    config::Json& classes = json.set("classes", config::Json::array());
    for (std::size_t i = 0; i < graph.classes.size(); ++i)
        classes.push(class_json(view, graph.classes[i], view.memory[i]));
    const step::MemoryPlan& most = largest(view.memory);
    json.set("memory_bytes_per_rank", memory_json(most.peak));
    json.set("peak_op", peak_op(graph, most));
    if (view.memory_passes) json.set("memory_passes", passes_text(*view.memory_passes));
    if (!view.device.empty()) json.set("device", view.device);
    if (view.capacity.value > 0) json.set("capacity_bytes", view.capacity.value);
    if (view.largest_micro_batch) json.set("largest_micro_batch", *view.largest_micro_batch);
    return json;
}

}  // namespace lockstep::report
