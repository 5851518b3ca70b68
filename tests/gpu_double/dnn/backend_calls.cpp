// The backend interface: descriptors with attributes, graphs, heuristics with a few proposals, plans, calls of them.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gpu_double/dnn/backend_descriptor.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::gpu_double {
namespace {

struct Engine {
    std::int64_t index, workspace;
    bool has_tensor_cores, is_for_convolutions;
};
// In the order of the heuristics; one needs more workspace than anybody gives, the last is the fallback's.
constexpr Engine engines[] = {{5, std::int64_t{1} << 30, true, true}, {6, 4096, true, false}, {7, 8192, false, false}};
constexpr Engine fallback{1, 0, false, true};

Engine engine_of(const BackendDescriptor& d) {
    const BackendPointer proposal = d.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const auto index = (proposal ? *proposal : d).value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
    for (const Engine& engine : engines)
        if (engine.index == index) return engine;
    return fallback;
}

bool has_convolution(const Graph& graph) {
    return std::any_of(graph.operations.begin(), graph.operations.end(),
                       [](const GraphOperation& o) { return o.kind == GraphOperation::Kind::convolution; });
}

/// What the heuristics propose for their graph.
std::vector<std::int64_t> proposals(const BackendDescriptor& heuristics) {
    const bool is_convolution = has_convolution(*heuristics.graph);
    if (heuristics.value(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A) == CUDNN_HEUR_MODE_FALLBACK)
        return is_convolution ? std::vector{fallback.index} : std::vector<std::int64_t>{};
    std::vector<std::int64_t> indices;
    for (const Engine& engine : engines)
        if (is_convolution || !engine.is_for_convolutions) indices.push_back(engine.index);
    return indices;
}

std::vector<std::string> leaks() {
    const std::size_t left = backend_descriptors().all().size();
    if (left == 0) return {};
    return {fmt::format("{} backend descriptors of cuDNN were not destroyed", left)};
}

BackendPointer find(cudnnBackendDescriptor_t descriptor) { return backend_descriptors().find(descriptor); }

cudnnStatus_t set_descriptors(BackendDescriptor& d, const BackendRule& rule, std::int64_t count, const void* values) {
    BackendAttribute attribute{count, {}, {}};
    for (std::int64_t i = 0; i < count; ++i) {
        const BackendPointer other = find(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
        if (other == nullptr || !other->is_finalized) {
            dnn_misuse(
                fmt::format("cudnnBackendSetAttribute: value {} of {} is not a finalized descriptor", i, rule.name));
            return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
        }
        attribute.descriptors.push_back(other);
    }
    d.attributes[rule.attribute] = std::move(attribute);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set(BackendDescriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t count, const void* values) {
    const BackendRule* rule = find_rule(d.type, name);
    if (rule == nullptr)
        return dnn_misuse(fmt::format("cudnnBackendSetAttribute: a descriptor of type {} has no attribute {}",
                                      static_cast<int>(d.type), static_cast<int>(name)));
    if (rule->type != type || count < 1 || count > rule->most || values == nullptr)
        return dnn_misuse(fmt::format("cudnnBackendSetAttribute: {} values of type {} for {}", count,
                                      static_cast<int>(type), rule->name));
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return set_descriptors(d, *rule, count, values);
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(type);
    BackendAttribute attribute{count, std::vector<std::byte>(bytes), {}};
    std::memcpy(attribute.values.data(), values, bytes);
    if (type == CUDNN_TYPE_HANDLE && !dnn().handles.find(*static_cast<const cudnnHandle_t*>(values)))
        return dnn_misuse("cudnnBackendSetAttribute: no such handle (destroyed?)");
    d.attributes[name] = std::move(attribute);
    return CUDNN_STATUS_SUCCESS;
}

/// Fills descriptors that the caller made.
cudnnStatus_t give_descriptors(const BackendDescriptor& from, cudnnBackendDescriptorType_t type, std::int64_t room,
                               std::int64_t* count, void* values, const std::vector<std::int64_t>& indices) {
    *count = static_cast<std::int64_t>(indices.size());
    if (room == 0) return CUDNN_STATUS_SUCCESS;
    *count = std::min(*count, room);
    for (std::int64_t i = 0; i < *count; ++i) {
        const BackendPointer target = find(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
        if (target == nullptr || target->type != type || target->is_finalized)
            return dnn_misuse("cudnnBackendGetAttribute: no room for a descriptor of its type");
        const std::int64_t index = indices[static_cast<std::size_t>(i)];
        BackendAttribute attribute{1, std::vector<std::byte>(sizeof index), {}};
        std::memcpy(attribute.values.data(), &index, sizeof index);
        target->attributes[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = std::move(attribute);
        target->graph = from.graph;
        target->is_finalized = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give_notes(const BackendDescriptor& d, cudnnBackendAttributeType_t type, std::int64_t room,
                         std::int64_t* count, void* values) {
    if (type != CUDNN_TYPE_NUMERICAL_NOTE) return dnn_misuse("cudnnBackendGetAttribute: these are numerical notes");
    *count = engine_of(d).has_tensor_cores ? 1 : 0;
    const cudnnBackendNumericalNote_t note = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    if (*count > 0 && room > 0) std::memcpy(values, &note, sizeof note);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get(const BackendDescriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t room, std::int64_t* count, void* values) {
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && d.graph != nullptr)
        return give_descriptors(d, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, room, count, values, proposals(d));
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && d.graph != nullptr)
        return give_descriptors(d, CUDNN_BACKEND_ENGINE_DESCRIPTOR, room, count, values,
                                {d.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1)});
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && d.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        return give_notes(d, type, room, count, values);
    std::int64_t value = 0;
    if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && d.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        value = d.value<std::int64_t>(name, -1);
    else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        value = engine_of(d).workspace;
    else
        return dnn_misuse(fmt::format("cudnnBackendGetAttribute: attribute {} of a descriptor of type {}",
                                      static_cast<int>(name), static_cast<int>(d.type)));
    if (type != CUDNN_TYPE_INT64 || room != 1) return dnn_misuse("cudnnBackendGetAttribute: it is one number");
    *static_cast<std::int64_t*>(values) = value;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}

/// Takes addresses out of a variant pack; what is wrong with them, or nothing.
std::string take_addresses(const BackendDescriptor& pack, GraphCall& call) {
    const auto ids = pack.values<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto addresses = pack.values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto found = call.graph->tensors.find(ids[i]);
        if (found == call.graph->tensors.end()) return fmt::format("the plan has no tensor {}", ids[i]);
        const GraphTensor& t = found->second;
        if (t.is_virtual) return fmt::format("tensor {} is virtual, it has no address", t.id);
        if (t.is_by_value) {
            call.numbers[t.id] = *static_cast<const float*>(addresses[i]);
            continue;
        }
        if (reinterpret_cast<std::uintptr_t>(addresses[i]) % static_cast<std::uintptr_t>(t.alignment) != 0)
            return fmt::format("tensor {} is less aligned than its descriptor says", t.id);
        const std::size_t bytes = static_cast<std::size_t>(t.span()) * size_of(*element_of(t.type));
        if (!expect_device_range(addresses[i], bytes, fmt::format("cudnnBackendExecute: tensor {}", t.id).c_str()))
            return "an address";
        call.memory[t.id] = addresses[i];
    }
    for (const auto& [id, tensor] : call.graph->tensors)
        if (!tensor.is_virtual && !call.memory.contains(id) && !call.numbers.contains(id))
            return fmt::format("tensor {} has no address", id);
    return {};
}

cudnnStatus_t execute(cudnnHandle_t handle, const BackendDescriptor& plan, const BackendDescriptor& pack, bool hangs) {
    const auto owner = dnn().handles.find(handle);
    if (!owner) return dnn_misuse("cudnnBackendExecute: no such handle (destroyed?)");
    const Engine engine = engine_of(plan);
    GraphCall call{plan.graph, {}, {}, engine.has_tensor_cores};
    if (const std::string wrong = take_addresses(pack, call); !wrong.empty())
        return dnn_misuse(fmt::format("cudnnBackendExecute: {}", wrong));
    void* workspace = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
    const auto workspace_bytes = static_cast<std::size_t>(engine.workspace);
    if (!expect_device_range(workspace, workspace_bytes, "cudnnBackendExecute: the workspace"))
        return CUDNN_STATUS_BAD_PARAM;
    const bool is_queued = enqueue(owner->stream, [call, workspace, workspace_bytes, hangs] {
        if (hangs) wait_forever();
        if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);  // nobody may expect anything of it
        run_graph(call);
    });
    return is_queued ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t no_descriptor(const char* function) {
    return dnn_misuse(fmt::format("{}: no such descriptor (destroyed?), or not in this state", function));
}

}  // namespace

BackendTable& backend_descriptors() {
    static BackendTable& table = *[] {
        add_leak_check(leaks);
        return new BackendTable(28);
    }();
    return table;
}

}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                      cudnnBackendDescriptor_t* descriptor) {
    return dnn_call("cudnnBackendCreateDescriptor", [&](bool) {
        if (!is_known(type))
            return dnn_misuse(fmt::format("cudnnBackendCreateDescriptor: type {}", static_cast<int>(type)));
        *descriptor = backend_descriptors().add(std::make_shared<BackendDescriptor>(type));
        return CUDNN_STATUS_SUCCESS;
    });
}

extern "C" cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    return dnn_call("cudnnBackendDestroyDescriptor", [&](bool) {
        return backend_descriptors().remove(descriptor) ? CUDNN_STATUS_SUCCESS
                                                        : no_descriptor("cudnnBackendDestroyDescriptor");
    });
}

