#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "step/check_parts.hpp"
#include "step/dependencies.hpp"

namespace lockstep::step {

namespace {

const Tensor& storage_of(const StepGraph& graph, const Tensor& tensor) {
    return tensor.view ? graph.tensor(tensor.view->of) : tensor;
}

/// Follows which micro-batch wrote each segment last, for one class after another.
class Values {
public:
    explicit Values(const StepGraph& graph)
        : graph_(graph),
          places_(graph),
          written_(places_.count()),
          is_initial_(places_.count(), 0),
          is_passing_(graph.tensors.size(), 0) {
        for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
            const Tensor& tensor = graph.tensors[i];
            const Tensor& storage = storage_of(graph, tensor);
            is_passing_[i] = tensor.lifetime == Lifetime::micro_batch || storage.lifetime == Lifetime::micro_batch;
            // Views of a storage that is not carried (parameters gathered for a pass) only say what their shards hold.
            if (tensor.initial.kind == Initial::Kind::none || storage.lifetime != Lifetime::carried) continue;
            for (std::int32_t slot = 0; slot < storage.slots; ++slot) {
                const Segments::Range range = places_.of(TensorId{static_cast<std::int32_t>(i)}, slot);
                std::fill_n(is_initial_.begin() + range.first, range.count, 1);
            }
        }
    }

    void follow(const Program& program) {
        ++run_;
        for_each_op(graph_, program, [&](const OpInstance& op) { visit(op); });
    }

private:
    struct Written {
        std::int32_t run = 0;  // what it says is of this run
        std::int32_t micro_batch = 0;
    };
    void visit(const OpInstance& op) {
        for_each_dependence(op, [&](TensorId id, std::int32_t micro_batch, const Write* write) {
            const Segments::Range range = places_.of(id, micro_batch);
            const auto last = static_cast<std::size_t>(range.first + range.count);
            const bool is_read = !write || write->access == Access::accumulate || write->access == Access::update ||
                                 (write->access == Access::accumulate_micro_batches && micro_batch > 0);
            for (auto s = static_cast<std::size_t>(range.first); s < last; ++s) {
                Written& written = written_[s];
                if (is_read && !is_sound(s, id, micro_batch)) refuse(op, id, micro_batch, write, s);
                if (write) written = {run_, micro_batch};
            }
        });
    }
    bool is_sound(std::size_t segment, TensorId id, std::int32_t micro_batch) const {
        const Written& written = written_[segment];
        if (written.run != run_) return is_initial_[segment] != 0;
        return written.micro_batch == micro_batch || !is_passing_[id.index()];
    }
    [[noreturn]] void refuse(const OpInstance& op, TensorId id, std::int32_t micro_batch, const Write* write,
                             std::size_t segment) const {
        const Tensor& tensor = graph_.tensor(id);
        const char* does = write ? "adds to" : "reads";
        const Written& written = written_[segment];
        if (written.run != run_)
            throw InputError(fmt::format("op {} {} {} before anything wrote {}; issue its producer first", op.op->name,
                                         does, tensor.name,
                                         places_.of(id, micro_batch).count > 1 ? "all of it" : "it"));
        throw InputError(fmt::format(
            "op {} {} {} in micro-batch {} but it was last written in micro-batch {} (it lives for one, in "
            "{} slots); give it Lifetime::step or more slots",
            op.op->name, does, tensor.name, micro_batch, written.micro_batch, storage_of(graph_, tensor).slots));
    }

    const StepGraph& graph_;
    Segments places_;
    std::vector<Written> written_;
    std::vector<char> is_initial_;  // by segment
    std::vector<char> is_passing_;  // by tensor: its values live for one micro-batch
    std::int32_t run_ = 0;
};

}  // namespace

void check_reads(const StepGraph& graph) {
    Values values(graph);
    for (const RankClass& rank_class : graph.classes) values.follow(rank_class.program);
}

}  // namespace lockstep::step
