// Carries out a graph: every tensor as floats, rounded to its type, in row-major order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "gpu_double/dnn/backend_graph.hpp"
#include "gpu_double/dnn/state.hpp"

namespace lockstep::gpu_double {
namespace {

using Values = std::vector<float>;

float rounded(float value, cudnnDataType_t type) {
    const auto element = element_of(type);
    if (!element || *element == Element::fp32) return value;
    std::byte stored[4];
    store(stored, *element, 0, value);
    return load(stored, *element, 0);
}

/// f(row-major index, offset by `strides`) for all elements of the extents.
template <class F>
void for_elements(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides, F&& f) {
    std::vector<std::int64_t> at(extents.size());
    std::int64_t offset = 0, n = 1;
    for (const std::int64_t extent : extents) n *= extent;
    for (std::int64_t i = 0; i < n; ++i) {
        f(i, offset);
        for (std::size_t d = extents.size(); d-- > 0;) {
            offset += strides[d];
            if (++at[d] < extents[d]) break;
            offset -= extents[d] * strides[d];
            at[d] = 0;
        }
    }
}

std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& extents) {
    std::vector<std::int64_t> strides(extents.size(), 1);
    for (std::size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
    return strides;
}
/// Row-major strides of x, 0 where it repeats.
std::vector<std::int64_t> repeating(const GraphTensor& x) {
    std::vector<std::int64_t> strides = row_major(x.extents);
    for (std::size_t d = 0; d < strides.size(); ++d)
        if (x.extents[d] == 1) strides[d] = 0;
    return strides;
}

class Run {
public:
    explicit Run(const GraphCall& call) : call_(call), graph_(*call.graph) {}
    void all() {
        for (const GraphOperation& o : graph_.operations) {
            Values y = compute(o);
            const GraphTensor& tensor = graph_.tensor(o.y);
            for (float& value : y) value = rounded(value, tensor.type);
            if (tensor.is_in_memory()) write(tensor, y);
            values_[o.y] = std::move(y);
        }
    }

private:
    const Values& of(std::int64_t id) {
        const auto found = values_.find(id);
        if (found != values_.end()) return found->second;
        const GraphTensor& tensor = graph_.tensor(id);
        Values values(static_cast<std::size_t>(tensor.elements()));
        if (tensor.is_by_value) {
            values[0] = call_.numbers.at(id);
        } else {
            const void* data = call_.memory.at(id);
            const Element element = *element_of(tensor.type);
            for_elements(tensor.extents, tensor.strides, [&](std::int64_t i, std::int64_t at) {
                values[static_cast<std::size_t>(i)] = load(data, element, at);
            });
        }
        return values_[id] = std::move(values);
    }
    void write(const GraphTensor& tensor, const Values& values) const {
        void* data = call_.memory.at(tensor.id);
        const Element element = *element_of(tensor.type);
        for_elements(tensor.extents, tensor.strides, [&](std::int64_t i, std::int64_t at) {
            store(data, element, at, values[static_cast<std::size_t>(i)]);
        });
    }

    Values compute(const GraphOperation& o) {
        switch (o.kind) {
            case GraphOperation::Kind::matmul: return matmul(o);
            case GraphOperation::Kind::pointwise: return pointwise(o);
            case GraphOperation::Kind::reduction: return reduce(o);
            case GraphOperation::Kind::reshape: return reshape(o);
            case GraphOperation::Kind::convolution: return convolve(o);
        }
        return {};
    }

    Values matmul(const GraphOperation& o) {
        const GraphTensor &ta = graph_.tensor(o.x), &tb = graph_.tensor(o.b), &tc = graph_.tensor(o.y);
        const Values &a = of(o.x), &b = of(o.b);
        const std::size_t rank = tc.extents.size();
        const std::int64_t m = tc.extents[rank - 2], n = tc.extents[rank - 1], k = ta.extents[rank - 1];
        const std::int64_t matrices = tc.elements() / (m * n);
        Values c(static_cast<std::size_t>(tc.elements()));
        for (std::int64_t i = 0; i < matrices; ++i) {
            std::int64_t shared = 0, rest = i, stride = 1;  // which of b's
            for (std::size_t d = rank - 2; d-- > 0;) {
                shared += rest % tc.extents[d] * tb.extents[d] / tc.extents[d] * stride;
                rest /= tc.extents[d];
                stride *= tb.extents[d];
            }
            for (std::int64_t row = 0; row < m; ++row) {
                float* out = c.data() + (i * m + row) * n;
                for (std::int64_t p = 0; p < k; ++p) {
                    const float factor = a[static_cast<std::size_t>((i * m + row) * k + p)];
                    const float* from = b.data() + (shared * k + p) * n;
                    for (std::int64_t column = 0; column < n; ++column) out[column] += factor * from[column];
                }
            }
        }
        return c;
    }

    Values pointwise(const GraphOperation& o) {
        const GraphTensor& ty = graph_.tensor(o.y);
        Values y(static_cast<std::size_t>(ty.elements()));
        if (o.pointwise == CUDNN_POINTWISE_GEN_INDEX) {
            const std::vector<std::int64_t> strides = row_major(ty.extents);
            const auto axis = static_cast<std::size_t>(o.axis);
            for (std::int64_t i = 0; i < ty.elements(); ++i)
                y[static_cast<std::size_t>(i)] = static_cast<float>(i / strides[axis] % ty.extents[axis]);
            return y;
        }
        Values first(y.size()), second(y.size()), chosen(y.size());
        const auto spread = [&](std::int64_t id, Values& to) {
            if (id == 0) return;
            const Values& from = of(id);
            for_elements(ty.extents, repeating(graph_.tensor(id)), [&](std::int64_t i, std::int64_t at) {
                to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(at)];
            });
        };
        spread(o.x, first);
        spread(o.b, second);
        spread(o.t, chosen);
        for (std::size_t i = 0; i < y.size(); ++i) y[i] = apply(o.pointwise, first[i], second[i], chosen[i] != 0);
        return y;
    }
    static float apply(cudnnPointwiseMode_t mode, float x, float b, bool t) {
        switch (mode) {
            case CUDNN_POINTWISE_EXP: return std::exp(x);
            case CUDNN_POINTWISE_LOG: return std::log(x);
            case CUDNN_POINTWISE_ADD: return x + b;
            case CUDNN_POINTWISE_SUB: return x - b;
            case CUDNN_POINTWISE_MUL: return x * b;
            case CUDNN_POINTWISE_DIV: return x / b;
            case CUDNN_POINTWISE_CMP_GE: return x >= b ? 1.0F : 0.0F;
            case CUDNN_POINTWISE_BINARY_SELECT: return t ? x : b;
            default: return x;
        }
    }

    Values reduce(const GraphOperation& o) {
        const GraphTensor &tx = graph_.tensor(o.x), &ty = graph_.tensor(o.y);
        const bool is_max = o.reduction == CUDNN_REDUCE_TENSOR_MAX;
        const Values& x = of(o.x);
        Values y(static_cast<std::size_t>(ty.elements()), is_max ? -std::numeric_limits<float>::infinity() : 0.0F);
        const std::vector<std::int64_t> from = row_major(tx.extents), to = row_major(ty.extents);
        for (std::int64_t i = 0; i < tx.elements(); ++i) {
            std::int64_t at = 0;
            for (std::size_t d = 0; d < from.size(); ++d)
                at += i / from[d] % tx.extents[d] * ty.extents[d] / tx.extents[d] * to[d];
            float& target = y[static_cast<std::size_t>(at)];
            const float value = x[static_cast<std::size_t>(i)];
            target = is_max ? std::max(target, value) : target + value;
        }
        return y;
    }

    /// The same elements at the same offsets, under other extents and strides.
    Values reshape(const GraphOperation& o) {
        const GraphTensor &tx = graph_.tensor(o.x), &ty = graph_.tensor(o.y);
        const Values& x = of(o.x);
        std::unordered_map<std::int64_t, float> by_offset;
        for_elements(tx.extents, tx.strides,
                     [&](std::int64_t i, std::int64_t at) { by_offset[at] = x[static_cast<std::size_t>(i)]; });
        Values y(x.size());
        for_elements(ty.extents, ty.strides,
                     [&](std::int64_t i, std::int64_t at) { y[static_cast<std::size_t>(i)] = by_offset.at(at); });
        return y;
    }

    /// The values of a tensor in the order in which an image is stored, and back.
    static Values reordered(const GraphTensor& t, const Values& values, bool to_storage) {
        Values result(values.size());
        for_elements(t.extents, t.strides, [&](std::int64_t i, std::int64_t at) {
            const auto row_major = static_cast<std::size_t>(i), stored = static_cast<std::size_t>(at);
            if (to_storage)
                result[stored] = values[row_major];
            else
                result[row_major] = values[stored];
        });
        return result;
    }
    Values convolve(const GraphOperation& o) {
        const GraphOperation::Convolution& c = o.convolution;
        const auto read = [&](std::int64_t id) {
            if (id == o.y) return Values();
            Values values = reordered(graph_.tensor(id), of(id), true);
            if (call_.rounds_to_tf32 && graph_.tensor(id).type == CUDNN_DATA_FLOAT)
                for (float& value : values) value = to_tf32(value);
            return values;
        };
        Values y = reordered(
            graph_.tensor(o.y),
            gpu_double::convolve(graph_.shape(c), c.pass, read(c.image), read(c.weight), read(c.result)), false);
        for (float& value : y) value *= c.alpha;
        if (c.beta == 0) return y;
        const Values& before = of(o.y);
        for (std::size_t i = 0; i < y.size(); ++i) y[i] += c.beta * before[i];
        return y;
    }

    const GraphCall& call_;
    const Graph& graph_;
    std::map<std::int64_t, Values> values_;
};

}  // namespace

void run_graph(const GraphCall& call) { Run(call).all(); }

}  // namespace lockstep::gpu_double
