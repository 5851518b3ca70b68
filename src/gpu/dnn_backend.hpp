// One owner for each descriptor of cuDNN's backend interface.
#pragma once

#include <cudnn.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>

namespace lockstep::gpu {

/// One backend descriptor. Calls that fail throw RuntimeError.
class DnnDescriptor {
public:
    using Where = std::source_location;
    explicit DnnDescriptor(cudnnBackendDescriptorType_t type, Where where = Where::current());

    void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values,
             Where where = Where::current());
    /// Of bool alone: an array would turn into one.
    void set(cudnnBackendAttributeName_t name, std::same_as<bool> auto value, Where where = Where::current()) {
        const bool flag = value;
        set(name, CUDNN_TYPE_BOOLEAN, 1, &flag, where);
    }
    void set(cudnnBackendAttributeName_t name, std::int64_t value, Where where = Where::current());
    void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values, Where where = Where::current());
    void set(cudnnBackendAttributeName_t name, cudnnDataType_t value, Where where = Where::current());
    void set(cudnnBackendAttributeName_t name, const DnnDescriptor& value, Where where = Where::current());
    void finalize(Where where = Where::current());
    /// The same where a device may not be able to: false, and `why_not` says what cuDNN says.
    bool try_finalize(std::string& why_not);

    /// How many values an attribute has.
    std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       Where where = Where::current()) const;
    /// Copies values out, or for descriptors into descriptors that are there. Returns how many there were.
    std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t room,
                     void* values, Where where = Where::current()) const;

    cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

private:
    struct Deleter {
        void operator()(void* descriptor) const { cudnnBackendDestroyDescriptor(descriptor); }
    };
    std::unique_ptr<void, Deleter> descriptor_;
};

}  // namespace lockstep::gpu
