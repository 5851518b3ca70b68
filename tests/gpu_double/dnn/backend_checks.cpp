// What a descriptor with all its attributes must be like to be finalized.
#include <fmt/format.h>

#include "gpu_double/dnn/backend_descriptor.hpp"

namespace lockstep::gpu_double {
namespace {

GraphTensor tensor_of(const BackendDescriptor& d) {
    return {d.value<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0),
            d.value(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT),
            d.values<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
            d.values<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
            d.value<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1),
            d.value(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false),
            d.value(CUDNN_ATTR_TENSOR_IS_BY_VALUE, false)};
}

std::string check_tensor(const BackendDescriptor& d) {
    const GraphTensor t = tensor_of(d);
    if (t.id < 1) return "a tensor's id must be positive";
    if (t.extents.size() != t.strides.size())
        return fmt::format("tensor {} has {} extents and {} strides", t.id, t.extents.size(), t.strides.size());
    for (std::size_t i = 0; i < t.extents.size(); ++i)
        if (t.extents[i] < 1 || t.strides[i] < 1)
            return fmt::format("tensor {} has extent {} and stride {} in dimension {}", t.id, t.extents[i],
                               t.strides[i], i);
    if (t.is_virtual && t.is_by_value) return fmt::format("tensor {} is virtual and by value", t.id);
    if (t.is_by_value && t.elements() != 1) return fmt::format("tensor {} by value is not one number", t.id);
    if (t.is_in_memory() && !element_of(t.type)) return fmt::format("tensor {} in memory is not of floats", t.id);
    return {};
}

/// Adds a tensor of an operation to the graph; 0: there is none.
std::int64_t add(Graph& graph, const BackendDescriptor& operation, cudnnBackendAttributeName_t name,
                 std::string& wrong) {
    const BackendPointer d = operation.descriptor(name);
    if (d == nullptr) return 0;
    if (d->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        wrong = "an operation's tensor is another descriptor";
        return 0;
    }
    const GraphTensor tensor = tensor_of(*d);
    const auto [place, is_new] = graph.tensors.try_emplace(tensor.id, tensor);
    if (!is_new && place->second != tensor) wrong = fmt::format("two tensors have the id {}", tensor.id);
    return tensor.id;
}

/// Where a pass keeps what: its image, weight and result, or their gradients.
struct ConvolutionNames {
    ConvolutionPass pass;
    cudnnBackendAttributeName_t image, weight, result, how, alpha, beta;
};
std::optional<ConvolutionNames> convolution_names(cudnnBackendDescriptorType_t type) {
    using Pass = ConvolutionPass;
    if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
        return ConvolutionNames{Pass::forward,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
        return ConvolutionNames{Pass::backward_data,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
        return ConvolutionNames{Pass::backward_weights,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    return std::nullopt;
}

GraphOperation convolution_of(Graph& graph, const BackendDescriptor& d, const ConvolutionNames& names,
                              std::string& wrong) {
    GraphOperation o;
    o.kind = GraphOperation::Kind::convolution;
    GraphOperation::Convolution& c = o.convolution;
    c.pass = names.pass;
    c.image = add(graph, d, names.image, wrong);
    c.weight = add(graph, d, names.weight, wrong);
    c.result = add(graph, d, names.result, wrong);
    const BackendPointer how = d.descriptor(names.how);
    c.stride = how->values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    c.padding = how->values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    c.alpha = d.value(names.alpha, 1.0F);
    c.beta = d.value(names.beta, 0.0F);
    if (how->values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) != c.padding ||
        how->values<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS) != std::vector<std::int64_t>{1, 1} ||
        how->value(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CONVOLUTION) != CUDNN_CROSS_CORRELATION ||
        how->value(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_HALF) != CUDNN_DATA_FLOAT)
        wrong = "the double has no convolution that is dilated, flipped, padded unevenly or not in fp32";
    const std::int64_t all[] = {c.image, c.weight, c.result};
    const int made = c.pass == ConvolutionPass::forward ? 2 : c.pass == ConvolutionPass::backward_data ? 0 : 1;
    o.y = all[made];
    o.x = all[made == 0 ? 1 : 0];
    o.b = all[made == 2 ? 1 : 2];
    return o;
}

std::optional<GraphOperation> operation_of(Graph& graph, const BackendDescriptor& d, std::string& wrong) {
    GraphOperation o;
    const auto tensor = [&](cudnnBackendAttributeName_t name) { return add(graph, d, name, wrong); };
    if (const auto names = convolution_names(d.type)) return convolution_of(graph, d, *names, wrong);
    switch (d.type) {
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            o.kind = GraphOperation::Kind::matmul;
            o.x = tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
            o.b = tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
            o.y = tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
            return o;
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
            const BackendPointer how = d.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
            o.pointwise = how->value(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_IDENTITY);
            o.axis = how->value<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
            o.x = tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
            o.b = tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
            o.t = tensor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
            o.y = tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
            return o;
        }
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            o.kind = GraphOperation::Kind::reduction;
            o.reduction = d.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                              ->value(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_ADD);
            o.x = tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
            o.y = tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
            return o;
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
            o.kind = GraphOperation::Kind::reshape;
            o.x = tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
            o.y = tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
            return o;
        default: return std::nullopt;
    }
}

std::string check_single(const BackendDescriptor& d) {
    Graph graph;
    std::string wrong;
    const auto operation = operation_of(graph, d, wrong);
    return wrong.empty() ? check_operation(graph, *operation) : wrong;
}

std::string make_graph(BackendDescriptor& d) {
    auto graph = std::make_shared<Graph>();
    std::string wrong;
    for (const BackendPointer& each : d.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors) {
        const auto operation = operation_of(*graph, *each, wrong);
        if (!operation) return "a graph's operation is another descriptor";
        if (!wrong.empty()) return wrong;
        graph->operations.push_back(*operation);
    }
    wrong = sort_operations(*graph);
    if (wrong.empty()) d.graph = std::move(graph);
    return wrong;
}

std::string take_graph(BackendDescriptor& d, cudnnBackendAttributeName_t from, cudnnBackendDescriptorType_t type) {
    const BackendPointer other = d.descriptor(from);
    if (other->type != type || other->graph == nullptr) return "what it is made from is another descriptor";
    d.graph = other->graph;
    return {};
}

}  // namespace

std::string check_backend(BackendDescriptor& d) {
    switch (d.type) {
        case CUDNN_BACKEND_TENSOR_DESCRIPTOR: return check_tensor(d);
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: return check_single(d);
        case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return make_graph(d);
        case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
            return take_graph(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
            return take_graph(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
            if (d.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count !=
                d.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count)
                return "a variant pack has not one address for each id";
            return {};
        default: return {};
    }
}

}  // namespace lockstep::gpu_double
