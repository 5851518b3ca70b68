// Descriptors of the backend interface of the cuDNN double: attributes by name, as the caller set them.
#pragma once

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu_double/dnn/backend_graph.hpp"
#include "gpu_double/dnn/state.hpp"

namespace lockstep::gpu_double {

struct BackendDescriptor;
using BackendPointer = std::shared_ptr<BackendDescriptor>;

struct BackendAttribute {
    std::int64_t count = 0;
    std::vector<std::byte> values;            ///< of plain types
    std::vector<BackendPointer> descriptors;  ///< finalized ones
};

struct BackendDescriptor {
    explicit BackendDescriptor(cudnnBackendDescriptorType_t t) : type(t) {}

    cudnnBackendDescriptorType_t type;
    bool is_finalized = false;
    std::map<int, BackendAttribute> attributes;  ///< by cudnnBackendAttributeName_t
    std::shared_ptr<const Graph> graph;          ///< of an operation graph, and all that is made from one

    bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }
    template <class T>
    std::vector<T> values(cudnnBackendAttributeName_t name) const {
        const auto found = attributes.find(name);
        if (found == attributes.end()) return {};
        std::vector<T> values(static_cast<std::size_t>(found->second.count));
        std::memcpy(values.data(), found->second.values.data(), values.size() * sizeof(T));
        return values;
    }
    template <class T>
    T value(cudnnBackendAttributeName_t name, T otherwise) const {
        const auto found = attributes.find(name);
        if (found != attributes.end()) std::memcpy(&otherwise, found->second.values.data(), sizeof otherwise);
        return otherwise;
    }
    BackendPointer descriptor(cudnnBackendAttributeName_t name) const {
        const auto found = attributes.find(name);
        return found == attributes.end() ? nullptr : found->second.descriptors.front();
    }
};

using BackendTable = HandleTable<cudnnBackendDescriptor_t, BackendDescriptor>;
BackendTable& backend_descriptors();

/// What the caller may set on a descriptor of some type.
struct BackendRule {
    cudnnBackendDescriptorType_t descriptor;
    cudnnBackendAttributeName_t attribute;
    cudnnBackendAttributeType_t type;
    std::int64_t most = 1;  ///< values
    bool is_required = true;
    const char* name = "";  ///< of the attribute
};
/// Null when there is none.
const BackendRule* find_rule(cudnnBackendDescriptorType_t descriptor, cudnnBackendAttributeName_t attribute);
/// Bytes of a value of a plain type.
std::size_t size_of(cudnnBackendAttributeType_t type);
bool is_known(cudnnBackendDescriptorType_t type);
/// The first required attribute that is missing; null: none.
const BackendRule* find_missing(const BackendDescriptor& descriptor);

/// What is wrong with a descriptor that has all it needs, by itself; empty: nothing. Makes the graph of an operation
/// graph.
std::string check_backend(BackendDescriptor& descriptor);

}  // namespace lockstep::gpu_double
