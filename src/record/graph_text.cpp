#include "record/graph_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "record/field_text.hpp"
#include "record/graph_fields.hpp"
#include "step/check_parts.hpp"

namespace lockstep::record {

namespace {

/// Sizes with which no sum or product of step/ can overflow: the text may come from a stranger.
class Sizes {
public:
    explicit Sizes(const std::string& file) : file_(file) {}

    void check(const step::StepGraph& graph) const {
        const auto& mesh = graph.mesh;
        product({mesh.tp, mesh.cp, mesh.ep, mesh.dp, mesh.pp}, most_ranks, "the mesh of ranks");
        within(graph.placement.ranks, 1, most_ranks, "the placement of ranks");
        within(graph.placement.ranks_per_node, 1, most_ranks, "the placement of ranks");
        within(graph.micro_batch, 1, most_elements, "the micro-batch");
        within(graph.micro_batches, 1, most_ranks, "the number of micro-batches");
        if (graph.classes.empty()) refuse("it has no class of ranks");
        for (const auto& one : graph.classes) {
            within(one.multiplicity, 1, most_ranks, "the ranks of class " + one.name);
            within(one.representative, 0, mesh.ranks() - 1, "the representative of class " + one.name);
        }
        for (const auto& communicator : graph.communicators)
            within(communicator.size, 1, most_ranks, "communicator " + communicator.name);
        for (const auto& tensor : graph.tensors) {
            product(tensor.shape.extents, most_elements, "the shape of " + tensor.name);
            within(tensor.slots, 1, most_ranks, "the slots of " + tensor.name);
            if (tensor.view) within(tensor.view->first_element, 0, most_elements, "the view " + tensor.name);
        }
        for (const auto& block : graph.blocks)
            for (const auto& op : block.ops) check_op(op);
    }

private:
    static constexpr std::int64_t most_ranks = std::int64_t{1} << 30U;
    static constexpr std::int64_t most_elements = std::int64_t{1} << 50U;

    void check_op(const step::Op& op) const {
        const auto* compute = std::get_if<step::Compute>(&op.kind);
        if (compute == nullptr) return;
        // What step/ divides by.
        if (const auto* x = std::get_if<step::Convolution>(compute)) {
            within(x->stride, 1, most_elements, "the stride of " + op.name);
            within(x->groups, 1, most_elements, "the groups of " + op.name);
        }
        if (const auto* x = std::get_if<step::Pool>(compute))
            within(x->stride, 1, most_elements, "the stride of " + op.name);
    }
    void product(const std::vector<std::int64_t>& factors, std::int64_t most, const std::string& what) const {
        std::int64_t value = 1;
        for (const std::int64_t factor : factors) {
            within(factor, 1, most / value, what);
            value *= factor;
        }
    }
    void within(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& what) const {
        if (value < least || value > most) refuse(fmt::format("{} is impossible: {}", what, value));
    }
    [[noreturn]] void refuse(const std::string& what) const {
        throw InputError(fmt::format(
            "{}: the recorded graph makes no sense ({}); the file is damaged or not lockstep's", file_, what));
    }

    const std::string& file_;
};

}  // namespace

std::string graph_to_text(const step::StepGraph& graph) { return to_text(graph); }

step::StepGraph graph_from_text(const std::string& text, const std::string& file) {
    auto graph = from_text<step::StepGraph>(text, file);
    Sizes(file).check(graph);
    try {
        step::check_structure(graph);
    } catch (const InputError& error) {
        throw InputError(fmt::format(
            "{}: the recorded graph makes no sense ({}); the file is damaged or not lockstep's", file, error.what()));
    }
    return graph;
}

}  // namespace lockstep::record
