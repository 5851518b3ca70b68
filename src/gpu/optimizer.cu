// SGD with momentum and AdamW (Loshchilov and Hutter 2019) without decay, as PyTorch computes them: all parameters of
// an op in one launch for each pair of dtypes, in chunks that a block of threads takes.
#include <cmath>
#include <map>

#include "gpu/device_array.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {
namespace {

constexpr float momentum = 0.9F;
constexpr float beta1 = 0.9F, beta2 = 0.999F, adam_epsilon = 1e-8F;
constexpr int pack = 4;                     // elements: 16 bytes of the fp32 states
constexpr std::int64_t chunk_size = 16384;  // elements: enough chunks for all of a GPU, even of a small model

/// What a step multiplies with, on the device: a step whose gradients overflowed isn't counted.
struct StepFactors {
    std::int64_t steps;  ///< that changed something
    float gradient, rate, correction;
    std::int32_t is_skipped;
};

/// Of one job: prepares a step.
struct BeginStep {
    StepFactors* factors;
    const float *found_inf, *loss_scale;  ///< null: no loss scaling
    float gradient_factor, learning_rate;
    plan::Optimizer kind;
    __host__ __device__ void operator()(std::int64_t) const {
        StepFactors f = *factors;
        f.is_skipped = found_inf != nullptr && *found_inf != 0 ? 1 : 0;
        if (f.is_skipped == 0) ++f.steps;
        f.gradient = gradient_factor / (loss_scale != nullptr ? *loss_scale : 1.0F);
        f.rate = learning_rate;
        if (kind == plan::Optimizer::adam) {
            const auto steps = static_cast<double>(f.steps);
            f.rate = static_cast<float>(learning_rate / (1 - pow(static_cast<double>(beta1), steps)));
            f.correction = static_cast<float>(1 / sqrt(1 - pow(static_cast<double>(beta2), steps)));
        }
        *factors = f;
    }
};

/// A stretch of one parameter's tensors.
struct Chunk {
    const void* gradient;
    void* parameter;
    float *state1, *state2, *master;  ///< state2: adam; master: null when the parameter itself is fp32
    std::int64_t count, head;
};

struct Sgd {
    template <int M>
    __host__ __device__ static void apply(const StepFactors& factors, const Chunk& chunk, std::int64_t i,
                                          const Pack<float, M>& gradient, Pack<float, M>& parameter) {
        Pack<float, M> velocity = load_pack<M>(chunk.state1, i);
        for (int k = 0; k < M; ++k) {
            velocity.at[k] = momentum * velocity.at[k] + gradient.at[k];
            parameter.at[k] -= factors.rate * velocity.at[k];
        }
        store_pack(chunk.state1, i, velocity);
    }
};
struct Adam {
    template <int M>
    __host__ __device__ static void apply(const StepFactors& factors, const Chunk& chunk, std::int64_t i,
                                          const Pack<float, M>& gradient, Pack<float, M>& parameter) {
        Pack<float, M> first = load_pack<M>(chunk.state1, i), second = load_pack<M>(chunk.state2, i);
        for (int k = 0; k < M; ++k) {
            const float g = gradient.at[k];
            first.at[k] = beta1 * first.at[k] + (1 - beta1) * g;
            second.at[k] = beta2 * second.at[k] + (1 - beta2) * g * g;
            parameter.at[k] -= factors.rate * first.at[k] / (sqrtf(second.at[k]) * factors.correction + adam_epsilon);
        }
        store_pack(chunk.state1, i, first);
        store_pack(chunk.state2, i, second);
    }
};

template <class P, class G, class Rule>
struct Update {
    const StepFactors* step;
    const Chunk* chunks;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const StepFactors factors = *step;
        if (factors.is_skipped != 0) return;
        const Chunk chunk = chunks[row];
        const auto* gradients = static_cast<const G*>(chunk.gradient);
        auto* parameters = static_cast<P*>(chunk.parameter);
        for_packs<pack>(group, RowSpan{0, chunk.count, chunk.head}, [&](auto width, std::int64_t i) {
            constexpr int M = decltype(width)::value;
            Pack<float, M> gradient = load_pack<M>(gradients, i);
            for (int k = 0; k < M; ++k) gradient.at[k] *= factors.gradient;
            Pack<float, M> parameter =
                chunk.master != nullptr ? load_pack<M>(chunk.master, i) : load_pack<M>(parameters, i);
            Rule::template apply<M>(factors, chunk, i, gradient, parameter);
            if (chunk.master != nullptr) store_pack(chunk.master, i, parameter);
            store_pack(parameters, i, parameter);
        });
    }
};

