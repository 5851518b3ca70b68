#include "cpu/element_order.hpp"

#include <numeric>

#include "cpu/isa.hpp"

namespace lockstep::cpu {
namespace {

/// Groups of tensors that must have the same order (a union-find forest).
class Groups {
public:
    explicit Groups(std::size_t n) : parent_(n), may_block_(n, true) { std::iota(parent_.begin(), parent_.end(), 0); }
    std::size_t find(std::size_t i) {
        while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
        return i;
    }
    void join(std::size_t a, std::size_t b) {
        a = find(a);
        b = find(b);
        may_block_[a] = may_block_[a] && may_block_[b];
        parent_[b] = a;
    }
    void forbid(std::size_t i) { may_block_[find(i)] = false; }
    bool may_block(std::size_t i) { return may_block_[find(i)]; }

private:
    std::vector<std::size_t> parent_;
    std::vector<bool> may_block_;
};

bool is_candidate(const step::Tensor& tensor) {
    return tensor.role == step::Role::activation && tensor.layout == step::Layout::channels_last &&
           tensor.shape.rank() == 4 && tensor.shape[1] % 8 == 0 && !tensor.view;
}

/// How an op stands to the order of its 4-dimensional operands.
enum class Tie { free, same, refuses };
struct TieOf {
    Tie operator()(const step::Convolution&) const { return Tie::free; }
    Tie operator()(const step::Reorder&) const { return Tie::free; }
    Tie operator()(const step::Norm&) const { return Tie::same; }
    Tie operator()(const step::Elementwise&) const { return Tie::same; }
    Tie operator()(const step::Dropout&) const { return Tie::same; }
    Tie operator()(const step::Compute& op) const { return std::visit(*this, op); }
    template <class Other>
    Tie operator()(const Other&) const {
        return Tie::refuses;
    }
};

void apply(const step::StepGraph& graph, const step::Op& op, Groups& groups) {
    std::vector<std::size_t> images;
    const auto collect = [&](step::TensorId id) {
        if (graph.tensor(id).shape.rank() == 4 && graph.tensor(id).role != step::Role::parameter)
            images.push_back(id.index());
    };
    for (const step::TensorId id : op.in) collect(id);
    for (const step::Write& write : op.out) collect(write.tensor);
    if (const auto* compute = std::get_if<step::Compute>(&op.kind))
        if (const auto* pool = std::get_if<step::Pool>(compute)) {
            // Image and result are free, but the indices follow the result (forward) or its gradient (backward).
            const step::TensorId pooled = pool->pass == step::Pass::forward ? op.out[0].tensor : op.in[0];
            if (pool->pass == step::Pass::forward && op.out.size() > 1)
                groups.join(pooled.index(), op.out[1].tensor.index());
            if (pool->pass != step::Pass::forward && op.in.size() > 1) groups.join(pooled.index(), op.in[1].index());
            return;
        }
    const Tie tie = std::visit(TieOf{}, op.kind);
    for (const std::size_t i : images) {
        if (tie == Tie::same) groups.join(images.front(), i);
        if (tie == Tie::refuses) groups.forbid(i);
    }
}

Order order_of(const step::Tensor& tensor) {
    switch (tensor.layout) {
        case step::Layout::row_major: return Order::row_major;
        case step::Layout::opaque: return Order::packed;
        case step::Layout::channels_last: break;
    }
    return tensor.shape.rank() == 4 ? Order::channels_last : Order::row_major;
}

/// Images that only convolutions read. They are stored as oneDNN's fast convolutions into blocks want them: in blocks
/// too, or row-major when their few channels don't fill one. Channels-last ones would fall to a reference
/// implementation, 100 times slower.
std::vector<bool> input_images(const step::StepGraph& graph) {
    std::vector<bool> is_image;
    for (const step::Tensor& tensor : graph.tensors)
        is_image.push_back(tensor.role == step::Role::input && tensor.shape.rank() == 4 && !tensor.view);
    for (const step::Block& block : graph.blocks)
        for (const step::Op& op : block.ops) {
            const auto* compute = std::get_if<step::Compute>(&op.kind);
            const bool keeps_order = compute == nullptr || std::holds_alternative<step::Convolution>(*compute);
            if (keeps_order) continue;
            for (const step::TensorId id : op.in) is_image[id.index()] = false;
            for (const step::Write& write : op.out) is_image[write.tensor.index()] = false;
        }
    return is_image;
}

}  // namespace

std::vector<Order> choose_orders(const step::StepGraph& graph) {
    Groups groups(graph.tensors.size());
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const step::Tensor& tensor = graph.tensors[i];
        if (!is_candidate(tensor)) groups.forbid(i);
        if (tensor.view) groups.forbid(tensor.view->of.index());
    }
    for (const step::Block& block : graph.blocks)
        for (const step::Op& op : block.ops) apply(graph, op, groups);
    const std::vector<bool> is_image = input_images(graph);
    std::vector<Order> orders;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        Order order = order_of(graph.tensors[i]);
        if (prefers_blocked_channels() && groups.may_block(i)) order = Order::blocked8;
        if (prefers_blocked_channels() && is_image[i])
            order = graph.tensors[i].shape[1] % 8 == 0 ? Order::blocked8 : Order::row_major;
        orders.push_back(order);
    }
    return orders;
}

std::int64_t stored_at(Order order, const Shape& shape, std::int64_t index) {
    if (order == Order::row_major || order == Order::packed) return index;
    const std::int64_t channels = shape[1], pixels = shape[2] * shape[3];
    const std::int64_t image = index / (channels * pixels), channel = index / pixels % channels, pixel = index % pixels;
    if (order == Order::channels_last) return (image * pixels + pixel) * channels + channel;
    return (image * (channels / 8) + channel / 8) * pixels * 8 + pixel * 8 + channel % 8;
}

}  // namespace lockstep::cpu
