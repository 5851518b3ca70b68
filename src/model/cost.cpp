#include "model/cost.hpp"

#include <algorithm>

#include "model/limits.hpp"
#include "model/model.hpp"

namespace lockstep::model {

namespace {

/// Floating-point operations per element of kinds that are no matrix product: additions, multiplications, comparisons
/// and divisions count 1, an exponential or root counts 4. Small beside their traffic, which decides their time.
struct PerElement {
    double forward, backward_data, backward_weights;
};

PerElement per_element(const Norm& norm) {
    if (norm.kind == Norm::Kind::rms) return {4, 7, 2};
    return {7, 9, 4};  // mean 1, variance 2, normalise 2, scale and shift 2
}
PerElement per_element(const Activation& activation) {
    switch (activation.kind) {
        case Activation::Kind::relu: return {1, 1, 0};
        case Activation::Kind::gelu: return {12, 18, 0};
        case Activation::Kind::silu: return {6, 8, 0};
        case Activation::Kind::tanh: return {6, 3, 0};
        case Activation::Kind::sigmoid: return {5, 3, 0};
    }
    return {};
}

/// Everything the formulas need, for a whole batch; sizes in elements.
struct Sizes {
    double batch, in, out, parameters, element_bytes, id_bytes, products;
    bool needs_input_gradient, trains;
};

struct Cost {
    const Sizes& n;
    const Layer& layer;

    LayerCost make(double forward, double data, double weights, double forward_elements,
                   double backward_elements) const {
        LayerCost cost;
        cost.forward = Flops{forward};
        cost.backward_data = Flops{n.needs_input_gradient ? data : 0};
        cost.backward_weights = Flops{n.trains ? weights : 0};
        cost.forward_bytes = Bytes{forward_elements * n.element_bytes};
        cost.backward_bytes = Bytes{backward_elements * n.element_bytes};
        return cost;
    }
    double in_gradient() const { return n.needs_input_gradient ? n.in : 0; }
    double weight_gradient() const { return n.trains ? n.parameters : 0; }

    LayerCost product(bool bias) const {
        // Forward x, w -> y. Backward dy, x, w -> dx, dw: x is read for dw only, w for dx only.
        const double bias_flops = bias ? n.out : 0;
        return make(2 * n.products + bias_flops, 2 * n.products, 2 * n.products + bias_flops,
                    n.in + n.parameters + n.out,
                    n.out + (n.trains ? n.in : 0) + (n.needs_input_gradient ? n.parameters : 0) + in_gradient() +
                        weight_gradient());
    }
    LayerCost elementwise(PerElement f, double elements, double forward_traffic, double backward_traffic) const {
        return make(f.forward * elements, f.backward_data * elements, f.backward_weights * elements, forward_traffic,
                    backward_traffic);
    }

