#include "contract/graphs.hpp"

#include <fmt/format.h>

#include "step/collective_step.hpp"

namespace lockstep::contract {

using step::Access;
using step::Initial;
using step::Phase;
using step::Role;

step::StepGraph linear_classifier(int ranks, int micro_batches) {
    constexpr std::int64_t batch = 8, width = 16, classes = 4;
    Sketch s("linear_classifier", ranks, micro_batches);
    const auto x = s.input("x", {batch, width}, DType::fp32, {Initial::Kind::normal, 1, 0, 1});
    const auto labels = s.input("labels", {batch}, DType::int32, {Initial::Kind::class_labels, 0, classes, 2});
    const auto w = s.carried("w", {classes, width}, Role::parameter, {Initial::Kind::normal, 0.1, 0, 3});
    const auto dw = s.carried("w.gradient", {classes, width}, Role::gradient);
    const auto momentum =
        s.carried("w.momentum", {classes, width}, Role::optimizer_state, {Initial::Kind::zero, 0, 0, 0});
    const auto loss = s.carried("loss", {1}, Role::scalar);
    const auto logits = s.activation("logits", {batch, classes});
    const auto lse = s.activation("log_sum_exp", {batch});
    const auto dlogits = s.activation("logits.gradient", {batch, classes});
    using T = step::Gemm::Transpose;
    step::SoftmaxLoss softmax;
    softmax.rows = batch;
    softmax.classes = classes;
    softmax.gradient_scale = 1.0 / static_cast<double>(batch * micro_batches);

    s.block("pass", Phase::forward);
    s.op("forward", step::Compute{step::Gemm{1, batch, classes, width, T::no, T::yes}}, {x, w},
         {{logits, Access::overwrite}});
    s.op("loss", step::Compute{softmax}, {logits, labels},
         {{loss, Access::accumulate_micro_batches}, {lse, Access::overwrite}});
    softmax.pass = step::Pass::backward_data;
    s.op("loss.backward", step::Compute{softmax}, {logits, labels, lse}, {{dlogits, Access::overwrite}});
    s.op("backward", step::Compute{step::Gemm{1, classes, width, batch, T::yes, T::no}}, {dlogits, x},
         {{dw, Access::accumulate_micro_batches}});
    s.block("end", Phase::optimizer, micro_batches - 1);
    s.collective("all_reduce", step::CollectiveKind::all_reduce, classes * width, dw, dw);
    step::OptimizerUpdate update;
    update.parameters = 1;
    update.count = classes * width;
    s.op("update", step::Compute{update}, {dw}, {{w, Access::update}, {momentum, Access::update}});

    step::StepGraph& graph = s.graph();
    graph.micro_batch = batch;
    graph.global_batch = batch * ranks * micro_batches;
    graph.loss = loss;
    graph.reduced_gradients = {dw};
    return graph;
}

step::StepGraph scatter_and_gather(int ranks) {
    const std::int64_t share = 32, whole = share * ranks;
    Sketch s("scatter_and_gather", ranks);
    const auto a = s.carried("a", {whole}, Role::gradient), b = s.carried("b", {whole}, Role::gradient);
    const auto mine = s.carried("b.share", {share}, Role::gradient);
    const auto sum = s.carried("b.sum", {whole}, Role::gradient);
    const auto loss = s.carried("loss", {1}, Role::scalar);
    s.block("all", Phase::forward);
    s.op("fill_a", step::Compute{step::Fill{whole, 3}}, {}, {{a, Access::overwrite}});
    s.collective("reduce_a", step::CollectiveKind::all_reduce, whole, a, a);
    s.op("fill_b", step::Compute{step::Fill{whole, 5}}, {}, {{b, Access::overwrite}});
    s.collective("scatter_b", step::CollectiveKind::reduce_scatter, share, b, mine);
    s.collective("gather_b", step::CollectiveKind::all_gather, share, mine, sum);
    s.op("fill_loss", step::Compute{step::Fill{1, 0}}, {}, {{loss, Access::overwrite}});
    s.graph().loss = loss;
    s.graph().reduced_gradients = {a, sum};
    return s.graph();
}

step::StepGraph ring_shift(int ranks) {
    constexpr std::int64_t count = 64;
    Sketch s("ring_shift", ranks);
    const auto out = s.carried("out", {count}, Role::communication), in = s.carried("in", {count}, Role::communication);
    const auto twice = s.carried("twice", {count}, Role::gradient);
    const auto loss = s.carried("loss", {1}, Role::scalar);
    s.block("all", Phase::forward);
    s.op("fill", step::Compute{step::Fill{count, 2}}, {}, {{out, Access::overwrite}});
    step::P2PGroup group;
    group.communicator = {0};
    group.sends = {{{plan::Axis::dp, 1, true}, out, 0}};
    group.receives = {{{plan::Axis::dp, -1, true}, in, 0}};
    s.op("shift", group, {out}, {{in, Access::overwrite}}, 1);
    step::Elementwise add;
    add.kind = step::Elementwise::Kind::add;
    add.count = count;
    s.op("add", step::Compute{add}, {in, out}, {{twice, Access::overwrite}});
    s.op("fill_loss", step::Compute{step::Fill{1, 0}}, {}, {{loss, Access::overwrite}});
    s.graph().loss = loss;
    s.graph().reduced_gradients = {twice};
    return s.graph();
}

std::vector<NamedGraph> all_graphs(int ranks) {
    std::vector<NamedGraph> graphs{{"linear_classifier", linear_classifier(ranks)},
                                   {"linear_classifier in 3 passes", linear_classifier(ranks, 3)},
                                   {"scatter_and_gather", scatter_and_gather(ranks)},
                                   {"ring_shift", ring_shift(ranks)}};
    if (ranks < 2) return graphs;
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                            CollectiveKind::broadcast, CollectiveKind::all_to_all})
        graphs.push_back({fmt::format("{} alone", to_string(kind)),
                          step::build_collective(kind, 4_KiB, DType::fp32, {ranks, ranks})});
    return graphs;
}

}  // namespace lockstep::contract
