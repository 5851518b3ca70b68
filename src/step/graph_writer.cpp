#include "step/graph_writer.hpp"

#include "step/op_cost.hpp"

namespace lockstep::step {

std::uint64_t random_stream(std::string_view name) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return hash;
}

GraphWriter::GraphWriter(const BuildInput& input) : input_(input) {
    add_stream({Stream::Lane::compute, CommunicatorId{}, "compute"});
}

TensorId GraphWriter::add_view(std::string name, TensorId of, std::int64_t first_element, Shape shape, Layout layout) {
    Tensor view = graph_.tensor(of);
    const View base = view.view.value_or(View{of, 0});
    view.name = std::move(name);
    view.view = View{base.of, base.first_element + first_element};
    view.shape = std::move(shape);
    view.layout = layout;
    view.initial = {};
    return add(std::move(view));
}

StreamId GraphWriter::add_stream(Stream stream) {
    graph_.streams.push_back(std::move(stream));
    return StreamId{static_cast<std::int32_t>(graph_.streams.size()) - 1};
}

CommunicatorId GraphWriter::add_communicator(Communicator communicator) {
    graph_.communicators.push_back(std::move(communicator));
    return CommunicatorId{static_cast<std::int32_t>(graph_.communicators.size()) - 1};
}

BlockId GraphWriter::add_block(std::string name, Phase phase) {
    graph_.blocks.push_back({std::move(name), phase, {}, 0});
    return BlockId{static_cast<std::int32_t>(graph_.blocks.size()) - 1};
}

namespace {

bool is_matrix_product(const OpKind& kind) {
    const Compute* compute = std::get_if<Compute>(&kind);
    return compute && (std::holds_alternative<Gemm>(*compute) || std::holds_alternative<Convolution>(*compute) ||
                       std::holds_alternative<Attention>(*compute));
}

}  // namespace

Op& GraphWriter::add_op(std::string name, OpKind kind, std::vector<TensorId> in, std::vector<Write> out,
                        model::LayerId layer) {
    Op& op = add_op_on(compute_stream(), std::move(name), std::move(kind), std::move(in), std::move(out));
    op.layer = layer;
    return op;
}

Op& GraphWriter::add_op_on(StreamId stream, std::string name, OpKind kind, std::vector<TensorId> in,
                           std::vector<Write> out) {
    Block& block = graph_.blocks[open_.index()];
    Op op;
    op.name = std::move(name);
    op.phase = block.phase;
    op.kind = std::move(kind);
    op.in = std::move(in);
    op.out = std::move(out);
    op.stream = stream;
    op.math = is_matrix_product(op.kind) ? math_type(input_.precision) : MathType::fp32;
    op.flops = flops_of(op);
    op.bytes = bytes_of(graph_, op);
    op.host_time = input_.framework.host_per_op;
    return block.ops.emplace_back(std::move(op));
}

StepGraph GraphWriter::take() {
    std::int32_t first = 0;
    for (Block& block : graph_.blocks) {
        block.first_op = first;
        first += static_cast<std::int32_t>(block.ops.size());
    }
    return std::move(graph_);
}

}  // namespace lockstep::step
