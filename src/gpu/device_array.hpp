// A table in device memory, filled once when a kernel is made.
#pragma once

#include <type_traits>
#include <vector>

#include "gpu/cuda_check.hpp"
#include "gpu/handles.hpp"

namespace lockstep::gpu {

template <class T>
class DeviceArray {
public:
    static_assert(std::is_trivially_copyable_v<T>);
    DeviceArray() = default;
    DeviceArray(const std::vector<T>& values, const char* purpose)
        : memory_(allocate_device(bytes_of(values), purpose)), size_(static_cast<std::int64_t>(values.size())) {
        if (size_ > 0)
            check_cuda(cudaMemcpy(memory_.get(), values.data(), static_cast<std::size_t>(bytes_of(values)),
                                  cudaMemcpyHostToDevice),
                       "cudaMemcpy");
    }
    T* data() const { return reinterpret_cast<T*>(memory_.get()); }
    std::int64_t size() const { return size_; }

private:
    static std::int64_t bytes_of(const std::vector<T>& values) {
        return static_cast<std::int64_t>(values.size() * sizeof(T));
    }
    DeviceMemory memory_;
    std::int64_t size_ = 0;
};

}  // namespace lockstep::gpu
