#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"
#include "step/dependencies.hpp"

namespace lockstep::step {

namespace {

constexpr std::int32_t never = -1;
constexpr std::int32_t initial = -2;  ///< before the first step

/// Follows which micro-batch wrote each segment last.
class Values {
public:
    explicit Values(const StepGraph& graph) : graph_(graph), places_(graph), written_(places_.count(), never) {
        for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
            if (graph.tensors[i].initial.kind == Initial::Kind::none) continue;
            for (std::int32_t slot = 0; slot < graph.tensors[i].slots; ++slot)
                mark(TensorId{static_cast<std::int32_t>(i)}, slot, initial);
        }
    }

    void visit(const OpInstance& instance) {
        for (const TensorId id : instance.op->in) require(id, instance, "reads");
        for (const Write& write : instance.op->out) {
            const bool is_read = write.access == Access::accumulate || write.access == Access::update ||
                                 (write.access == Access::accumulate_micro_batches && instance.micro_batch > 0);
            if (is_read) require(write.tensor, instance, "adds to");
        }
        for (const Write& write : instance.op->out) mark(write.tensor, instance.micro_batch, instance.micro_batch);
    }

private:
    void mark(TensorId id, std::int32_t micro_batch, std::int32_t by) {
        const Segments::Range range = places_.of(id, micro_batch);
        for (std::int32_t s = range.first; s < range.first + range.count; ++s)
            written_[static_cast<std::size_t>(s)] = by;
    }
    void require(TensorId id, const OpInstance& instance, const char* does) const {
        const Segments::Range range = places_.of(id, instance.micro_batch);
        const Tensor& tensor = graph_.tensor(id);
        for (std::int32_t s = range.first; s < range.first + range.count; ++s) {
            const std::int32_t by = written_[static_cast<std::size_t>(s)];
            if (by == never)
                throw InputError(fmt::format("op {} {} {} before anything wrote {}; issue its producer first",
                                             instance.op->name, does, tensor.name,
                                             range.count > 1 ? "all of it" : "it"));
            if (tensor.lifetime == Lifetime::micro_batch && by != initial && by != instance.micro_batch)
                throw InputError(
                    fmt::format("op {} {} {} in micro-batch {} but it was last written in micro-batch {} (it lives for "
                                "one); give it "
                                "Lifetime::step or more slots",
                                instance.op->name, does, tensor.name, instance.micro_batch, by));
        }
    }

    const StepGraph& graph_;
    Segments places_;
    std::vector<std::int32_t> written_;
};

}  // namespace

void check_reads(const StepGraph& graph) {
    for (const RankClass& rank_class : graph.classes) {
        Values values(graph);
        for_each_op(graph, rank_class.program, [&](const OpInstance& op) { values.visit(op); });
    }
}

}  // namespace lockstep::step