extern "C" cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                  cudnnBackendAttributeType_t type, std::int64_t count,
                                                  const void* values) {
    return dnn_call("cudnnBackendSetAttribute", [&](bool) {
        const BackendPointer d = find(descriptor);
        if (d == nullptr || d->is_finalized) return no_descriptor("cudnnBackendSetAttribute");
        return set(*d, name, type, count, values);
    });
}

extern "C" cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                  cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                                  std::int64_t room, std::int64_t* count, void* values) {
    return dnn_call("cudnnBackendGetAttribute", [&](bool) {
        const BackendPointer d = find(descriptor);
        if (d == nullptr || !d->is_finalized) return no_descriptor("cudnnBackendGetAttribute");
        return get(*d, name, type, room, count, values);
    });
}

/// A test can make the n-th plan fail by "cudnnBackendFinalize.plan".
extern "C" cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    const BackendPointer d = find(descriptor);
    const bool is_plan = d != nullptr && d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    return dnn_call(is_plan ? "cudnnBackendFinalize.plan" : "cudnnBackendFinalize", [&](bool) {
        if (d == nullptr || d->is_finalized) return no_descriptor("cudnnBackendFinalize");
        if (const BackendRule* missing = find_missing(*d))
            return dnn_misuse(fmt::format("cudnnBackendFinalize: a descriptor of type {} has no {}",
                                          static_cast<int>(d->type), missing->name));
        if (const std::string wrong = check_backend(*d); !wrong.empty())
            return dnn_misuse(fmt::format("cudnnBackendFinalize: {}", wrong));
        d->is_finalized = true;
        return CUDNN_STATUS_SUCCESS;
    });
}

extern "C" cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                             cudnnBackendDescriptor_t pack) {
    return dnn_call("cudnnBackendExecute", [&](bool hangs) {
        const BackendPointer p = find(plan), v = find(pack);
        if (p == nullptr || v == nullptr || !p->is_finalized || !v->is_finalized || p->graph == nullptr ||
            v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
            return no_descriptor("cudnnBackendExecute");
        return execute(handle, *p, *v, hangs);
    });
}
