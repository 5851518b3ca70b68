// Mean cross entropy of softmax(logits) against labels, and its gradient; also in parts where each rank of a group has
// some of the classes.
#include <cfloat>
#include <cmath>

#include "base/error.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"
#include "gpu/place.cuh"

namespace lockstep::gpu {
namespace {

using Part = step::SoftmaxLoss::Part;

/// The logits of this rank.
template <class T>
struct Logits {
    static constexpr int N = pack_of<T>;
    const T* x;
    IndexBlock classes;
    std::int64_t head;
    Logits(const Operand& o, std::int64_t count)
        : x(pointer<T>(o)), classes(block_of(o, o.shape.rank() - 1, "logits")), head(elements_before_packs<N>(x)) {
        if (classes.count != count) throw LogicError("logits do not hold one block of all classes of this rank");
    }
    __host__ __device__ RowSpan row(std::int64_t r) const { return {r * classes.count, classes.count, head}; }
};

/// lse[row] = log(sum(exp(logits))): the sum of each thread is relative to the largest logit it has seen.
template <class T>
struct LogSumExp {
    Logits<T> logits;
    float* lse;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const RowSpan span = logits.row(row);
        float largest = -FLT_MAX, sum = 0;
        for_packs<Logits<T>::N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            const Pack<float, M> values = load_pack<M>(logits.x, span.first + i);
            float top = largest;
            for (int k = 0; k < M; ++k) top = fmaxf(top, values.at[k]);
            sum *= expf(largest - top);
            for (int k = 0; k < M; ++k) sum += expf(values.at[k] - top);
            largest = top;
        });
        const float all = group.max(largest);
        sum = group.sum(sum * expf(largest - all));
        if (group.thread() == 0) lse[row] = all + logf(sum);
    }
};
template <class T>
struct RowMax {
    Logits<T> logits;
    float* largest;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const RowSpan span = logits.row(row);
        float top = -INFINITY;
        for_packs<Logits<T>::N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            const Pack<float, M> values = load_pack<M>(logits.x, span.first + i);
            for (int k = 0; k < M; ++k) top = fmaxf(top, values.at[k]);
        });
        top = group.max(top);
        if (group.thread() == 0) largest[row] = top;
    }
};
template <class T>
struct RowSums {
    Logits<T> logits;
    const std::int32_t* labels;
    const float* largest;
    float* sums;
    std::int64_t rows;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const RowSpan span = logits.row(row);
        const float top = largest[row];
        float sum = 0;
        for_packs<Logits<T>::N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            const Pack<float, M> values = load_pack<M>(logits.x, span.first + i);
            for (int k = 0; k < M; ++k) sum += expf(values.at[k] - top);
        });
        sum = group.sum(sum);
        if (group.thread() != 0) return;
        const std::int64_t label = logits.classes.local(labels[row]);
        sums[row] = sum;
        sums[rows + row] = label >= 0 ? load(logits.x[span.first + label]) - top : 0.0F;
    }
};

// The loss of one row, from what the passes before left.
template <class T>
struct LossOfRow {
    Logits<T> logits;
    const std::int32_t* labels;
    const float* lse;
    __host__ __device__ float operator()(std::int64_t row) const {
        return lse[row] - load(logits.x[logits.row(row).first + labels[row]]);
    }
};
struct LossOfSums {
    const float* sums;
    std::int64_t rows;
    __host__ __device__ float operator()(std::int64_t row) const { return logf(sums[row]) - sums[rows + row]; }
};
/// The one row of this job: the mean of all rows' losses, by one group in a fixed order.
template <class Of>
struct MeanLoss {
    Of of_row;
    std::int64_t rows;
    float factor;
    float* loss;
    bool add;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t, const Group& group) const {
        float sum = 0;
        for (std::int64_t row = group.thread(); row < rows; row += group.threads()) sum += of_row(row);
        sum = group.sum(sum);
        if (group.thread() == 0) write(*loss, sum * factor, add);
    }
};
struct FinishLse {
    const float *largest, *sums;
    float* lse;
    __host__ __device__ void operator()(std::int64_t row) const { lse[row] = logf(sums[row]) + largest[row]; }
};

/// dlogits = (softmax - onehot) factor.
template <class T>
struct Backward {
    Logits<T> logits;
    const std::int32_t* labels;
    const float *lse, *loss_scale;
    T* dlogits;
    float factor;
    bool add;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const RowSpan span = logits.row(row);
        const float scaled = factor * (loss_scale != nullptr ? *loss_scale : 1.0F), sum = lse[row];
        const std::int64_t label = logits.classes.local(labels[row]);
        for_packs<Logits<T>::N>(group, span, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            Pack<float, M> values = load_pack<M>(logits.x, span.first + i);
            for (int k = 0; k < M; ++k)
                values.at[k] = (expf(values.at[k] - sum) - (i + k == label ? 1.0F : 0.0F)) * scaled;
            store_pack(dlogits, span.first + i, values, add);
        });
    }
};

