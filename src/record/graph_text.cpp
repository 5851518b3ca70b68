#include "record/graph_text.hpp"

#include <fmt/format.h>

#include "record/field_text.hpp"
#include "record/graph_fields.hpp"

namespace lockstep::record {

namespace {

/// Every id of the graph points into its table (or nowhere, where that is allowed).
class References {
public:
    References(const step::StepGraph& graph, const std::string& file) : graph_(graph), file_(file) {}

    void check() const {
        for (const auto& tensor : graph_.tensors)
            if (tensor.view) require(tensor.view->of, graph_.tensors.size(), "a view");
        for (const auto& block : graph_.blocks) check_block(block);
        for (const auto& one : graph_.classes)
            for (const auto& issue : one.program.issues) require(issue.block, graph_.blocks.size(), "an issue");
        for (const auto id : graph_.class_of_stage) require(id, graph_.classes.size(), "a stage");
        const auto& mesh = graph_.mesh;
        const bool is_sane = mesh.tp > 0 && mesh.cp > 0 && mesh.ep > 0 && mesh.dp > 0 && mesh.pp > 0 &&
                             !graph_.classes.empty() &&
                             graph_.class_of_stage.size() == static_cast<std::size_t>(mesh.pp);
        if (!is_sane) refuse("the mesh of ranks");
    }

private:
    void check_block(const step::Block& block) const {
        for (const auto& op : block.ops) {
            require(op.stream, graph_.streams.size(), "stream of " + op.name);
            for (const auto id : op.in) require(id, graph_.tensors.size(), "input of " + op.name);
            for (const auto& write : op.out) require(write.tensor, graph_.tensors.size(), "output of " + op.name);
            if (const auto* collective = std::get_if<step::Collective>(&op.kind))
                require(collective->communicator, graph_.communicators.size(), "communicator of " + op.name);
        }
    }
    template <class Tag>
    void require(Id<Tag> id, std::size_t size, const std::string& what) const {
        if (!id.is_valid() || id.index() >= size) refuse(what);
    }
    [[noreturn]] void refuse(const std::string& what) const {
        throw InputError(fmt::format("{}: {} points outside the recorded graph; the file is damaged or not lockstep's",
                                     file_, what));
    }

    const step::StepGraph& graph_;
    const std::string& file_;
};

}  // namespace

std::string graph_to_text(const step::StepGraph& graph) { return to_text(graph); }

step::StepGraph graph_from_text(const std::string& text, const std::string& file) {
    auto graph = from_text<step::StepGraph>(text, file);
    References(graph, file).check();
    return graph;
}

}  // namespace lockstep::record
