// Runs one kernel on tensors of a test: values go in row-major and come back row-major, whatever the order in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "cpu/bf16.hpp"
#include "cpu/element_order.hpp"
#include "cpu/kernels.hpp"
#include "cpu/onednn.hpp"
#include "step/global_place.hpp"

namespace lockstep::cpu::testing {

using Values = std::vector<float>;

/// Normal numbers, the same for the same stream.
inline Values normal_values(std::int64_t n, std::uint64_t stream, float scale = 1) {
    Values values(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) values[i] = scale * random_normal(7, stream, static_cast<std::uint64_t>(i));
    return values;
}

/// A rank's part of a tensor: what `local` and `shards` make of it on this mesh.
inline Operand part(Shape local, std::vector<step::Shard> shards, const plan::Mesh& mesh, int rank) {
    step::Tensor tensor;
    tensor.shape = std::move(local);
    tensor.shards = std::move(shards);
    Operand o;
    static_cast<step::Place&>(o) = step::place_of(tensor, mesh, rank);
    return o;
}
/// Row-major index in the whole tensor of a part's element, dimension by dimension.
inline std::int64_t index_in_whole(const Operand& part, std::int64_t element) {
    std::int64_t index = 0, stride = 1;
    for (std::size_t d = part.shape.rank(); d-- > 0;) {
        const std::int64_t local = element % part.shape[d];
        element /= part.shape[d];
        for (const step::IndexRun& run : part.runs[d])
            if (local >= run.local && local < run.local + run.count) index += (run.global + local - run.local) * stride;
        stride *= part.global[d];
    }
    return index;
}
inline Values take(const Values& whole, const Operand& part) {
    Values values;
    for (std::int64_t i = 0; i < part.elements(); ++i) values.push_back(whole[index_in_whole(part, i)]);
    return values;
}
inline void put(const Values& values, const Operand& part, Values& whole) {
    whole.resize(static_cast<std::size_t>(part.global.elements()));
    for (std::int64_t i = 0; i < part.elements(); ++i) whole[index_in_whole(part, i)] = values[i];
}

class Tensor {
public:
    Tensor(Shape shape, Values values, Order order = Order::row_major, DType dtype = DType::fp32) {
        operand.shape = std::move(shape);
        operand.dtype = dtype;
        operand.order = order;
        operand.global = operand.shape;
        operand.runs = step::whole_runs(operand.shape);
        bytes_.resize(static_cast<std::size_t>(operand.bytes()) + 64);
        const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
        operand.data = bytes_.data() + (64 - address % 64) % 64;
        values.resize(static_cast<std::size_t>(operand.elements()));
        for (std::int64_t i = 0; i < operand.elements(); ++i) set(i, values[i]);
    }
    /// A rank's part, with the values it has in the whole tensor.
    Tensor(const Operand& place, const Values& whole) : Tensor(place.shape, {}, Order::row_major, place.dtype) {
        operand.global = place.global;
        operand.runs = place.runs;
        if (whole.empty()) return;
        for (std::int64_t i = 0; i < operand.elements(); ++i) set(i, whole[index_in_whole(place, i)]);
    }
    Tensor(const Tensor&) = delete;
    Tensor& operator=(const Tensor&) = delete;
    Values read() const {
        Values values;
        for (std::int64_t i = 0; i < operand.elements(); ++i) values.push_back(get(i));
        return values;
    }
    void write(const Values& values) {
        for (std::int64_t i = 0; i < operand.elements(); ++i) set(i, values[i]);
    }
    Operand operand;

private:
    template <class T>
    T& at(std::int64_t i) const {
        return static_cast<T*>(operand.data)[stored_at(operand.order, operand.shape, i)];
    }
    void set(std::int64_t i, float value) {
        if (operand.dtype == DType::int32)
            at<std::int32_t>(i) = static_cast<std::int32_t>(value);
        else if (operand.dtype == DType::uint8)
            at<std::uint8_t>(i) = static_cast<std::uint8_t>(value);
        else if (operand.dtype == DType::bf16)
            at<Bf16>(i) = store<Bf16>(value);
        else
            at<float>(i) = value;
    }
    float get(std::int64_t i) const {
        if (operand.dtype == DType::int32) return static_cast<float>(at<std::int32_t>(i));
        if (operand.dtype == DType::uint8) return at<std::uint8_t>(i);
        if (operand.dtype == DType::bf16) return load(at<Bf16>(i));
        return at<float>(i);
    }
    std::vector<std::byte> bytes_;
};

/// Keeps tensors alive and runs kernels on them.
class KernelTest : public ::testing::Test {
protected:
    Tensor& tensor(Shape shape, Values values = {}, Order order = Order::row_major, DType dtype = DType::fp32) {
        tensors_.emplace_back(std::move(shape), std::move(values), order, dtype);
        tensors_.back().operand.tensor = static_cast<std::int32_t>(tensors_.size());
        return tensors_.back();
    }
    Tensor& tensor(const Operand& place, const Values& whole = {}) {
        tensors_.emplace_back(place, whole);
        tensors_.back().operand.tensor = static_cast<std::int32_t>(tensors_.size());
        return tensors_.back();
    }
    static Output out(const Tensor& t, step::Access access = step::Access::overwrite) { return {t.operand, access}; }

    std::unique_ptr<Kernel> make(step::Compute op, const std::vector<const Tensor*>& in,
                                 const std::vector<Output>& outputs) {
        Operands operands;
        for (const Tensor* t : in) operands.in.push_back(t->operand);
        operands.out = outputs;
        step::Op whole;
        whole.name = "tested";
        whole.kind = std::move(op);
        std::unique_ptr<Kernel> kernel = make_kernel(whole, operands, {library_, 1});
        scratch_.emplace_back(static_cast<std::size_t>(kernel->scratch_bytes()) + 64);
        std::byte* scratch = scratch_.back().data();
        kernel->bind_scratch(scratch + (64 - reinterpret_cast<std::uintptr_t>(scratch) % 64) % 64);
        return kernel;
    }
    void run(step::Compute op, const std::vector<const Tensor*>& in, const std::vector<Output>& outputs,
             const Moment& moment = {}) {
        make(std::move(op), in, outputs)->run(moment);
    }

    OneDnn library_;

private:
    std::deque<Tensor> tensors_;
    std::deque<std::vector<std::byte>> scratch_;
};

inline void expect_near(const Values& got, const Values& expected, float tolerance) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "at element " << i;
}

/// d(sum of weights y)/dx by central differences, where forward(x) gives y.
inline Values numeric_gradient(const Values& x, const Values& weights,
                               const std::function<Values(const Values&)>& forward, float h = 1e-2F) {
    const auto weighted = [&](const Values& at) {
        const Values y = forward(at);
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * weights[i];
        return sum;
    };
    Values gradient(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        Values up = x, down = x;
        up[i] += h;
        down[i] -= h;
        gradient[i] = static_cast<float>((weighted(up) - weighted(down)) / (2.0 * h));
    }
    return gradient;
}

}  // namespace lockstep::cpu::testing
