#include "cpu/first_values.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/random.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/element_order.hpp"
#include "cpu/loop.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu {
namespace {

struct FirstValue {
    step::Initial initial;
    std::uint64_t seed;
    float operator()(std::int64_t counter) const {
        using Kind = step::Initial::Kind;
        switch (initial.kind) {
            case Kind::one: return 1;
            case Kind::value: return static_cast<float>(initial.scale);
            case Kind::normal:
                return static_cast<float>(initial.scale) *
                       random_normal(seed, initial.stream, static_cast<std::uint64_t>(counter));
            default: return 0;
        }
    }
    std::int32_t integer(std::int64_t counter) const {
        const std::uint64_t bits = random_bits(seed, initial.stream, static_cast<std::uint64_t>(counter));
        return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(std::max<std::int64_t>(initial.range, 1)));
    }
};

template <class T, class Value>
void fill(const Operand& o, std::int32_t slot, const Value& value) {
    const step::GlobalPlace place(o);
    const std::int64_t before = slot * place.elements();
    T* const data = pointer<T>(o);
    parallel_slices(o.elements(), element_grain, [&](std::int64_t begin, std::int64_t end) {
        place.for_stretches(begin, end, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
            for (std::int64_t i = 0; i < count; ++i)
                data[stored_at(o.order, o.shape, local + i)] = value(before + global + i);
        });
    });
}

bool is_parameter_in(const step::Tensor& tensor, step::TensorId flat) {
    return tensor.view && tensor.view->of == flat && !tensor.view->ring && tensor.parameter.is_valid() &&
           tensor.initial.kind != step::Initial::Kind::none;
}

/// Elements [begin, end) of a view as it is stored, written from `to` on.
template <class T>
void fill_from_view(const Operand& view, const FirstValue& value, std::int64_t begin, std::int64_t end, T* to) {
    const step::GlobalPlace place(view);
    parallel_slices(view.elements(), element_grain, [&](std::int64_t first, std::int64_t last) {
        place.for_stretches(first, last, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t at = stored_at(view.order, view.shape, local + i);
                if (at >= begin && at < end) to[at - begin] = store<T>(value(global + i));
            }
        });
    });
}

}  // namespace

void write_first_values(const step::Initial& initial, std::uint64_t seed, std::int32_t slot, const Operand& target) {
    const FirstValue first{initial, seed};
    if (target.dtype == DType::int32)
        return fill<std::int32_t>(target, slot, [&](std::int64_t counter) { return first.integer(counter); });
    with_type(target.dtype, [&](auto type) {
        using T = decltype(type);
        fill<T>(target, slot, [&](std::int64_t counter) { return store<T>(first(counter)); });
    });
}

void write_part_of_views(const step::StepGraph& graph, int rank, step::TensorId part, const Operand& target) {
    const step::TensorId flat = graph.tensor(part).part_of;
    if (!flat.is_valid() || target.runs.size() != 1)
        throw LogicError("the first values of " + graph.tensor(part).name +
                         " are those of a flat tensor it isn't part of");
    with_type(target.dtype, [&](auto type) {
        using T = decltype(type);
        T* const data = pointer<T>(target);
        parallel_for(target.elements(), element_grain, [=](std::int64_t i) { data[i] = T{}; });
        for (const step::Tensor& tensor : graph.tensors) {
            if (!is_parameter_in(tensor, flat)) continue;
            const std::int64_t first = tensor.view->first_element, last = first + tensor.elements();
            Operand view;
            static_cast<step::Place&>(view) = step::place_of(tensor, graph.mesh, rank);
            const bool is_last = tensor.layout == step::Layout::channels_last && tensor.shape.rank() == 4;
            view.order = is_last ? Order::channels_last : Order::row_major;
            for (const step::IndexRun& run : target.runs[0]) {
                const std::int64_t begin = std::max(first, run.global), end = std::min(last, run.global + run.count);
                if (begin < end)
                    fill_from_view(view, FirstValue{tensor.initial, graph.seed}, begin - first, end - first,
                                   data + run.local + begin - run.global);
            }
        }
    });
}

}  // namespace lockstep::cpu
