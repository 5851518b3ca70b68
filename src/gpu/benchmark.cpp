#include "gpu/benchmark.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/first_values.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"
#include "gpu/stopwatch.hpp"
#include "step/global_place.hpp"
#include "step/op_cost.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu {
namespace {

using step::Convolution;
using step::Pass;

/// Where each math type finds its elements.
DType dtype_of(MathType math) {
    return math == MathType::fp16 ? DType::fp16 : math == MathType::bf16 ? DType::bf16 : DType::fp32;
}

/// Those that this device has units for.
std::vector<MathType> maths_of_device() {
    int device = 0, major = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
    if (major < 8) return {MathType::fp32, MathType::fp16};
    return {MathType::fp32, MathType::tf32, MathType::fp16, MathType::bf16};
}

/// Convolutions of ResNet-50 that together have most of its work; heights are of images of 224.
struct Layer {
    const char* name;
    std::int64_t in_channels, height, out_channels, kernel, stride;
};
constexpr Layer layers[] = {{"conv1 7x7", 3, 224, 64, 7, 2},    {"layer1 3x3", 64, 56, 64, 3, 1},
                            {"layer1 1x1", 64, 56, 256, 1, 1},  {"layer2 3x3", 128, 28, 128, 3, 1},
                            {"layer3 3x3", 256, 14, 256, 3, 1}, {"layer3 1x1", 1024, 14, 256, 1, 1},
                            {"layer4 3x3", 512, 7, 512, 3, 1}};

struct Images {
    std::int64_t batch, size;
};

Convolution convolution_of(const Layer& layer, Pass pass, const Images& images) {
    const std::int64_t height = layer.height * images.size / 224;
    return {images.batch, layer.in_channels, height,           height, layer.out_channels,
            layer.kernel, layer.stride,      layer.kernel / 2, 1,      pass};
}

Flops flops_of(const Convolution& c) {
    return Flops{2.0 * static_cast<double>(c.n * c.out_channels * c.out_height() * c.out_width()) *
                 static_cast<double>(c.in_channels * c.kernel * c.kernel)};
}

/// From one image of 32, the least that all layers can halve, to what was asked for.
std::vector<Images> growing_images(const BenchmarkOptions& options) {
    std::vector<Images> images;
    for (const Images i : {Images{1, 32}, {1, 224}, {8, 224}, {64, 224}})
        if (i.batch < options.convolution_batch || i.size < options.image_size)
            images.push_back({std::min(i.batch, options.convolution_batch), std::min(i.size, options.image_size)});
    images.push_back({options.convolution_batch, options.image_size});
    return images;
}

class Benchmark {
public:
    explicit Benchmark(const BenchmarkOptions& options)
        : options_(options), watch_(options.budget), glance_(Seconds{0}) {}
    DeviceMeasurement measure() {
        const Nanoseconds begin = world::steady_now();
        for (const MathType math : maths_of_device()) {
            measure_products(math);
            measure_convolutions(math);
            if (options_.attention_seq > 0 && dtype_of(math) != DType::fp32) measure_attention(math);
        }
        measure_memory();
        measure_host_copies();
        measure_launches();
        result_.took = (world::steady_now() - begin).seconds();
        return std::move(result_);
    }

private:
    /// A tensor of its own memory, of random values: a device draws less power, and runs faster, on zeros.
    Operand tensor(Shape shape, DType dtype, step::Layout layout = step::Layout::row_major) {
        Operand o;
        o.global = shape;
        o.runs = step::whole_runs(shape);
        o.shape = std::move(shape);
        o.dtype = dtype;
        o.layout = layout;
        memory_.push_back(allocate_device(o.bytes(), "a benchmark's tensor"));
        o.data = memory_.back().get();
        write_first_values({step::Initial::Kind::normal, 1.0, 0, 0}, 1, 0, o, watch_.stream());
        check_cuda(cudaStreamSynchronize(watch_.stream()), "cudaStreamSynchronize");  // glance_ has another stream
        return o;
    }
    struct Timed {
        Seconds time;
        std::string algorithm;
    };
    /// Frees the tensors afterwards.
    Timed time(step::Compute op, MathType math, const Operands& operands, const Stopwatch& watch) {
        step::Op whole;
        whole.name = "benchmark";
        whole.kind = std::move(op);
        whole.math = math;
        const auto kernel = make_kernel(whole, operands, {blas_, dnn_, 1});
        const DeviceMemory workspace = allocate_device(kernel->workspace_bytes(), "a benchmark's workspace");
        kernel->bind_workspace(workspace.get());
        const Seconds took = watch.time([&](cudaStream_t stream) { kernel->enqueue({}, stream); });
        memory_.clear();
        return {took, kernel->algorithm()};
    }
    void measure_products(MathType math) {
        const DType dtype = dtype_of(math);
        Flops largest;
        Seconds longest;
        std::size_t measured = 0;
        for (const std::int64_t n : options_.product_sizes) {
            const auto size = static_cast<double>(n);
            const Flops work{2 * size * size * size};
            // Two sizes at least, to see how the rate grows.
            if (measured >= 2 && longest * (work / largest) > options_.longest) return;
            const Timed timed =
                time(step::Gemm{1, n, n, n}, math,
                     {{tensor({n, n}, dtype), tensor({n, n}, dtype)}, {{tensor({n, n}, dtype)}}}, watch_);
            result_.products.push_back({math, n, work / timed.time, timed.algorithm});
            largest = work;
            longest = timed.time;
            ++measured;
        }
    }
    void measure_convolutions(MathType math) {
        for (const Layer& layer : layers)
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
                if (layer.in_channels != 3 || pass != Pass::backward_data)  // nobody wants an image's gradient
                    measure_convolution(layer, pass, math);
    }
    void measure_convolution(const Layer& layer, Pass pass, MathType math) {
        const std::vector<Images> all = growing_images(options_);
        const auto run = [&](const Images& images, const Stopwatch& watch) {
            const Convolution c = convolution_of(layer, pass, images);
            return time(c, math, operands_of(c, dtype_of(math)), watch);
        };
        std::size_t at = 0;
        Timed timed = run(all[at], glance_);
        const auto work = [&](std::size_t i) { return flops_of(convolution_of(layer, pass, all[i])); };
        while (at + 1 < all.size() && timed.time * (work(at + 1) / work(at)) <= options_.longest)
            timed = run(all[++at], glance_);
        if (timed.time < options_.budget) timed = run(all[at], watch_);
        result_.convolutions.push_back(
            {layer.name, pass, math, work(at) / timed.time, timed.algorithm, work(at), all[at].batch, all[at].size});
    }
    void measure_attention(MathType math) {
        for (const Pass pass : {Pass::forward, Pass::backward_data}) {
            std::int64_t seq = std::min<std::int64_t>(128, options_.attention_seq);
            Timed timed = time_attention(seq, pass, math, glance_);
            // Twice the sequence is four times the work.
            while (2 * seq <= options_.attention_seq && 4.0 * timed.time <= options_.longest)
                timed = time_attention(seq *= 2, pass, math, glance_);
            if (timed.time < options_.budget) timed = time_attention(seq, pass, math, watch_);
            step::Op op;
            op.kind = step::Compute{attention_of(seq, pass)};
            result_.attention.push_back({pass, math, step::flops_of(op) / timed.time, timed.algorithm});
        }
    }
    static step::Attention attention_of(std::int64_t seq, Pass pass) {
        step::Attention op;
        op.batch = 4;
        op.seq = seq;
        op.heads = op.kv_heads = 16;
        op.head_dim = 64;
        op.causal = false;
        op.pass = pass;
        return op;
    }
    Timed time_attention(std::int64_t seq, Pass pass, MathType math, const Stopwatch& watch) {
        const step::Attention op = attention_of(seq, pass);
        const DType dtype = dtype_of(math);
        const Operand qkv = tensor({seq, op.batch, op.heads, 3, op.head_dim}, dtype);
        const Operand context = tensor({seq, op.batch, op.heads, op.head_dim}, dtype);
        const Operand lse = tensor({op.batch, op.heads, seq}, DType::fp32);
        if (pass == Pass::forward) return time(op, math, {{qkv}, {{context}, {lse}}}, watch);
        const Operand dcontext = tensor({seq, op.batch, op.heads, op.head_dim}, dtype);
        const Operand dqkv = tensor({seq, op.batch, op.heads, 3, op.head_dim}, dtype);
        return time(op, math, {{dcontext, qkv, context, lse}, {{dqkv}}}, watch);
    }
    Operands operands_of(const Convolution& c, DType dtype) {
        constexpr auto last = step::Layout::channels_last;
        const Operand x = tensor({c.n, c.in_channels, c.height, c.width}, dtype, last);
        const Operand w = tensor({c.out_channels, c.in_channels, c.kernel, c.kernel}, dtype, last);
        const Operand y = tensor({c.n, c.out_channels, c.out_height(), c.out_width()}, dtype, last);
        if (c.pass == Pass::forward) return {{x, w}, {{y}}};
        if (c.pass == Pass::backward_data) return {{y, w}, {{x}}};
        return {{y, x}, {{w}}};
    }
    /// The rate at which `measure(bytes)` moves `passes` times as many bytes, of the largest buffer.
    template <class Measure>
    Bandwidth rate_of_largest(std::int64_t most, double passes, Measure measure) {
        std::int64_t bytes = std::min(most, std::int64_t{1} << 20);
        Seconds took = measure(bytes, glance_);
        while (bytes < most && 8 * took <= options_.longest) {
            bytes = std::min(most, 8 * bytes);
            took = measure(bytes, glance_);
        }
        if (took < options_.budget) took = measure(bytes, watch_);
        return Bytes{passes * static_cast<double>(bytes)} / took;
    }
    void measure_memory() {
        result_.copy = rate_of_largest(options_.buffer_bytes, 2, [&](std::int64_t bytes, const Stopwatch& watch) {
            const DeviceMemory from = allocate_device(bytes, "a benchmark's copies");
            const DeviceMemory to = allocate_device(bytes, "a benchmark's copies");
            check_cuda(cudaMemsetAsync(from.get(), 0x5a, static_cast<std::size_t>(bytes), watch.stream()),
                       "cudaMemsetAsync");
            return time_copy(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, watch);
        });
        result_.add = rate_of_largest(options_.buffer_bytes, 3, [&](std::int64_t bytes, const Stopwatch& watch) {
            const std::int64_t n = bytes / 4;
            step::Elementwise add;
            add.kind = step::Elementwise::Kind::add;
            add.count = n;
            const Operand a = tensor({n}, DType::fp32), b = tensor({n}, DType::fp32);
            return time(add, MathType::fp32, {{a, b}, {{tensor({n}, DType::fp32)}}}, watch).time;
        });
    }
    void measure_host_copies() {
        const auto rate = [&](cudaMemcpyKind kind) {
            return rate_of_largest(options_.buffer_bytes / 4, 1, [&](std::int64_t bytes, const Stopwatch& watch) {
                const DeviceMemory device = allocate_device(bytes, "a benchmark's copies");
                const PinnedMemory host = allocate_pinned(bytes, "a benchmark's copies");
                const bool is_to_device = kind == cudaMemcpyHostToDevice;
                return time_copy(is_to_device ? device.get() : host.get(), is_to_device ? host.get() : device.get(),
                                 bytes, kind, watch);
            });
        };
        result_.host_to_device = rate(cudaMemcpyHostToDevice);
        result_.device_to_host = rate(cudaMemcpyDeviceToHost);
    }
    static Seconds time_copy(void* to, const void* from, std::int64_t bytes, cudaMemcpyKind kind,
                             const Stopwatch& watch) {
        return watch.time([&](cudaStream_t stream) {
            check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream), "cudaMemcpyAsync");
        });
    }
    void measure_launches() {
        const auto kernel = make_fill({1, 1.0}, {{}, {{tensor({1}, DType::fp32)}}});
        const auto enqueue = [&](cudaStream_t stream) { kernel->enqueue({}, stream); };
        result_.launch = watch_.host_time(enqueue);
        result_.kernel = watch_.time(enqueue);
        memory_.clear();
    }

    BenchmarkOptions options_;
    Stopwatch watch_, glance_;  // within the budget; as short as can be
    BlasLt blas_;
    Dnn dnn_;
    std::vector<DeviceMemory> memory_;
    DeviceMeasurement result_;
};

}  // namespace

DeviceMeasurement measure_device(const BenchmarkOptions& options) { return Benchmark(options).measure(); }

}  // namespace lockstep::gpu
