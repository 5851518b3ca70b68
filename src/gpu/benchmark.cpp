#include "gpu/benchmark.hpp"

#include "base/error.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/first_values.hpp"
#include "gpu/kernels.hpp"
#include "gpu/libraries.hpp"
#include "gpu/stopwatch.hpp"
#include "step/global_place.hpp"
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

Convolution convolution_of(const Layer& layer, Pass pass, const BenchmarkOptions& options) {
    const std::int64_t height = layer.height * options.image_size / 224;
    return {options.convolution_batch,
            layer.in_channels,
            height,
            height,
            layer.out_channels,
            layer.kernel,
            layer.stride,
            layer.kernel / 2,
            1,
            pass};
}

Flops flops_of(const Convolution& c) {
    return Flops{2.0 * static_cast<double>(c.n * c.out_channels * c.out_height() * c.out_width()) *
                 static_cast<double>(c.in_channels * c.kernel * c.kernel)};
}

class Benchmark {
public:
    explicit Benchmark(const BenchmarkOptions& options) : options_(options), watch_(options.budget) {}
    DeviceMeasurement measure() {
        const Nanoseconds begin = world::steady_now();
        for (const MathType math : maths_of_device()) {
            for (const std::int64_t n : options_.product_sizes) measure_product(math, n);
            measure_convolutions(math);
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
        return o;
    }
    struct Timed {
        Seconds time;
        std::string algorithm;
    };
    /// Frees the tensors afterwards.
    Timed time(step::Compute op, MathType math, const Operands& operands) {
        step::Op whole;
        whole.name = "benchmark";
        whole.kind = std::move(op);
        whole.math = math;
        const auto kernel = make_kernel(whole, operands, {blas_, dnn_, 1});
        const DeviceMemory workspace = allocate_device(kernel->workspace_bytes(), "a benchmark's workspace");
        kernel->bind_workspace(workspace.get());
        const Seconds took = watch_.time([&](cudaStream_t stream) { kernel->enqueue({}, stream); });
        memory_.clear();
        return {took, kernel->algorithm()};
    }
    void measure_product(MathType math, std::int64_t n) {
        const DType dtype = dtype_of(math);
        const Timed timed = time(step::Gemm{1, n, n, n}, math,
                                 {{tensor({n, n}, dtype), tensor({n, n}, dtype)}, {{tensor({n, n}, dtype)}}});
        const auto size = static_cast<double>(n);
        result_.products.push_back({math, n, Flops{2 * size * size * size} / timed.time, timed.algorithm});
    }
    void measure_convolutions(MathType math) {
        for (const Layer& layer : layers)
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
                const Convolution c = convolution_of(layer, pass, options_);
                if (layer.in_channels == 3 && pass == Pass::backward_data)
                    continue;  // nobody wants an image's gradient
                const Timed timed = time(c, math, operands_of(c, dtype_of(math)));
                result_.convolutions.push_back({layer.name, pass, math, flops_of(c) / timed.time, timed.algorithm});
            }
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
    void measure_memory() {
        const std::int64_t n = options_.buffer_bytes / 4;
        const Operand a = tensor({n}, DType::fp32), b = tensor({n}, DType::fp32);
        const Seconds copy = watch_.time([&](cudaStream_t stream) {
            check_cuda(
                cudaMemcpyAsync(b.data, a.data, static_cast<std::size_t>(a.bytes()), cudaMemcpyDeviceToDevice, stream),
                "cudaMemcpyAsync");
        });
        result_.copy = Bytes{2.0 * static_cast<double>(a.bytes())} / copy;
        step::Elementwise add;
        add.kind = step::Elementwise::Kind::add;
        add.count = n;
        const Bytes moved{3.0 * static_cast<double>(a.bytes())};
        result_.add = moved / time(add, MathType::fp32, {{a, b}, {{tensor({n}, DType::fp32)}}}).time;
    }
    void measure_host_copies() {
        const auto bytes = static_cast<std::size_t>(options_.buffer_bytes) / 4;
        const DeviceMemory device = allocate_device(static_cast<std::int64_t>(bytes), "a benchmark's copies");
        const PinnedMemory host = allocate_pinned(static_cast<std::int64_t>(bytes), "a benchmark's copies");
        const auto rate = [&](void* to, const void* from, cudaMemcpyKind kind) {
            return Bytes{static_cast<double>(bytes)} / watch_.time([&](cudaStream_t stream) {
                check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
            });
        };
        result_.host_to_device = rate(device.get(), host.get(), cudaMemcpyHostToDevice);
        result_.device_to_host = rate(host.get(), device.get(), cudaMemcpyDeviceToHost);
    }
    void measure_launches() {
        const auto kernel = make_fill({1, 1.0}, {{}, {{tensor({1}, DType::fp32)}}});
        const auto enqueue = [&](cudaStream_t stream) { kernel->enqueue({}, stream); };
        result_.launch = watch_.host_time(enqueue);
        result_.kernel = watch_.time(enqueue);
        memory_.clear();
    }

    BenchmarkOptions options_;
    Stopwatch watch_;
    BlasLt blas_;
    Dnn dnn_;
    std::vector<DeviceMemory> memory_;
    DeviceMeasurement result_;
};

}  // namespace

DeviceMeasurement measure_device(const BenchmarkOptions& options) { return Benchmark(options).measure(); }

}  // namespace lockstep::gpu
