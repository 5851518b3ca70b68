#include "step/stays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/error.hpp"
#include "step/storage.hpp"

namespace lockstep::step {

namespace {

class StayFinder {
public:
    StayFinder(const StepGraph& graph, const Lives& lives)
        : graph_(graph), lives_(lives), of_copy_(graph.tensors.size()), parent_(lives.copies.size()) {
        std::iota(parent_.begin(), parent_.end(), std::size_t{0});
        for (std::size_t i = 0; i < lives.copies.size(); ++i) {
            const CopyLife& life = lives.copies[i];
            const Tensor& tensor = graph.tensor(life.tensor);
            if (tensor.lifetime == Lifetime::carried) continue;
            auto& copies = of_copy_[life.tensor.index()];
            copies.resize(static_cast<std::size_t>(tensor.slots));
            copies[static_cast<std::size_t>(life.slot)].push_back(i);
        }
    }
    void tie_all_of_a_copy() {
        for_each_copy([&](TensorId, std::int32_t, const Pieces& pieces) {
            for (const std::size_t piece : pieces) tie(piece, pieces.front());
        });
    }
    /// What a copy holds when a step ends, it holds when the next begins.
    void tie_over_the_end() {
        const auto end = static_cast<std::int32_t>(lives_.issue.size()) - 1;
        for_each_copy([&](TensorId, std::int32_t, const Pieces& pieces) {
            if (lives_.copies[pieces.front()].begin == 0 && lives_.copies[pieces.back()].end == end)
                tie(pieces.front(), pieces.back());
        });
    }
    void visit(const OpInstance& instance, std::int32_t position, bool has_one_place) {
        for_each_operand(instance, [&](TensorId id, std::int32_t micro_batch, const Write*) {
            const Tensor& storage = storage_of(graph_, id);
            if (storage.lifetime == Lifetime::carried) return;
            const TensorId of = storage_id(graph_, id);
            const std::int32_t slot = storage.slot_of(micro_batch);
            visits_.push_back(
                {of, instance.number, has_one_place ? -1 : micro_batch, slot, piece_at(of, slot, position)});
        });
    }
    void tie_visits() {
        const auto key = [](const Stays::Visit& v) { return std::tie(v.storage, v.op, v.micro_batch); };
        std::stable_sort(visits_.begin(), visits_.end(),
                         [&](const Stays::Visit& x, const Stays::Visit& y) { return key(x) < key(y); });
        std::size_t kept = 0;
        for (std::size_t i = 1; i < visits_.size(); ++i) {
            if (key(visits_[i]) == key(visits_[kept]))
                tie(visits_[i].stay, visits_[kept].stay);
            else
                visits_[++kept] = visits_[i];
        }
        if (!visits_.empty()) visits_.resize(kept + 1);
    }
    Stays finish() {
        Stays stays;
        std::vector<std::size_t> stay_of(parent_.size(), 0);
        for_each_copy([&](TensorId storage, std::int32_t slot, const Pieces& pieces) {
            for (const std::size_t piece : pieces) {
                if (find(piece) == piece) {
                    stay_of[piece] = stays.tenants.size();
                    stays.tenants.push_back({graph_.tensor(storage).copy_bytes(), {}});
                }
                const CopyLife& life = lives_.copies[piece];
                stays.tenants[stay_of[find(piece)]].life.intervals.push_back({life.begin, life.end});
            }
            stays.last.push_back({storage, slot, stay_of[find(pieces.back())]});
        });
        for (Stays::Visit& v : visits_) v.stay = stay_of[find(v.stay)];
        stays.visits = std::move(visits_);
        return stays;
    }

private:
    using Pieces = std::vector<std::size_t>;  // lives of one copy, ascending

    template <class F>
    void for_each_copy(F&& f) {
        for (std::size_t i = 0; i < of_copy_.size(); ++i)
            for (std::size_t slot = 0; slot < of_copy_[i].size(); ++slot)
                if (!of_copy_[i][slot].empty())
                    f(TensorId{static_cast<std::int32_t>(i)}, static_cast<std::int32_t>(slot), of_copy_[i][slot]);
    }
    std::size_t piece_at(TensorId storage, std::int32_t slot, std::int32_t position) const {
        for (const std::size_t piece : of_copy_[storage.index()].at(static_cast<std::size_t>(slot)))
            if (lives_.copies[piece].begin <= position && position <= lives_.copies[piece].end) return piece;
        throw LogicError(
            fmt::format("tensor {} is used at {}, where it does not live", graph_.tensor(storage).name, position));
    }
    std::size_t find(std::size_t piece) {
        while (parent_[piece] != piece) piece = parent_[piece] = parent_[parent_[piece]];
        return piece;
    }
    /// The first of those that are tied stands for all.
    void tie(std::size_t x, std::size_t y) {
        x = find(x);
        y = find(y);
        parent_[std::max(x, y)] = std::min(x, y);
    }

    const StepGraph& graph_;
    const Lives& lives_;
    std::vector<std::vector<Pieces>> of_copy_;  // by storage and slot
    std::vector<std::size_t> parent_;           // by life
    std::vector<Stays::Visit> visits_;          // `stay` is the life, until finish()
};

}  // namespace

Stays find_stays(const StepGraph& graph, const RankClass& rank_class, const Lives& lives, Freedom freedom) {
    StayFinder finder(graph, lives);
    if (freedom == Freedom::none) {
        finder.tie_all_of_a_copy();
        return finder.finish();
    }
    finder.tie_over_the_end();
    std::int32_t position = 0;
    if (lives.is_folded)  // then no op can tell one micro-batch from another
        for (const std::int32_t op : lives.issue) finder.visit({&graph.op(op), op, 0, 0}, position++, true);
    else
        for_each_op(graph, rank_class.program, [&](const OpInstance& op) {
            finder.visit(op, position++, freedom == Freedom::by_op && !uses_copies(graph, *op.op));
        });
    finder.tie_visits();
    return finder.finish();
}

}  // namespace lockstep::step
