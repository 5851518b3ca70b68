// The fields of everything a step graph consists of, listed once and used for writing and for reading.
#pragma once

#include "step/graph.hpp"

namespace lockstep::record {

/// fields(visit, object) calls visit(name, member) for each member; tag(alternative) names it among those of its
/// variant.
template <class V>
void fields(V& v, step::Gemm& x) {
    v("batch", x.batch), v("m", x.m), v("n", x.n), v("k", x.k), v("transpose_a", x.a), v("transpose_b", x.b);
}
template <class V>
void fields(V& v, step::Convolution& x) {
    v("n", x.n), v("in_channels", x.in_channels), v("height", x.height), v("width", x.width),
        v("out_channels", x.out_channels);
    v("kernel", x.kernel), v("stride", x.stride), v("padding", x.padding), v("groups", x.groups), v("pass", x.pass);
    v.added("kernel_width", x.kernel_width), v.added("padding_width", x.padding_width);
}
template <class V>
void fields(V& v, step::Attention& x) {
    v("part", x.part), v("ring_step", x.ring_step), v("ring_size", x.ring_size), v("batch", x.batch), v("seq", x.seq),
        v("heads", x.heads), v("kv_heads", x.kv_heads), v("head_dim", x.head_dim);
    v("causal", x.causal), v("dropout", x.dropout), v("dropout_stream", x.dropout_stream), v("algorithm", x.algorithm),
        v("pass", x.pass);
    v.added("memory", x.memory), v.added("relative", x.relative);
}
template <class V>
void fields(V& v, step::Norm& x) {
    v("norm", x.kind), v("rows", x.rows), v("features", x.features), v("spatial", x.spatial), v("epsilon", x.epsilon),
        v("pass", x.pass);
}
template <class V>
void fields(V& v, model::Rotary& x) {
    v("heads", x.heads), v("kv_heads", x.kv_heads), v("head_dim", x.head_dim), v("theta", x.theta);
}
template <class V>
void fields(V& v, step::Elementwise& x) {
    v("function", x.kind), v("count", x.count), v("width", x.width), v("batch", x.batch), v("positions", x.positions),
        v("factor", x.factor), v("rotary", x.rotary);
}
template <class V>
void fields(V& v, step::ColumnSum& x) {
    v("rows", x.rows), v("columns", x.columns);
}
template <class V>
void fields(V& v, step::PositionSum& x) {
    v("seq", x.seq), v("batch", x.batch), v("width", x.width), v("positions", x.positions);
}
template <class V>
void fields(V& v, step::Embedding& x) {
    v("tokens", x.tokens), v("vocab", x.vocab), v("hidden", x.hidden), v("pass", x.pass);
}
template <class V>
void fields(V& v, step::FirstToken& x) {
    v("batch", x.batch), v("seq", x.seq), v("width", x.width), v("pass", x.pass);
}
template <class V>
void fields(V& v, step::SoftmaxLoss& x) {
    v("part", x.part), v("rows", x.rows), v("classes", x.classes), v("gradient_scale", x.gradient_scale),
        v("pass", x.pass);
}
template <class V>
void fields(V& v, step::Pool& x) {
    v("pool", x.kind), v("n", x.n), v("channels", x.channels), v("height", x.height), v("width", x.width);
    v("kernel", x.kernel), v("stride", x.stride), v("padding", x.padding), v("pass", x.pass);
}
template <class V>
void fields(V& v, step::Dropout& x) {
    v("count", x.count), v("probability", x.probability), v("stream", x.stream), v("pass", x.pass);
}
template <class V>
void fields(V& v, step::OptimizerUpdate& x) {
    v("optimizer", x.kind), v("parameters", x.parameters), v("count", x.count), v("learning_rate", x.learning_rate);
    v("gradient_factor", x.gradient_factor), v("has_master", x.has_master), v("has_loss_scale", x.has_loss_scale);
}
template <class V>
void fields(V& v, step::Reorder& x) {
    v("count", x.count), v("target", x.target);
}
template <class V>
void fields(V& v, step::Cast& x) {
    v("count", x.count);
}
template <class V>
void fields(V& v, step::Fill& x) {
    v("count", x.count), v("value", x.value);
}
template <class V>
void fields(V& v, step::FoundInf& x) {
    v("count", x.count);
}
template <class V>
void fields(V& v, step::BlockTranspose& x) {
    v("rows", x.rows), v("blocks", x.blocks), v("width", x.width);
}
template <class V>
void fields(V& v, step::Slice& x) {
    v("rows", x.rows), v("width", x.width), v("first", x.first), v("kept", x.kept), v("pass", x.pass);
}
template <class V>
void fields(V& v, step::Route& x) {
    v("seq", x.seq), v("batch", x.batch), v("experts", x.experts), v("top_k", x.top_k),
        v("rows_per_expert", x.rows_per_expert);
    v("imbalance", x.imbalance), v("may_drop", x.may_drop), v("stream", x.stream);
}
template <class V>
void fields(V& v, step::Dispatch& x) {
    v("tokens", x.tokens), v("top_k", x.top_k), v("rows", x.rows), v("width", x.width), v("factor", x.factor),
        v("pass", x.pass);
}
template <class V>
void fields(V& v, step::Combine& x) {
    v("tokens", x.tokens), v("experts", x.experts), v("top_k", x.top_k), v("rows_per_expert", x.rows_per_expert);
    v("width", x.width), v("factor", x.factor), v("pass", x.pass);
}
template <class V>
void fields(V&, step::UpdateLossScale&) {}
template <class V>
void fields(V& v, step::Collective& x) {
    v("collective", x.kind), v("communicator", x.communicator), v("reduction", x.reduction), v("count", x.count),
        v("dtype", x.dtype);
    v.added("delay_s", x.delay);
}
template <class V>
void fields(V& v, step::Peer& x) {
    v("axis", x.axis), v("offset", x.offset), v("wraps", x.wraps);
}
template <class V>
void fields(V& v, step::Message& x) {
    v("peer", x.peer), v("tensor", x.tensor), v("tag", x.tag), v("micro_batch_offset", x.micro_batch_offset);
}
template <class V>
void fields(V& v, step::P2PGroup& x) {
    v("communicator", x.communicator), v("sends", x.sends), v("receives", x.receives);
}
template <class V>
void fields(V& v, step::Copy& x) {
    v("copy", x.kind), v("count", x.count), v("factor", x.factor), v("least_time_s", x.least_time);
}
template <class V>
void fields(V& v, step::HostSync& x) {
    v("reason", x.reason);
}
template <class V>
void fields(V&, step::StreamWait&) {}
template <class V>
void fields(V& v, step::Write& x) {
    v("tensor", x.tensor), v("access", x.access);
}
template <class V>
void fields(V& v, step::Stream& x) {
    v("lane", x.lane), v("communicator", x.communicator), v("name", x.name);
}
template <class V>
void fields(V& v, step::Op& x) {
    v("name", x.name), v("phase", x.phase), v("kind", x.kind), v("in", x.in), v("out", x.out), v("after", x.after),
        v("stream", x.stream), v("layer", x.layer);
    v("math", x.math), v("flops", x.flops), v("bytes", x.bytes), v("host_time_s", x.host_time);
    v.added("is_fused", x.is_fused);
    v("is_last_micro_batch_only", x.is_last_micro_batch_only);
}
template <class V>
void fields(V& v, step::RingPart& x) {
    v("axis", x.axis), v("offset", x.offset);
}
template <class V>
void fields(V& v, step::View& x) {
    v("of", x.of), v("first_element", x.first_element), v("ring", x.ring);
}
template <class V>
void fields(V& v, step::Initial& x) {
    v("initial", x.kind), v("scale", x.scale), v("range", x.range), v("stream", x.stream);
}
template <class V>
void fields(V& v, step::Shard& x) {
    v("dimension", x.dimension), v("axis", x.axis), v("order", x.order);
}
template <class V>
void fields(V& v, step::Tensor& x) {
    v("name", x.name), v("shape", x.shape.extents), v("shards", x.shards), v("dtype", x.dtype), v("role", x.role),
        v("lifetime", x.lifetime);
    v("layout", x.layout), v("view", x.view), v("initial", x.initial), v("slots", x.slots), v("parameter", x.parameter),
        v("part_of", x.part_of);
}
template <class V>
void fields(V& v, step::Communicator& x) {
    v("name", x.name), v("axes", x.axes), v("size", x.size), v("stages", x.stages);
}
template <class V>
void fields(V& v, step::Block& x) {
    v("name", x.name), v("phase", x.phase), v("ops", x.ops), v("first_op", x.first_op);
}
template <class V>
void fields(V& v, step::Issue& x) {
    v("block", x.block), v("micro_batch", x.micro_batch), v("chunk", x.chunk);
}
template <class V>
void fields(V& v, step::RankClass& x) {
    v("name", x.name), v("issues", x.program.issues), v("multiplicity", x.multiplicity),
        v("representative", x.representative);
}
template <class V>
void fields(V& v, plan::Mesh& x) {
    v("tp", x.tp), v("cp", x.cp), v("ep", x.ep), v("dp", x.dp), v("replica", x.replica), v("pp", x.pp);
}
template <class V>
void fields(V& v, machine::Placement& x) {
    v("ranks", x.ranks), v("ranks_per_node", x.ranks_per_node);
}
template <class V>
void fields(V& v, step::StepGraph& x) {
    v("name", x.name), v("mesh", x.mesh), v("placement", x.placement), v("precision", x.precision),
        v("micro_batch", x.micro_batch);
    v("micro_batches", x.micro_batches), v("global_batch", x.global_batch), v("seed", x.seed),
        v("run_ahead", x.run_ahead);
    v("is_blocking_launch", x.is_blocking_launch), v("model_flops", x.model_flops), v("tensors", x.tensors),
        v("streams", x.streams);
    v("communicators", x.communicators), v("blocks", x.blocks), v("classes", x.classes),
        v("class_of_stage", x.class_of_stage);
    v("loss", x.loss), v("reduced_gradients", x.reduced_gradients);
}

constexpr const char* tag(const step::Gemm*) { return "gemm"; }
constexpr const char* tag(const step::Convolution*) { return "convolution"; }
constexpr const char* tag(const step::Attention*) { return "attention"; }
constexpr const char* tag(const step::Norm*) { return "norm"; }
constexpr const char* tag(const step::Elementwise*) { return "elementwise"; }
constexpr const char* tag(const step::ColumnSum*) { return "column_sum"; }
constexpr const char* tag(const step::Embedding*) { return "embedding"; }
constexpr const char* tag(const step::FirstToken*) { return "first_token"; }
constexpr const char* tag(const step::SoftmaxLoss*) { return "softmax_loss"; }
constexpr const char* tag(const step::Pool*) { return "pool"; }
constexpr const char* tag(const step::Dropout*) { return "dropout"; }
constexpr const char* tag(const step::OptimizerUpdate*) { return "optimizer_update"; }
constexpr const char* tag(const step::Reorder*) { return "reorder"; }
constexpr const char* tag(const step::Cast*) { return "cast"; }
constexpr const char* tag(const step::Fill*) { return "fill"; }
constexpr const char* tag(const step::FoundInf*) { return "found_inf"; }
constexpr const char* tag(const step::PositionSum*) { return "position_sum"; }
constexpr const char* tag(const step::BlockTranspose*) { return "block_transpose"; }
constexpr const char* tag(const step::Slice*) { return "slice"; }
constexpr const char* tag(const step::Route*) { return "route"; }
constexpr const char* tag(const step::Dispatch*) { return "dispatch"; }
constexpr const char* tag(const step::Combine*) { return "combine"; }
constexpr const char* tag(const step::StreamWait*) { return "stream_wait"; }
constexpr const char* tag(const step::UpdateLossScale*) { return "update_loss_scale"; }
constexpr const char* tag(const step::Collective*) { return "collective"; }
constexpr const char* tag(const step::P2PGroup*) { return "p2p_group"; }
constexpr const char* tag(const step::Copy*) { return "copy"; }
constexpr const char* tag(const step::HostSync*) { return "host_sync"; }

}  // namespace lockstep::record
