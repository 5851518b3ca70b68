// Which attributes descriptors have: those that lockstep sets. Others are refused, so that a slip is noticed.
#include <algorithm>
#include <iterator>

#include "gpu_double/dnn/backend_descriptor.hpp"

namespace lockstep::gpu_double {
namespace {

constexpr cudnnBackendAttributeType_t descriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR, number = CUDNN_TYPE_INT64,
                                      flag = CUDNN_TYPE_BOOLEAN, element = CUDNN_TYPE_DATA_TYPE,
                                      handle = CUDNN_TYPE_HANDLE;
constexpr std::int64_t many = 1 << 20;

constexpr BackendRule rules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, number, 1, true, "UNIQUE_ID"},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, element, 1, true, "DATA_TYPE"},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, number, CUDNN_DIM_MAX, true, "DIMENSIONS"},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, number, CUDNN_DIM_MAX, true, "STRIDES"},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, number, 1, true, "BYTE_ALIGNMENT"},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, flag, 1, false, "IS_VIRTUAL"},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, flag, 1, false, "IS_BY_VALUE"},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, element, 1, true, "COMP_TYPE"},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC, descriptor, 1, true, "ADESC"},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC, descriptor, 1, true, "BDESC"},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC, descriptor, 1, true, "CDESC"},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC, descriptor, 1, true, "DESC"},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, true, "MODE"},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, element, 1, true, "MATH_PREC"},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, number, 1, false, "AXIS"},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, descriptor, 1, true,
     "PW_DESCRIPTOR"},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, descriptor, 1, true, "XDESC"},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, descriptor, 1, false, "BDESC"},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, descriptor, 1, false, "TDESC"},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, descriptor, 1, true, "YDESC"},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, true,
     "OPERATOR"},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, element, 1, true, "COMP_TYPE"},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, descriptor, 1, true, "XDESC"},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, descriptor, 1, true, "YDESC"},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC, descriptor, 1, true, "DESC"},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, descriptor, 1, true, "XDESC"},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, descriptor, 1, true, "YDESC"},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle, 1, true, "HANDLE"},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, descriptor, many, true, "OPS"},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, descriptor, 1, true,
     "OPERATION_GRAPH"},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, true, "MODE"},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, descriptor, 1, true, "ENGINE"},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, number, 1, true, "GLOBAL_INDEX"},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle, 1, true, "HANDLE"},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, descriptor, 1, true,
     "ENGINE_CONFIG"},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, number, many, true, "UNIQUE_IDS"},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, many, true,
     "DATA_POINTERS"},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, true,
     "WORKSPACE"},
};

}  // namespace

const BackendRule* find_rule(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t attribute) {
    const auto* found = std::find_if(std::begin(rules), std::end(rules), [&](const BackendRule& rule) {
        return rule.descriptor == type && rule.attribute == attribute;
    });
    return found == std::end(rules) ? nullptr : found;
}

bool is_known(cudnnBackendDescriptorType_t type) {
    return std::any_of(std::begin(rules), std::end(rules),
                       [&](const BackendRule& rule) { return rule.descriptor == type; });
}

const BackendRule* find_missing(const BackendDescriptor& d) {
    const auto* found = std::find_if(std::begin(rules), std::end(rules), [&](const BackendRule& rule) {
        return rule.descriptor == d.type && rule.is_required && !d.has(rule.attribute);
    });
    return found == std::end(rules) ? nullptr : found;
}

std::size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
        case CUDNN_TYPE_INT64: return sizeof(std::int64_t);
        case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_VOID_PTR: return sizeof(void*);
        default: return sizeof(int);  // enumerations
    }
}

}  // namespace lockstep::gpu_double
