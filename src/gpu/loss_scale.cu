// Loss scaling as PyTorch's GradScaler does it: look for infinities, then halve or, after 2000 good steps, double.
#include <cfloat>
#include <cmath>
#include <map>

#include "gpu/device_array.hpp"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/pack.cuh"

namespace lockstep::gpu {
namespace {

constexpr std::int64_t chunk_size = 16384;  // elements

struct Chunk {
    const void* data;
    std::int64_t count, head;
};

/// Sets found_inf to 1 where a chunk has an element that is not finite.
template <class T>
struct LookForInfinity {
    static constexpr int N = pack_of<T>;
    const Chunk* chunks;
    float* found_inf;
    template <class Group>
    __host__ __device__ void operator()(std::int64_t row, const Group& group) const {
        const Chunk chunk = chunks[row];
        float found = 0;
        for_packs<N>(group, RowSpan{0, chunk.count, chunk.head}, [&](auto pack, std::int64_t i) {
            constexpr int M = decltype(pack)::value;
            const Pack<float, M> values = load_pack<M>(static_cast<const T*>(chunk.data), i);
            for (int k = 0; k < M; ++k)
                if (!(fabsf(values.at[k]) <= FLT_MAX)) found = 1;
        });
        found = group.max(found);
        if (group.thread() == 0 && found > 0) *found_inf = 1;
    }
};

class FoundInfKernel final : public Kernel {
public:
    explicit FoundInfKernel(const Operands& o) : found_inf_(floats(o.out[0])) {
        std::map<DType, std::vector<Chunk>> chunks;
        for (const Operand& gradient : o.in)
            with_type(gradient.dtype, [&](auto type) {
                using T = decltype(type);
                for (std::int64_t i = 0; i < gradient.elements(); i += chunk_size) {
                    const T* data = pointer<T>(gradient) + i;
                    chunks[gradient.dtype].push_back(
                        {data, std::min(chunk_size, gradient.elements() - i), elements_before_packs<pack_of<T>>(data)});
                }
            });
        for (const auto& [type, list] : chunks) tables_.push_back({type, {list, "the chunks of gradients"}});
    }
    void enqueue(const Moment&, cudaStream_t stream) override {
        check_cuda(cudaMemsetAsync(found_inf_, 0, sizeof(float), stream), "cudaMemsetAsync");
        for (const Table& table : tables_)
            with_type(table.type, [&](auto type) {
                using T = decltype(type);
                const LookForInfinity<T> body{table.chunks.data(), found_inf_};
                launch_rows(table.chunks.size(), chunk_size / pack_of<T>, body, stream);
            });
    }

private:
    struct Table {
        DType type;
        DeviceArray<Chunk> chunks;
    };
    float* found_inf_;
    std::vector<Table> tables_;
};

/// Of one job.
struct UpdateScale {
    const float* found_inf;
    float *scale, *good_steps;
    __host__ __device__ void operator()(std::int64_t) const {
        constexpr float growth_interval = 2000;
        if (*found_inf != 0) {
            *scale *= 0.5F;
            *good_steps = 0;
        } else if (++*good_steps >= growth_interval) {
            *scale *= 2;
            *good_steps = 0;
        }
    }
};

}  // namespace

std::unique_ptr<Kernel> make_found_inf(const Operands& o) {
    expect_slots(o, 1, 1, "found_inf");
    return std::make_unique<FoundInfKernel>(o);
}

std::unique_ptr<Kernel> make_update_loss_scale(const Operands& o) {
    expect_slots(o, 1, 2, "update_loss_scale");
    const UpdateScale body{floats(o.in[0]), floats(o.out[0]), floats(o.out[1])};
    return make_function_kernel([body](const Moment&, cudaStream_t stream) { launch_elements(1, body, stream); });
}

}  // namespace lockstep::gpu
