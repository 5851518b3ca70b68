// One op's kernel on the CPU beside the same op's kernel on the GPU: the same values go in row-major, whatever the
// layout in memory, and come back row-major.
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "cpu/kernel_harness.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/element.cuh"
#include "gpu/handles.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"

namespace lockstep::gpu::testing {

using cpu::testing::normal_values;
using cpu::testing::Values;
inline constexpr std::uint64_t test_seed = 1;
inline constexpr DType float_types[] = {DType::fp32, DType::fp16, DType::bf16};

/// One operand of a tested op: its place, its layout and what it holds before the first moment.
struct Slot : step::Place {
    Values values;  ///< row-major; empty: zeros
    DType dtype = DType::fp32;
    step::Layout layout = step::Layout::row_major;
    step::Access access = step::Access::overwrite;  ///< of outputs
    std::int64_t skew = 0;  ///< elements between an address that packs can begin at and the first one
};
using Slots = std::vector<Slot>;

inline Slot slot(Shape shape, Values values = {}, DType dtype = DType::fp32,
                 step::Layout layout = step::Layout::row_major, step::Access access = step::Access::overwrite) {
    Slot s;
    s.shape = s.global = std::move(shape);
    s.runs = step::whole_runs(s.shape);
    s.values = std::move(values);
    s.values.resize(static_cast<std::size_t>(s.elements()));
    s.dtype = dtype;
    s.layout = layout;
    s.access = access;
    return s;
}
/// A slot that is only written, or added to.
inline Slot result(Shape shape, DType dtype = DType::fp32, step::Access access = step::Access::overwrite,
                   step::Layout layout = step::Layout::row_major) {
    return slot(std::move(shape), {}, dtype, layout, access);
}
/// The part that `rank` of the mesh has of a tensor, with the values it has in the whole one.
inline Slot part(Shape local, std::vector<step::Shard> shards, const plan::Mesh& mesh, int rank, const Values& whole,
                 DType dtype = DType::fp32, step::Layout layout = step::Layout::row_major,
                 step::Access access = step::Access::overwrite) {
    const cpu::Operand place = cpu::testing::part(std::move(local), std::move(shards), mesh, rank);
    Slot s = slot(place.shape, whole.empty() ? Values{} : cpu::testing::take(whole, place), dtype, layout, access);
    static_cast<step::Place&>(s) = place;
    return s;
}

/// Where the element with this row-major index is in memory.
inline std::int64_t stored_at(step::Layout layout, const Shape& shape, std::int64_t index) {
    const bool is_last = shape.rank() == 4 && layout != step::Layout::row_major;
    return cpu::stored_at(is_last ? cpu::Order::channels_last : cpu::Order::row_major, shape, index);
}

inline void set_element(std::byte* data, DType dtype, std::int64_t at, float value) {
    if (dtype == DType::int32)
        reinterpret_cast<std::int32_t*>(data)[at] = static_cast<std::int32_t>(value);
    else if (dtype == DType::uint8)
        reinterpret_cast<std::uint8_t*>(data)[at] = static_cast<std::uint8_t>(value);
    else
        with_type(dtype,
                  [&](auto type) { reinterpret_cast<decltype(type)*>(data)[at] = store<decltype(type)>(value); });
}
inline float element(const std::byte* data, DType dtype, std::int64_t at) {
    if (dtype == DType::int32) return static_cast<float>(reinterpret_cast<const std::int32_t*>(data)[at]);
    if (dtype == DType::uint8) return reinterpret_cast<const std::uint8_t*>(data)[at];
    return with_type(dtype, [&](auto type) { return load(reinterpret_cast<const decltype(type)*>(data)[at]); });
}

/// Device memory of a slot, between guards that show when a kernel writes outside.
class DeviceTensor {
public:
    explicit DeviceTensor(const Slot& slot) : slot_(slot) {
        const auto size = static_cast<std::int64_t>(size_of(slot.dtype).value);
        before_ = static_cast<std::size_t>(guard + slot.skew * size);
        bytes_ = static_cast<std::size_t>(slot.elements() * size);
        memory_ = allocate_device(static_cast<std::int64_t>(before_ + bytes_) + guard, "a tested tensor");
        write(slot.values);
    }
    void write(const Values& values) {
        std::vector<std::byte> host(before_ + bytes_ + guard, guard_value);
        for (std::int64_t i = 0; i < slot_.elements(); ++i)
            set_element(host.data() + before_, slot_.dtype, stored_at(slot_.layout, slot_.shape, i),
                        values[static_cast<std::size_t>(i)]);
        check_cuda(cudaMemcpy(memory_.get(), host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    Operand operand() const {
        Operand o;
        static_cast<step::Place&>(o) = slot_;
        o.data = memory_.get() + before_;
        o.dtype = slot_.dtype;
        o.layout = slot_.layout;
        return o;
    }
    Values read() const {
        std::vector<std::byte> host(before_ + bytes_ + guard);
        check_cuda(cudaMemcpy(host.data(), memory_.get(), host.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (std::size_t i = 0; i < host.size(); ++i)
            if ((i < before_ || i >= before_ + bytes_) && host[i] != guard_value) {
                ADD_FAILURE() << "a kernel wrote outside a tensor of shape " << to_string(slot_.shape);
                break;
            }
        Values values;
        for (std::int64_t i = 0; i < slot_.elements(); ++i)
            values.push_back(element(host.data() + before_, slot_.dtype, stored_at(slot_.layout, slot_.shape, i)));
        return values;
    }

private:
    static constexpr std::int64_t guard = 256;
    static constexpr std::byte guard_value{0xa5};
    Slot slot_;
    std::size_t before_ = 0, bytes_ = 0;
    DeviceMemory memory_;
};

/// What an input is given before a moment.
struct Change {
    std::size_t moment = 0, input = 0;
    Values values;
};

/// A tested op: what it is, its operands, and when it runs.
struct Case {
    step::OpKind op;
    Slots in, out;
    std::vector<Moment> moments = {{0, 0}};
    MathType math = MathType::fp32;
    float tolerance = 1;  ///< as a multiple of the rounding of each output's dtype
    std::vector<Change> changes = {};
    step::Op named() const {
        step::Op whole;
        whole.name = "tested";
        whole.kind = op;
        whole.math = math;
        return whole;
    }
};
/// By moment and output.
using Results = std::vector<std::vector<Values>>;

/// Calls run(moment) for each moment, after the changes of inputs that belong to it, and reads the outputs after it.
template <class Tensors, class Run>
Results run_moments(const Case& c, Tensors& tensors, const Run& run) {
    Results results;
    for (std::size_t m = 0; m < c.moments.size(); ++m) {
        for (const Change& change : c.changes)
            if (change.moment == m) tensors[change.input].write(change.values);
        run(c.moments[m]);
        std::vector<Values>& outputs = results.emplace_back();
        for (std::size_t i = 0; i < c.out.size(); ++i) outputs.push_back(tensors[c.in.size() + i].read());
    }
    return results;
}

/// On its own stream, one kernel for all moments.
inline Results run_on_gpu(const Case& c) {
    std::deque<DeviceTensor> tensors;
    Operands operands;
    for (const Slot& s : c.in) operands.in.push_back(tensors.emplace_back(s).operand());
    for (const Slot& s : c.out) operands.out.push_back({tensors.emplace_back(s).operand(), s.access});
    BlasLt blas;
    Dnn dnn;
    const Stream stream = make_stream();
    const std::unique_ptr<Kernel> kernel = make_kernel(c.named(), operands, {blas, dnn, test_seed});
    const DeviceMemory workspace = allocate_device(kernel->workspace_bytes(), "a tested kernel's workspace");
    kernel->bind_workspace(workspace.get());
    return run_moments(c, tensors, [&](const Moment& moment) {
        kernel->enqueue(moment, stream.get());
        check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    });
}

/// In fp32, from values rounded to the dtype each operand has.
inline Results run_on_cpu(const Case& c) {
    std::deque<cpu::testing::Tensor> tensors;
    const auto place = [&](const Slot& s) {
        const bool is_float = s.dtype == DType::fp16 || s.dtype == DType::bf16;
        Values values = s.values;
        for (float& value : values) {
            std::byte stored[8];
            set_element(stored, s.dtype, 0, value);
            value = element(stored, s.dtype, 0);
        }
        const bool is_last = s.shape.rank() == 4 && s.layout == step::Layout::channels_last;
        cpu::testing::Tensor& t =
            tensors.emplace_back(s.shape, values, is_last ? cpu::Order::channels_last : cpu::Order::row_major,
                                 is_float ? DType::fp32 : s.dtype);
        static_cast<step::Place&>(t.operand) = s;
        t.operand.tensor = static_cast<std::int32_t>(tensors.size());
        return t.operand;
    };
    cpu::Operands operands;
    for (const Slot& s : c.in) operands.in.push_back(place(s));
    for (const Slot& s : c.out) operands.out.push_back({place(s), s.access});
    cpu::OneDnn library;
    const std::unique_ptr<cpu::Kernel> kernel = cpu::make_kernel(c.named(), operands, {library, test_seed});
    std::vector<std::byte> scratch(static_cast<std::size_t>(kernel->scratch_bytes()) + 64);
    kernel->bind_scratch(scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64);
    return run_moments(c, tensors, [&](const Moment& moment) { kernel->run({moment.step, moment.micro_batch}); });
}

/// How far results may be apart, relative to 1 + |expected|: half of a last place of the dtype, twice (a sum that is
/// rounded after each micro-batch); fp32: sums in another order.
inline float rounding(DType dtype) {
    switch (dtype) {
        case DType::fp32: return 1e-5F;
        case DType::fp16: return 0x1p-10F;
        case DType::bf16: return 0x1p-7F;
        default: return 0;
    }
}

/// All outputs after each moment are the CPU's; of integers exactly.
inline void expect_parity(const Case& c) {
    const Results expected = run_on_cpu(c), got = run_on_gpu(c);
    for (std::size_t m = 0; m < c.moments.size(); ++m)
        for (std::size_t o = 0; o < c.out.size(); ++o)
            for (std::size_t i = 0; i < expected[m][o].size(); ++i) {
                const float should = expected[m][o][i], is = got[m][o][i];
                const float tolerance = c.tolerance * rounding(c.out[o].dtype) * (1 + std::abs(should));
                ASSERT_TRUE(is == should || std::abs(is - should) <= tolerance)
                    << to_string(c.out[o].dtype) << " output " << o << " of " << kind_name(c.named())
                    << " after moment " << m << ", element " << i << ": " << is << " instead of " << should;
            }
}

}  // namespace lockstep::gpu::testing
