#include "gpu/first_values.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "gpu/element.cuh"
#include "gpu/launch.cuh"
#include "gpu/place.cuh"
#include "gpu/random.cuh"

namespace lockstep::gpu {
namespace {

using Kind = step::Initial::Kind;

/// The first value of an element by its counter.
struct FirstValue {
    Kind kind;
    float scale;
    std::uint64_t seed, stream, range;
    FirstValue(const step::Initial& initial, std::uint64_t seed_)
        : kind(initial.kind),
          scale(static_cast<float>(initial.scale)),
          seed(seed_),
          stream(initial.stream),
          range(static_cast<std::uint64_t>(std::max<std::int64_t>(initial.range, 1))) {}
    template <class T>
    __host__ __device__ T at(std::int64_t counter) const {
        if constexpr (std::is_same_v<T, std::int32_t>)
            return static_cast<std::int32_t>(random_bits(seed, stream, static_cast<std::uint64_t>(counter)) % range);
        else
            return store<T>(real(counter));
    }
    __host__ __device__ float real(std::int64_t counter) const {
        switch (kind) {
            case Kind::one: return 1;
            case Kind::value: return scale;
            case Kind::normal: return scale * random_normal(seed, stream, static_cast<std::uint64_t>(counter));
            default: return 0;
        }
    }
};

/// Elements of a tensor in memory, from `first` on.
template <class T>
struct WriteFirst {
    T* to;
    std::int64_t first, counter;  ///< counter: of element 0 of the whole tensor
    FirstValue value;
    RowMajorIndex index;
    DevicePlace place;
    __host__ __device__ void operator()(std::int64_t i) const {
        to[i] = value.at<T>(counter + place(index(first + i)));
    }
};

template <class F>
void with_initial_type(DType dtype, F&& f) {
    if (dtype == DType::int32)
        f(std::int32_t{});
    else
        with_type(dtype, f);
}

bool is_parameter_in(const step::Tensor& tensor, step::TensorId flat) {
    return tensor.view && tensor.view->of == flat && !tensor.view->ring && tensor.parameter.is_valid() &&
           tensor.initial.kind != Kind::none;
}

}  // namespace

void write_first_values(const step::Initial& initial, std::uint64_t seed, std::int32_t slot, const Operand& target,
                        cudaStream_t stream) {
    with_initial_type(target.dtype, [&](auto type) {
        using T = decltype(type);
        const DevicePlace place(target);
        const WriteFirst<T> body{pointer<T>(target),    0,    slot * place.elements(), FirstValue(initial, seed),
                                 RowMajorIndex(target), place};
        launch_elements(target.elements(), body, stream);
    });
}

void write_part_of_views(const step::StepGraph& graph, int rank, step::TensorId part, const Operand& target,
                         cudaStream_t stream) {
    const step::TensorId flat = graph.tensor(part).part_of;
    if (!flat.is_valid() || target.runs.size() != 1)
        throw LogicError("the first values of " + graph.tensor(part).name +
                         " are those of a flat tensor it isn't part of");
    check_cuda(cudaMemsetAsync(target.data, 0, static_cast<std::size_t>(target.bytes()), stream), "cudaMemsetAsync");
    with_type(target.dtype, [&](auto type) {
        using T = decltype(type);
        for (const step::Tensor& tensor : graph.tensors) {
            if (!is_parameter_in(tensor, flat)) continue;
            Operand view;
            static_cast<step::Place&>(view) = step::place_of(tensor, graph.mesh, rank);
            view.layout = tensor.layout;
            const std::int64_t first = tensor.view->first_element, last = first + tensor.elements();
            for (const step::IndexRun& run : target.runs[0]) {
                const std::int64_t begin = std::max(first, run.global), end = std::min(last, run.global + run.count);
                const WriteFirst<T> body{pointer<T>(target) + run.local + begin - run.global,
                                         begin - first,
                                         0,
                                         FirstValue(tensor.initial, graph.seed),
                                         RowMajorIndex(view),
                                         DevicePlace(view)};
                launch_elements(end - begin, body, stream);
            }
        }
    });
}

}  // namespace lockstep::gpu
