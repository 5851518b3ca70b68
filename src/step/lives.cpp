#include <algorithm>

#include "step/dependencies.hpp"
#include "step/liveness.hpp"

namespace lockstep::step {

bool overlap(const Life& a, const Life& b) {
    auto x = a.intervals.begin();
    auto y = b.intervals.begin();
    while (x != a.intervals.end() && y != b.intervals.end()) {
        if (x->begin <= y->end && y->begin <= x->end) return true;
        if (x->end < y->end)
            ++x;
        else
            ++y;
    }
    return false;
}

namespace {

bool is_same_pass(const std::vector<Issue>& a, const std::vector<Issue>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Issue& x, const Issue& y) { return x.block == y.block && x.chunk == y.chunk; });
}

/// The program without the passes that repeat pass 1: possible when passes follow one another without interleaving.
Program fold(const StepGraph& graph, const Program& program) {
    std::vector<std::vector<Issue>> passes;
    for (const Issue& issue : program.issues) {
        if (passes.empty() || passes.back().front().micro_batch != issue.micro_batch) passes.emplace_back();
        passes.back().push_back(issue);
    }
    const auto count = static_cast<std::size_t>(graph.micro_batches);
    if (count < 4 || passes.size() != count) return program;
    for (std::size_t m = 1; m + 1 < count; ++m)
        if (!is_same_pass(passes[m], passes[1])) return program;
    Program folded;
    for (const std::size_t m : {std::size_t{0}, std::size_t{1}, count - 1})
        folded.issues.insert(folded.issues.end(), passes[m].begin(), passes[m].end());
    return folded;
}

/// A tensor touched by an op on another stream, whose memory is free when the compute stream has waited for that op.
struct Pending {
    TensorId tensor;
    std::size_t interval = 0;
    std::int32_t position = 0;
};

class Finder {
public:
    explicit Finder(const StepGraph& graph)
        : graph_(graph), tracker_(graph), pending_(graph.streams.size()), micro_batch_(graph.tensors.size(), -1) {
        lives_.of.resize(graph.tensors.size());
    }

    void visit(const OpInstance& instance) {
        const auto position = static_cast<std::int32_t>(lives_.issue.size());
        lives_.issue.push_back(instance.number);
        streams_.push_back(instance.op->stream);
        const bool is_compute_stream = graph_.stream(instance.op->stream).lane == Stream::Lane::compute;
        const std::vector<std::int64_t>& waits = tracker_.next(instance, position);
        if (is_compute_stream)
            for (const std::int64_t earlier : waits) release(earlier, position);
        auto touch_tensor = [&](TensorId tensor) { touch(tensor, instance, position, is_compute_stream); };
        for (const TensorId id : instance.op->in) touch_tensor(id);
        for (const Write& write : instance.op->out) touch_tensor(write.tensor);
    }

    Lives finish() {
        const auto last = static_cast<std::int32_t>(lives_.issue.size()) - 1;
        auto keep = [&](TensorId tensor) {
            Life& life = lives_.of[root(tensor).index()];
            if (!life.intervals.empty()) life.intervals = {{life.intervals.front().begin, last}};
        };
        for (const auto& on_stream : pending_)
            for (const Pending& p : on_stream) lives_.of[p.tensor.index()].intervals[p.interval].end = last;
        if (graph_.loss.is_valid()) keep(graph_.loss);
        for (const TensorId id : graph_.reduced_gradients) keep(id);
        for (std::size_t i = 0; i < lives_.of.size(); ++i) {
            Life& life = lives_.of[i];
            if (graph_.tensors[i].lifetime == Lifetime::carried && !life.intervals.empty())
                life.intervals = {{0, last}};
            merge(life);
        }
        return std::move(lives_);
    }

private:
    TensorId root(TensorId id) const {
        const Tensor& tensor = graph_.tensor(id);
        return tensor.view ? tensor.view->of : id;
    }
    /// The compute stream at `position` waits for the op at `earlier`: what its stream touched until then is free
    /// after.
    void release(std::int64_t earlier, std::int32_t position) {
        std::vector<Pending>& on_stream = pending_[streams_[static_cast<std::size_t>(earlier)].index()];
        std::erase_if(on_stream, [&](const Pending& p) {
            if (p.position > earlier) return false;
            Life::Interval& interval = lives_.of[p.tensor.index()].intervals[p.interval];
            interval.end = std::max(interval.end, position);
            return true;
        });
    }
    void touch(TensorId id, const OpInstance& instance, std::int32_t position, bool is_compute_stream) {
        const TensorId storage = root(id);
        std::vector<Life::Interval>& intervals = lives_.of[storage.index()].intervals;
        std::int32_t& pass = micro_batch_[storage.index()];
        const bool is_new_value =
            graph_.tensor(storage).lifetime == Lifetime::micro_batch && pass != instance.micro_batch;
        if (intervals.empty() || is_new_value) intervals.push_back({is_compute_stream ? position : 0, position});
        pass = instance.micro_batch;
        intervals.back().end = position;
        if (!is_compute_stream)
            pending_[instance.op->stream.index()].push_back({storage, intervals.size() - 1, position});
    }
    static void merge(Life& life) {
        auto& all = life.intervals;
        std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.begin < y.begin; });
        std::size_t kept = 0;
        for (std::size_t i = 1; i < all.size(); ++i) {
            if (all[i].begin <= all[kept].end)
                all[kept].end = std::max(all[kept].end, all[i].end);
            else
                all[++kept] = all[i];
        }
        if (!all.empty()) all.resize(kept + 1);
    }

    const StepGraph& graph_;
    DependencyTracker tracker_;
    Lives lives_;
    std::vector<StreamId> streams_;              // by position
    std::vector<std::vector<Pending>> pending_;  // by stream
    std::vector<std::int32_t> micro_batch_;      // of the last touch, by tensor
};

}  // namespace

Lives find_lives(const StepGraph& graph, const RankClass& rank_class) {
    Finder finder(graph);
    for_each_op(graph, fold(graph, rank_class.program), [&](const OpInstance& op) { finder.visit(op); });
    return finder.finish();
}

}  // namespace lockstep::step
