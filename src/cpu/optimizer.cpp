// SGD with momentum and AdamW (Loshchilov and Hutter 2019) without decay, as PyTorch computes them.
#include <cmath>
#include <vector>

#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "cpu/loop.hpp"

namespace lockstep::cpu {
namespace {

constexpr float momentum = 0.9F;
constexpr float beta1 = 0.9F, beta2 = 0.999F, adam_epsilon = 1e-8F;

/// One parameter's tensors.
struct Slots {
    Operand gradient, parameter;
    float* state1;
    float* state2;  ///< adam only
    float* master;  ///< null when the parameter itself is fp32
};

template <class P, class G>
void sgd(const Slots& s, std::int64_t n, float factor, float rate) {
    const G* gradient = pointer<G>(s.gradient);
    P* parameter = pointer<P>(s.parameter);
    float* velocity = s.state1;
    float* master = s.master;
    parallel_for(n, element_grain, [=](std::int64_t i) {
        const float v = momentum * velocity[i] + load(gradient[i]) * factor;
        velocity[i] = v;
        const float updated = (master != nullptr ? master[i] : load(parameter[i])) - rate * v;
        if (master != nullptr) master[i] = updated;
        parameter[i] = store<P>(updated);
    });
}

template <class P, class G>
void adam(const Slots& s, std::int64_t n, float factor, float rate, double steps) {
    const G* gradient = pointer<G>(s.gradient);
    P* parameter = pointer<P>(s.parameter);
    float* first = s.state1;
    float* second = s.state2;
    float* master = s.master;
    const auto step_size = static_cast<float>(rate / (1 - std::pow(static_cast<double>(beta1), steps)));
    const auto correction = static_cast<float>(1 / std::sqrt(1 - std::pow(static_cast<double>(beta2), steps)));
    parallel_for(n, element_grain, [=](std::int64_t i) {
        const float g = load(gradient[i]) * factor;
        const float m = beta1 * first[i] + (1 - beta1) * g;
        const float v = beta2 * second[i] + (1 - beta2) * g * g;
        first[i] = m;
        second[i] = v;
        const float before = master != nullptr ? master[i] : load(parameter[i]);
        const float updated = before - step_size * m / (std::sqrt(v) * correction + adam_epsilon);
        if (master != nullptr) master[i] = updated;
        parameter[i] = store<P>(updated);
    });
}

class OptimizerKernel final : public Kernel {
public:
    OptimizerKernel(const step::OptimizerUpdate& op, const Operands& o) : op_(op) {
        const bool is_adam = op.kind == plan::Optimizer::adam;
        const std::size_t outputs = (is_adam ? 3 : 2) + (op.has_master ? 1 : 0);
        const auto parameters = static_cast<std::size_t>(op.parameters);
        expect_slots(o, parameters + (op.has_loss_scale ? 2 : 0), parameters * outputs, "optimizer");
        for (std::size_t p = 0; p < parameters; ++p) {
            const Output* out = &o.out[p * outputs];
            slots_.push_back({o.in[p], out[0], floats(out[1]), is_adam ? floats(out[2]) : nullptr,
                              op.has_master ? floats(out[outputs - 1]) : nullptr});
        }
        if (!op.has_loss_scale) return;
        found_inf_ = floats(o.in[parameters]);
        loss_scale_ = floats(o.in[parameters + 1]);
    }
    void run(const Moment&) override {
        if (found_inf_ != nullptr && *found_inf_ != 0) return;
        ++steps_;
        const float scale = loss_scale_ != nullptr ? *loss_scale_ : 1.0F;
        const float factor = static_cast<float>(op_.gradient_factor) / scale;
        for (const Slots& s : slots_) update(s, factor);
    }

private:
    void update(const Slots& s, float factor) const {
        const auto rate = static_cast<float>(op_.learning_rate);
        with_type(s.parameter.dtype, [&](auto parameter) {
            with_type(s.gradient.dtype, [&](auto gradient) {
                using P = decltype(parameter);
                using G = decltype(gradient);
                if (op_.kind == plan::Optimizer::adam)
                    adam<P, G>(s, s.parameter.elements(), factor, rate, static_cast<double>(steps_));
                else
                    sgd<P, G>(s, s.parameter.elements(), factor, rate);
            });
        });
    }

    step::OptimizerUpdate op_;
    std::vector<Slots> slots_;
    const float* found_inf_ = nullptr;
    const float* loss_scale_ = nullptr;
    std::int64_t steps_ = 0;  // steps that changed something
};

}  // namespace

std::unique_ptr<Kernel> make_optimizer(const step::OptimizerUpdate& op, const Operands& operands) {
    return std::make_unique<OptimizerKernel>(op, operands);
}

}  // namespace lockstep::cpu
