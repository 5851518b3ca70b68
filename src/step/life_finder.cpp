#include "step/life_finder.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::step {

namespace {

bool is_same_pass(const std::vector<Issue>& a, const std::vector<Issue>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Issue& x, const Issue& y) { return x.block == y.block && x.chunk == y.chunk; });
}

}  // namespace

LifeFinder::LifeFinder(const StepGraph& graph)
    : graph_(graph),
      places_(graph.tensors.size()),
      compute_(0),
      tracker_(graph),
      clock_(graph),
      queues_(graph.streams.size()) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Tensor& tensor = graph.tensors[i];
        if (tensor.view) continue;
        const TensorId id{static_cast<std::int32_t>(i)};
        const auto first = static_cast<std::int32_t>(storage_of_copy_.size());
        places_[i] = {id, first, tensor.slots, Place::Part::whole, tensor.lifetime};
        storage_of_copy_.insert(storage_of_copy_.end(), static_cast<std::size_t>(tensor.slots), id);
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Tensor& tensor = graph.tensors[i];
        if (!tensor.view) continue;
        places_[i] = places_[tensor.view->of.index()];
        if (tensor.elements() < graph.tensor(tensor.view->of).elements()) places_[i].part = Place::Part::some;
        if (!tensor.view->ring) continue;
        const int extent = graph.mesh.extent(tensor.view->ring->axis);
        const int part = ((tensor.view->ring->offset % extent) + extent) % extent;
        places_[i].part = Place::Part::of_ring;
        places_[i].ring_bit = std::uint64_t{1} << (part % 64);
    }
    copies_.resize(storage_of_copy_.size());
    for (std::size_t s = 0; s < graph.streams.size(); ++s)
        if (graph.streams[s].lane == Stream::Lane::compute) compute_ = StreamId{static_cast<std::int32_t>(s)};
}

Lives LifeFinder::find(const RankClass& rank_class) {
    restart();
    std::vector<OpInstance> ops;
    const Program program = fold(rank_class.program);
    lives_.is_folded = program.issues.size() < rank_class.program.issues.size();
    for_each_op(graph_, program, [&](const OpInstance& op) { ops.push_back(op); });
    lives_.issue.reserve(ops.size());
    for (const OpInstance& op : ops) visit(op);
    follow_next_step(ops);
    return finish(static_cast<std::int32_t>(ops.size()) - 1);
}

/// The program without the passes that repeat pass 1: possible when passes follow one another without interleaving.
Program LifeFinder::fold(const Program& program) const {
    const auto count = static_cast<std::size_t>(graph_.micro_batches);
    if (count < 4) return program;
    std::vector<std::vector<Issue>> passes;
    for (const Issue& issue : program.issues) {
        if (passes.empty() || passes.back().front().micro_batch != issue.micro_batch) passes.emplace_back();
        if (passes.size() > count) return program;
        passes.back().push_back(issue);
    }
    if (passes.size() != count || !is_foldable(passes[1])) return program;
    for (std::size_t m = 2; m + 1 < count; ++m)
        if (!is_same_pass(passes[m], passes[1])) return program;
    Program folded;
    for (const std::size_t m : {std::size_t{0}, std::size_t{1}, count - 1})
        folded.issues.insert(folded.issues.end(), passes[m].begin(), passes[m].end());
    return folded;
}

/// Nothing in the pass tells one micro-batch from another.
bool LifeFinder::is_foldable(const std::vector<Issue>& pass) const {
    bool is_uniform = true;
    for (const Issue& issue : pass)
        for (const Op& op : graph_.block(issue.block).ops)
            for_each_dependence({&op, 0, 0, 0}, [&](TensorId id, std::int32_t micro_batch, const Write*) {
                const Place& place = places_[id.index()];
                if (micro_batch != 0 || (place.slots > 1 && place.lifetime != Lifetime::carried)) is_uniform = false;
            });
    return is_uniform;
}

void LifeFinder::restart() {
    ++run_;
    tracker_.restart();
    clock_.restart();
    values_.clear();
    touched_.clear();
    for (Queue& queue : queues_) {
        queue.touched.clear();
        queue.released = 0;
    }
    last_early_ = -1;
    lives_ = {};
}

void LifeFinder::visit(const OpInstance& op) {
    const auto position = static_cast<std::int32_t>(lives_.issue.size());
    lives_.issue.push_back(op.number);
    clock_.next(op, tracker_.next(op, position));
    if (op.op->stream == compute_) release(position, Step::this_one);
    touch(op, position);
}

void LifeFinder::touch(const OpInstance& op, std::int32_t position) {
    const bool is_compute = op.op->stream == compute_;
    const std::int32_t begin = is_compute ? position : clock_.done(compute_) + 1;
    if (begin == 0 && !is_compute) last_early_ = position;
    for_each_dependence(op, [&](TensorId id, std::int32_t micro_batch, const Write* write) {
        const Place& place = places_[id.index()];
        const std::int32_t number = copy_of(place, micro_batch);
        if (place.lifetime == Lifetime::carried) return;
        Copy& copy = copies_[static_cast<std::size_t>(number)];
        const bool is_overwritten = write && (write->access == Access::overwrite ||
                                              (write->access == Access::accumulate_micro_batches && micro_batch == 0));
        const bool is_lost = is_overwritten && (place.part == Place::Part::whole || (copy.parts & place.ring_bit) != 0);
        const bool is_of_another = place.lifetime == Lifetime::micro_batch && copy.micro_batch != micro_batch;
        if (copy.value < 0 || is_lost || is_of_another) add_value(number, begin, position);
        if (is_overwritten) copy.parts |= place.ring_bit;
        copy.micro_batch = micro_batch;
        Value& value = values_[static_cast<std::size_t>(copy.value)];
        value.begin = std::min(value.begin, begin);
        value.end = std::max(value.end, position);
        if (!is_compute) queues_[op.op->stream.index()].touched.push_back({copy.value, position});
    });
}