/// One parameter's tensors.
struct Slots {
    Operand gradient, parameter;
    float *state1, *state2, *master;
};

template <class P, class G>
void add_chunks(const Slots& s, std::vector<Chunk>& chunks) {
    const auto at = [](float* state, std::int64_t i) { return state != nullptr ? state + i : nullptr; };
    for (std::int64_t i = 0; i < s.parameter.elements(); i += chunk_size) {
        const G* gradient = pointer<G>(s.gradient) + i;
        P* parameter = pointer<P>(s.parameter) + i;
        float *state1 = at(s.state1, i), *state2 = at(s.state2, i), *master = at(s.master, i);
        const std::int64_t head = elements_before_packs<pack>(
            gradient, parameter, state1, state2 != nullptr ? state2 : state1, master != nullptr ? master : state1);
        chunks.push_back(
            {gradient, parameter, state1, state2, master, std::min(chunk_size, s.parameter.elements() - i), head});
    }
}

class OptimizerKernel final : public Kernel {
public:
    OptimizerKernel(const step::OptimizerUpdate& op, const Operands& o) : kind_(op.kind) {
        const bool is_adam = op.kind == plan::Optimizer::adam;
        const std::size_t outputs = (is_adam ? 3 : 2) + (op.has_master ? 1 : 0);
        const auto parameters = static_cast<std::size_t>(op.parameters);
        expect_slots(o, parameters + (op.has_loss_scale ? 2 : 0), parameters * outputs, "optimizer");
        std::map<std::pair<DType, DType>, std::vector<Chunk>> chunks;
        for (std::size_t p = 0; p < parameters; ++p) {
            const Output* out = &o.out[p * outputs];
            const Slots slots{o.in[p], out[0], floats(out[1]), is_adam ? floats(out[2]) : nullptr,
                              op.has_master ? floats(out[outputs - 1]) : nullptr};
            with_types(slots.parameter.dtype, slots.gradient.dtype, [&](auto parameter, auto gradient) {
                add_chunks<decltype(parameter), decltype(gradient)>(
                    slots, chunks[{slots.parameter.dtype, slots.gradient.dtype}]);
            });
        }
        for (const auto& [types, list] : chunks)
            tables_.push_back({types.first, types.second, {list, "the chunks of an optimizer"}});
        factors_ = {{StepFactors{}}, "the factors of an optimizer's step"};
        begin_ = {factors_.data(),
                  op.has_loss_scale ? floats(o.in[parameters]) : nullptr,
                  op.has_loss_scale ? floats(o.in[parameters + 1]) : nullptr,
                  static_cast<float>(op.gradient_factor),
                  static_cast<float>(op.learning_rate),
                  op.kind};
    }
    void enqueue(const Moment&, cudaStream_t stream) override {
        launch_elements(1, begin_, stream);
        for (const Table& table : tables_)
            with_types(table.parameter, table.gradient, [&](auto parameter, auto gradient) {
                using P = decltype(parameter);
                using G = decltype(gradient);
                if (kind_ == plan::Optimizer::adam)
                    update<Update<P, G, Adam>>(table, stream);
                else
                    update<Update<P, G, Sgd>>(table, stream);
            });
    }

private:
    struct Table {
        DType parameter, gradient;
        DeviceArray<Chunk> chunks;
    };
    template <class F>
    static void with_types(DType parameter, DType gradient, F&& f) {
        with_type(parameter, [&](auto p) { with_type(gradient, [&](auto g) { f(p, g); }); });
    }
    template <class Body>
    void update(const Table& table, cudaStream_t stream) const {
        launch_rows(table.chunks.size(), chunk_size / pack, Body{factors_.data(), table.chunks.data()}, stream);
    }

    plan::Optimizer kind_;
    std::vector<Table> tables_;
    DeviceArray<StepFactors> factors_;
    BeginStep begin_{};
};

}  // namespace

std::unique_ptr<Kernel> make_optimizer(const step::OptimizerUpdate& op, const Operands& operands) {
    return std::make_unique<OptimizerKernel>(op, operands);
}

}  // namespace lockstep::gpu