    LayerCost operator()(const Convolution& c) const { return product(c.bias); }
    LayerCost operator()(const Linear& l) const { return product(l.bias); }
    LayerCost operator()(const GroupedLinear&) const { return product(false); }
    LayerCost operator()(const Norm& norm) const {
        return elementwise(per_element(norm), n.in, n.in + n.out + n.parameters,
                           n.out + n.in + in_gradient() + n.parameters + weight_gradient());
    }
    LayerCost operator()(const Activation& a) const {
        return elementwise(per_element(a), n.out, n.in + n.out, n.out + n.in + in_gradient());
    }
    LayerCost operator()(const GatedActivation&) const {
        return elementwise({7, 11, 0}, n.out, n.in + n.out, n.out + n.in + in_gradient());
    }
    LayerCost operator()(const Pool& pool) const {
        // Backward of max reads one byte per output that says where the maximum was.
        const double window = pool.kernel == 0 ? n.in / n.out : static_cast<double>(pool.kernel * pool.kernel);
        const double where = pool.kind == Pool::Kind::max ? n.out / n.element_bytes : 0;
        return make(window * n.out, pool.kind == Pool::Kind::max ? n.out : window * n.out, 0, n.in + n.out + where,
                    n.out + where + in_gradient());
    }
    // The gradient of a sum goes to both inputs as it is; adding gradients where a layer feeds two is not counted here.
    LayerCost operator()(const Add&) const { return make(n.out, 0, 0, 3 * n.out, 0); }
    LayerCost operator()(const ChannelScale&) const {
        // Backward: the gradient of the image, and the sum over each channel of gradient times image.
        return elementwise({1, 3, 0}, n.out, 2 * n.out, 2 * n.out + in_gradient());
    }
    LayerCost operator()(const Concatenate&) const { return make(0, 0, 0, 2 * n.out, 2 * n.out); }
    // The mask comes from a counter-based generator and is made again in the backward pass.
    LayerCost operator()(const Dropout&) const {
        return elementwise({2, 2, 0}, n.out, n.in + n.out, n.out + in_gradient());
    }
    LayerCost operator()(const Embedding& e) const {
        // Rows that are looked up are read; their gradients are added into rows.
        const double rows = std::min(n.out, static_cast<double>(e.vocab) * static_cast<double>(e.hidden));
        LayerCost cost = make(0, 0, n.out, rows + n.out, n.out + (n.trains ? rows : 0));
        cost.forward_bytes += Bytes{n.in * n.id_bytes};
        cost.backward_bytes += Bytes{n.in * n.id_bytes};
        return cost;
    }
    LayerCost operator()(const PositionEmbedding&) const {
        const double table = n.out / n.batch;
        return make(n.out, 0, n.out, n.in + n.out + table, n.trains ? n.out + table : 0);
    }
    LayerCost operator()(const Rotary& r) const {
        // Queries and keys in place: two multiplications and an addition each.
        const double share = static_cast<double>(r.heads + r.kv_heads) / static_cast<double>(r.heads + 2 * r.kv_heads);
        return make(3 * n.in * share, 3 * n.in * share, 0, 2 * n.in * share, 2 * n.in * share);
    }
    LayerCost operator()(const Attention& a) const {
        // Scores never leave the chip (Dao et al. 2022). Backward: dv, dp, dq, dk are four products where forward has
        // two; scores computed again are not counted.
        const double sequence = static_cast<double>(layer.input[0]);
        const double memory = static_cast<double>(a.memory);
        const double scores = n.batch * sequence * (sequence + memory) * static_cast<double>(a.heads);
        const double in = n.in * (1 + memory / sequence);
        return make(2 * n.products + 7 * scores, 4 * n.products + 4 * scores, 0, in + n.out,
                    in + 2 * n.out + (n.needs_input_gradient ? in : 0));
    }
    LayerCost operator()(const Flatten&) const { return {}; }
    LayerCost operator()(const FirstToken&) const { return make(0, 0, 0, 2 * n.out, n.out + in_gradient()); }
    // Rows are copied there; back, those of a token are added up.
    LayerCost operator()(const Dispatch&) const {
        return elementwise({0, 1, 0}, n.out, n.in + n.out, n.out + in_gradient());
    }
    LayerCost operator()(const Combine&) const {
        return elementwise({2, 4, 0}, n.in, n.in + n.out, n.out + n.in + in_gradient());
    }
    LayerCost operator()(const SoftmaxLoss& loss) const {
        LayerCost cost = make(7 * n.in, 3 * n.in, 0, n.in, n.in + in_gradient());
        const Bytes labels{n.in / static_cast<double>(loss.classes) * n.id_bytes};
        cost.forward_bytes += labels;
        cost.backward_bytes += labels;
        return cost;
    }
};

bool has_trainable(const Model& model, const Layer& layer) {
    return std::any_of(layer.parameters.begin(), layer.parameters.end(),
                       [&](ParameterId id) { return model.parameters[id.index()].trainable; });
}

}  // namespace

std::int64_t multiply_adds_per_sample(const Layer& layer) {
    if (const auto* c = std::get_if<Convolution>(&layer.kind))
        return checked_product({layer.output.elements(), c->in_channels / c->groups, c->kernel, c->width()});
    if (const auto* l = std::get_if<Linear>(&layer.kind))
        return checked_product({layer.output.elements(), l->in_features});
    if (const auto* g = std::get_if<GroupedLinear>(&layer.kind))
        return checked_product({layer.output.elements(), g->in_features});
    if (const auto* a = std::get_if<Attention>(&layer.kind))
        return checked_product(
            {a->relative ? 3 : 2, layer.input[0], checked_sum(layer.input[0], a->memory), a->heads, a->head_dim});
    return 0;
}

LayerCost cost_of(const Model& model, const Layer& layer, std::int64_t batch, DType dtype) {
    std::int64_t parameters = 0;
    for (auto id : layer.parameters) parameters += model.parameters[id.index()].elements();
    const std::int64_t products = checked_product({batch, multiply_adds_per_sample(layer)});
    const double samples = static_cast<double>(batch);
    const Sizes sizes{.batch = samples,
                      .in = samples * static_cast<double>(layer.input.elements()),
                      .out = samples * static_cast<double>(layer.output.elements()),
                      .parameters = static_cast<double>(parameters),
                      .element_bytes = size_of(dtype).value,
                      .id_bytes = size_of(DType::int32).value,
                      .products = static_cast<double>(products),
                      .needs_input_gradient = needs_input_gradient(model, layer),
                      .trains = has_trainable(model, layer)};
    LayerCost cost = std::visit(Cost{sizes, layer}, layer.kind);
    cost.multiply_adds = products;
    return cost;
}

}  // namespace lockstep::model
