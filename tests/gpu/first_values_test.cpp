// What tensors hold before the first step beside the CPU's.
#include "gpu/first_values.hpp"

#include "base/error.hpp"
#include "cpu/first_values.hpp"
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using Kind = step::Initial::Kind;

Values first_values_on_gpu(const step::Initial& initial, std::int32_t slot_number, const Slot& target) {
    const DeviceTensor tensor(target);
    const Stream stream = make_stream();
    write_first_values(initial, test_seed, slot_number, tensor.operand(), stream.get());
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    return tensor.read();
}
Values first_values_on_cpu(const step::Initial& initial, std::int32_t slot_number, const Slot& target) {
    const bool is_last = target.layout == step::Layout::channels_last;
    cpu::testing::Tensor tensor(target.shape, target.values,
                                is_last ? cpu::Order::channels_last : cpu::Order::row_major, target.dtype);
    static_cast<step::Place&>(tensor.operand) = target;
    cpu::write_first_values(initial, test_seed, slot_number, tensor.operand);
    return tensor.read();
}

TEST(GpuFirstValues, are_keyed_by_the_place_in_the_whole_tensor) {
    plan::Mesh mesh;
    mesh.cp = 2;
    const std::vector<step::Shard> zigzag{{0, plan::Axis::cp, step::Shard::Order::zigzag}};
    for (const Kind kind : {Kind::zero, Kind::one, Kind::value, Kind::normal})
        for (const DType type : {DType::fp32, DType::bf16})
            for (const std::int32_t slot_number : {0, 2}) {
                const step::Initial initial{kind, 0.25, 0, 9};
                for (const Slot& target :
                     {slot({3, 7}, normal_values(21, 1), type), part({4, 3}, zigzag, mesh, 1, {}, type),
                      slot({2, 3, 2, 2}, {}, type, step::Layout::channels_last)})
                    EXPECT_EQ(first_values_on_gpu(initial, slot_number, target),
                              first_values_on_cpu(initial, slot_number, target));
            }
}

TEST(GpuFirstValues, fp16_is_the_rounded_fp32) {
    const step::Initial initial{Kind::normal, 0.5, 0, 9};
    const Values exact = first_values_on_gpu(initial, 0, slot({40})),
                 half = first_values_on_gpu(initial, 0, slot({40}, {}, DType::fp16));
    for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_EQ(half[i], load(store<__half>(exact[i])));
}

TEST(GpuFirstValues, ids_and_labels_are_below_their_range) {
    for (const Kind kind : {Kind::token_ids, Kind::class_labels}) {
        const step::Initial initial{kind, 0, 1000, 4};
        const Slot target = slot({6, 5}, {}, DType::int32);
        EXPECT_EQ(first_values_on_gpu(initial, 1, target), first_values_on_cpu(initial, 1, target));
    }
    EXPECT_THROW(first_values_on_gpu({Kind::one}, 0, slot({3}, {}, DType::uint8)), LogicError);
}

/// A flat tensor of 16 elements with a matrix at 2, an image weight at 8, and a part of it for each of 2 ranks.
step::StepGraph flat_graph(step::Layout layout) {
    step::StepGraph graph;
    graph.seed = test_seed;
    graph.mesh.dp = 2;
    const auto add = [&](step::Tensor tensor) {
        graph.tensors.push_back(std::move(tensor));
        return step::TensorId{static_cast<std::int32_t>(graph.tensors.size() - 1)};
    };
    step::Tensor flat;
    flat.shape = {16};
    const step::TensorId flat_id = add(flat);
    const auto view = [&](Shape shape, std::int64_t first, step::Initial initial, std::int32_t parameter) {
        step::Tensor tensor;
        tensor.shape = std::move(shape);
        tensor.view = step::View{flat_id, first, {}};
        tensor.initial = initial;
        tensor.layout = tensor.shape.rank() == 4 ? layout : step::Layout::row_major;
        tensor.parameter = model::ParameterId{parameter};
        add(tensor);
    };
    view({2, 3}, 2, {Kind::normal, 1, 0, 5}, 0);
    view({1, 2, 1, 3}, 8, {Kind::normal, 1, 0, 6}, 1);
    step::Tensor part;
    part.name = "part";
    part.shape = {8};
    part.shards = {{0, plan::Axis::dp}};
    part.part_of = flat_id;
    add(part);
    return graph;
}
Values part_on_gpu(const step::StepGraph& graph, int rank, DType type) {
    const step::TensorId id{static_cast<std::int32_t>(graph.tensors.size() - 1)};
    const DeviceTensor tensor(part({8}, graph.tensors.back().shards, graph.mesh, rank, normal_values(16, 1), type));
    const Stream stream = make_stream();
    write_part_of_views(graph, rank, id, tensor.operand(), stream.get());
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    return tensor.read();
}

TEST(GpuFirstValues, parts_of_a_flat_tensor_hold_those_of_the_parameters_in_it) {
    for (const step::Layout layout : {step::Layout::row_major, step::Layout::channels_last})
        for (int rank = 0; rank < 2; ++rank)
            for (const DType type : {DType::fp32, DType::bf16}) {
                const step::StepGraph graph = flat_graph(layout);
                const step::TensorId id{static_cast<std::int32_t>(graph.tensors.size() - 1)};
                const Slot target = part({8}, graph.tensors.back().shards, graph.mesh, rank, {}, type);
                cpu::testing::Tensor tensor(target.shape, target.values, cpu::Order::row_major, type);
                static_cast<step::Place&>(tensor.operand) = target;
                cpu::write_part_of_views(graph, rank, id, tensor.operand);
                EXPECT_EQ(part_on_gpu(graph, rank, type), tensor.read());
            }
}

TEST(GpuFirstValues, a_weight_in_a_flat_tensor_begins_as_it_is_stored) {
    const step::StepGraph graph = flat_graph(step::Layout::channels_last);
    const Values first = first_values_on_cpu({Kind::normal, 1, 0, 6}, 0, slot({1, 2, 1, 3}));
    const Values stored{first[0], first[3], first[1], first[4], first[2], first[5]};
    const Values part = part_on_gpu(graph, 1, DType::fp32);
    EXPECT_EQ(Values(part.begin(), part.begin() + 6), stored);
}

}  // namespace
}  // namespace lockstep::gpu::testing