std::int32_t LifeFinder::copy_of(const Place& place, std::int32_t micro_batch) {
    // Of a carried tensor the first copy stands for all.
    const bool is_one = place.slots == 1 || place.lifetime == Lifetime::carried;
    const std::int32_t slot = is_one ? 0 : micro_batch % place.slots;
    const std::int32_t number = place.first_copy + slot;
    Copy& copy = copies_[static_cast<std::size_t>(number)];
    if (copy.run == run_) return number;
    copy = {run_, -1, -1, 0};
    touched_.push_back(number);
    return number;
}

void LifeFinder::add_value(std::int32_t copy, std::int32_t begin, std::int32_t end) {
    std::int32_t& last = copies_[static_cast<std::size_t>(copy)].value;
    copies_[static_cast<std::size_t>(copy)].parts = 0;
    values_.push_back({last, copy, begin, end});
    last = static_cast<std::int32_t>(values_.size()) - 1;
}

/// The compute stream has waited, at `position`, for the ops that the clock says: what these touched is free after.
void LifeFinder::release(std::int32_t position, Step step) {
    for (std::size_t s = 0; s < queues_.size(); ++s) {
        Queue& queue = queues_[s];
        if (queue.released == queue.touched.size()) continue;
        const std::int32_t done = clock_.done(StreamId{static_cast<std::int32_t>(s)});
        while (queue.released < queue.touched.size() && queue.touched[queue.released].position <= done) {
            Value& value = values_[static_cast<std::size_t>(queue.touched[queue.released++].value)];
            if (step == Step::this_one)
                value.end = std::max(value.end, position);
            else
                add_value(value.copy, 0, position);
        }
    }
}

bool LifeFinder::is_all_released() const {
    return std::all_of(queues_.begin(), queues_.end(),
                       [](const Queue& queue) { return queue.released == queue.touched.size(); });
}

/// What is still in use at the end of the step is so at the begin of the next, and what may begin before the step does
/// so at the end of the one before. Follows the next step as far as it takes to say how long.
void LifeFinder::follow_next_step(const std::vector<OpInstance>& ops) {
    const auto count = static_cast<std::int32_t>(ops.size());
    const std::int32_t last = count - 1;
    for (Queue& queue : queues_)
        for (std::size_t i = queue.released; i < queue.touched.size(); ++i)
            values_[static_cast<std::size_t>(queue.touched[i].value)].end = last;
    for (std::int32_t i = 0; i < count; ++i) {
        if (i > last_early_ && is_all_released()) return;
        const OpInstance& op = ops[static_cast<std::size_t>(i)];
        clock_.next(op, tracker_.next(op, count + i));
        if (op.op->stream == compute_) {
            release(i, Step::next);
            continue;
        }
        const std::int32_t begin = clock_.done(compute_) + 1;
        if (begin >= count) continue;
        for_each_dependence(op, [&](TensorId id, std::int32_t micro_batch, const Write*) {
            const Place& place = places_[id.index()];
            if (place.lifetime != Lifetime::carried) add_value(copy_of(place, micro_batch), begin, last);
        });
    }
    for (Queue& queue : queues_)
        for (; queue.released < queue.touched.size(); ++queue.released)
            add_value(values_[static_cast<std::size_t>(queue.touched[queue.released].value)].copy, 0, last);
}

void LifeFinder::keep_to_end(TensorId tensor, std::int32_t last) {
    const Place& place = places_[tensor.index()];
    for (std::int32_t slot = 0; slot < place.slots; ++slot) {
        const Copy& copy = copies_[static_cast<std::size_t>(place.first_copy + slot)];
        if (copy.run != run_) continue;
        for (std::int32_t v = copy.value; v >= 0; v = values_[static_cast<std::size_t>(v)].before)
            values_[static_cast<std::size_t>(v)].end = last;
    }
}

Lives LifeFinder::finish(std::int32_t last) {
    if (graph_.loss.is_valid()) keep_to_end(graph_.loss, last);
    for (const TensorId id : graph_.reduced_gradients) keep_to_end(id, last);
    std::vector<CopyLife> of_copy;
    for (const std::int32_t number : touched_) {
        const TensorId tensor = storage_of_copy_[static_cast<std::size_t>(number)];
        const Place& place = places_[tensor.index()];
        of_copy.clear();
        if (place.lifetime == Lifetime::carried) {
            for (std::int32_t slot = 0; slot < place.slots; ++slot) lives_.copies.push_back({tensor, slot, 0, last});
            continue;
        }
        for (std::int32_t v = copies_[static_cast<std::size_t>(number)].value; v >= 0;) {
            const Value& value = values_[static_cast<std::size_t>(v)];
            of_copy.push_back({tensor, number - place.first_copy, value.begin, value.end});
            v = value.before;
        }
        join(of_copy);
        lives_.copies.insert(lives_.copies.end(), of_copy.begin(), of_copy.end());
    }
    return std::move(lives_);
}

}  // namespace lockstep::step