template <class Of>
void launch_mean(const Of& of_row, const step::SoftmaxLoss& op, const Output& loss, const Moment& moment,
                 cudaStream_t stream) {
    const MeanLoss<Of> body{of_row, op.rows, static_cast<float>(op.gradient_scale), pointer<float>(loss),
                            adds(loss.access, moment)};
    launch_rows(1, op.rows, body, stream);
}

template <class T>
std::unique_ptr<Kernel> make_whole(const step::SoftmaxLoss& op, const Operands& o) {
    if (o.in[0].shape.back() != o.in[0].global.back())
        throw LogicError("the loss of some of the classes needs its parts: row_max, row_sums and finish");
    floats(o.out[0]);
    const Logits<T> logits(o.in[0], op.classes);
    return make_function_kernel([=, labels = integers(o.in[1]), loss = o.out[0], lse = floats(o.out[1])](
                                    const Moment& moment, cudaStream_t stream) {
        launch_rows(op.rows, op.classes / Logits<T>::N, LogSumExp<T>{logits, lse}, stream);
        launch_mean(LossOfRow<T>{logits, labels, lse}, op, loss, moment, stream);
    });
}

template <class T>
std::unique_ptr<Kernel> make_row_max(const step::SoftmaxLoss& op, const Operands& o) {
    const RowMax<T> body{Logits<T>(o.in[0], op.classes), floats(o.out[0])};
    return make_function_kernel(
        [=](const Moment&, cudaStream_t stream) { launch_rows(op.rows, op.classes / Logits<T>::N, body, stream); });
}

template <class T>
std::unique_ptr<Kernel> make_row_sums(const step::SoftmaxLoss& op, const Operands& o) {
    const RowSums<T> body{Logits<T>(o.in[0], op.classes), integers(o.in[1]), floats(o.in[2]), floats(o.out[0]),
                          op.rows};
    return make_function_kernel(
        [=](const Moment&, cudaStream_t stream) { launch_rows(op.rows, op.classes / Logits<T>::N, body, stream); });
}

std::unique_ptr<Kernel> make_finish(const step::SoftmaxLoss& op, const Operands& o) {
    floats(o.out[0]);
    return make_function_kernel([=, largest = floats(o.in[0]), sums = floats(o.in[1]), loss = o.out[0],
                                 lse = floats(o.out[1])](const Moment& moment, cudaStream_t stream) {
        launch_elements(op.rows, FinishLse{largest, sums, lse}, stream);
        launch_mean(LossOfSums{sums, op.rows}, op, loss, moment, stream);
    });
}

template <class T>
std::unique_ptr<Kernel> make_backward(const step::SoftmaxLoss& op, const Operands& o) {
    Backward<T> body{Logits<T>(o.in[0], op.classes),
                     integers(o.in[1]),
                     floats(o.in[2]),
                     o.in.size() > 3 ? floats(o.in[3]) : nullptr,
                     pointer<T>(o.out[0]),
                     static_cast<float>(op.gradient_scale),
                     false};
    body.logits.head = elements_before_packs<Logits<T>::N>(body.logits.x, body.dlogits);
    return make_function_kernel([=, access = o.out[0].access](const Moment& moment, cudaStream_t stream) mutable {
        body.add = adds(access, moment);
        launch_rows(op.rows, op.classes / Logits<T>::N, body, stream);
    });
}

}  // namespace

std::unique_ptr<Kernel> make_softmax_loss(const step::SoftmaxLoss& op, const Operands& o) {
    const bool is_forward = op.pass == step::Pass::forward;
    if (is_forward && op.part == Part::finish) {
        expect_slots(o, 2, 2, "softmax_loss finish");
        return make_finish(op, o);
    }
    const auto is_part = [&](Part part) { return is_forward && op.part == part; };
    if (is_part(Part::whole)) expect_slots(o, 2, 2, "softmax_loss");
    if (is_part(Part::row_max)) expect_slots(o, 1, 1, "softmax_loss row_max");
    if (is_part(Part::row_sums)) expect_slots(o, 3, 1, "softmax_loss row_sums");
    if (!is_forward) expect_slots(o, 3, 1, "softmax_loss backward");
    return with_type(o.in[0].dtype, [&](auto type) {
        using T = decltype(type);
        if (!is_forward) return make_backward<T>(op, o);
        if (op.part == Part::row_max) return make_row_max<T>(op, o);
        if (op.part == Part::row_sums) return make_row_sums<T>(op, o);
        return make_whole<T>(op, o);
    });
}

}  // namespace lockstep::gpu
