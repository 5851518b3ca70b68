// Which expert takes which token: drawn from the seed and a token's place in the global batch alone.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "gpu/element.cuh"
#include "gpu/kernels.hpp"
#include "gpu/launch.cuh"
#include "gpu/place.cuh"
#include "gpu/random.cuh"
#include "step/routing.hpp"

namespace lockstep::gpu {
namespace {

/// What the passes below share. In the workspace: orders [samples x rounds + 1, experts], the last that of the crowd;
/// chosen [choices]; counts [chunks, experts].
struct Routing {
    std::uint64_t seed, stream;
    std::int64_t experts, top_k, rows_per_expert;
    std::int64_t samples, rounds;             ///< of this rank; of a sample
    std::int64_t choices, chunk_size;         ///< choices: tokens x top_k, cut into chunks
    std::int64_t first_sample, global_batch;  ///< first_sample: of the micro-batch
    double crowd_share;
    DeviceRuns positions, batch;
    std::int32_t *orders, *chosen, *counts;
    std::int32_t *token_rows, *row_tokens;

    std::int64_t chunks() const { return (choices + chunk_size - 1) / chunk_size; }
    /// As step::Routing::crowd_before.
    __host__ __device__ std::int64_t crowd_before(std::int64_t position) const {
        return static_cast<std::int64_t>(floor(static_cast<double>(position) * crowd_share));
    }
};

/// A random order of the experts for each round of each sample (Fisher and Yates).
struct DrawOrders {
    Routing r;
    __host__ __device__ void operator()(std::int64_t i) const {
        const bool is_crowd = i == r.samples * r.rounds;
        const std::int64_t sample = is_crowd ? 0 : r.first_sample + r.batch.global(i / r.rounds);
        const std::int64_t number = is_crowd ? 0 : sample * r.rounds + i % r.rounds;
        const std::uint64_t stream = is_crowd ? ~r.stream : r.stream;
        std::int32_t* order = r.orders + i * r.experts;
        for (std::int64_t e = 0; e < r.experts; ++e) order[e] = static_cast<std::int32_t>(e);
        for (std::int64_t e = r.experts - 1; e > 0; --e) {
            const auto counter = static_cast<std::uint64_t>(number * r.experts + e);
            const std::uint64_t other = random_bits(r.seed, stream, counter) % static_cast<std::uint64_t>(e + 1);
            const std::int32_t moved = order[e];
            order[e] = order[other];
            order[other] = moved;
        }
    }
};

/// The experts of one token [seq, batch].
struct Choose {
    Routing r;
    __host__ __device__ void operator()(std::int64_t token) const {
        const std::int64_t s = token / r.samples, b = token - s * r.samples, position = r.positions.global(s);
        const std::int64_t before = r.crowd_before(position), turn = position - before;
        const bool is_crowd = r.crowd_before(position + 1) > before;
        const std::int64_t order = is_crowd ? r.samples * r.rounds : b * r.rounds + turn / r.experts;
        const std::int64_t first = is_crowd ? 0 : turn % r.experts;
        for (std::int64_t j = 0; j < r.top_k; ++j)
            r.chosen[token * r.top_k + j] = r.orders[order * r.experts + (first + j) % r.experts];
    }
};

/// f(choice) for those of a chunk that want an expert, in order.
template <class F>
__host__ __device__ void for_wanting(const Routing& r, std::int64_t chunk, std::int64_t expert, const F& f) {
    const std::int64_t end = (chunk + 1) * r.chunk_size, last = end < r.choices ? end : r.choices;
    for (std::int64_t c = chunk * r.chunk_size; c < last; ++c)
        if (r.chosen[c] == expert) f(c);
}

/// Of chunk i / experts and expert i % experts.
struct CountChosen {
    Routing r;
    __host__ __device__ void operator()(std::int64_t i) const {
        std::int32_t count = 0;
        for_wanting(r, i / r.experts, i % r.experts, [&](std::int64_t) { ++count; });
        r.counts[i] = count;
    }
};
/// Counts of an expert become how many want it in the chunks before.
struct CountBefore {
    Routing r;
    std::int64_t chunks;
    __host__ __device__ void operator()(std::int64_t expert) const {
        std::int32_t before = 0;
        for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
            const std::int32_t count = r.counts[chunk * r.experts + expert];
            r.counts[chunk * r.experts + expert] = before;
            before += count;
        }
    }
};
/// In the order of this rank's tokens: the next free row of each expert, or none.
struct PlaceChosen {
    Routing r;
    __host__ __device__ void operator()(std::int64_t i) const {
        const std::int64_t expert = i % r.experts;
        std::int64_t taken = r.counts[i];
        for_wanting(r, i / r.experts, expert, [&](std::int64_t choice) {
            const std::int64_t row = taken < r.rows_per_expert ? expert * r.rows_per_expert + taken : -1;
            ++taken;
            r.token_rows[choice] = static_cast<std::int32_t>(row);
            if (row >= 0) r.row_tokens[row] = static_cast<std::int32_t>(choice);
        });
    }
};

class RouteKernel final : public Kernel {
public:
    RouteKernel(const step::Route& op, const Operands& o, std::uint64_t seed) : tokens_(op.seq * op.batch) {
        const step::Routing routing{op.experts, op.top_k, op.imbalance};
        if (!op.may_drop && step::most_rows(routing, o.out[0].runs[0]) * op.batch > op.rows_per_expert)
            throw LogicError("an expert may be wanted by more than " + std::to_string(op.rows_per_expert) + " tokens");
        Routing& r = all_;
        r.seed = seed;
        r.stream = op.stream;
        r.experts = op.experts;
        r.top_k = op.top_k;
        r.rows_per_expert = op.rows_per_expert;
        r.samples = op.batch;
        r.rounds = o.out[0].global[0] / op.experts + 1;
        r.choices = tokens_ * op.top_k;
        r.chunk_size = std::max<std::int64_t>(256, r.choices / 128);
        r.global_batch = o.out[0].global[1];
        r.crowd_share = routing.crowd_share();
        r.positions = DeviceRuns(o.out[0].runs[0]);
        r.batch = DeviceRuns(o.out[0].runs[1]);
        r.token_rows = integers(o.out[0]);
        r.row_tokens = integers(o.out[1]);
    }
    void enqueue(const Moment& moment, cudaStream_t stream) override {
        all_.first_sample = moment.micro_batch * all_.global_batch;
        const auto rows = static_cast<std::size_t>(all_.experts * all_.rows_per_expert);
        check_cuda(cudaMemsetAsync(all_.row_tokens, 0xff, rows * sizeof(std::int32_t), stream), "cudaMemsetAsync");
        launch_elements(orders(), DrawOrders{all_}, stream);
        launch_elements(tokens_, Choose{all_}, stream);
        launch_elements(all_.chunks() * all_.experts, CountChosen{all_}, stream);
        launch_elements(all_.experts, CountBefore{all_, all_.chunks()}, stream);
        launch_elements(all_.chunks() * all_.experts, PlaceChosen{all_}, stream);
    }
    std::int64_t workspace_bytes() const override {
        return ((orders() + all_.chunks()) * all_.experts + all_.choices) *
               static_cast<std::int64_t>(sizeof(std::int32_t));
    }
    void bind_workspace(std::byte* workspace) override {
        all_.orders = reinterpret_cast<std::int32_t*>(workspace);
        all_.counts = all_.orders + orders() * all_.experts;
        all_.chosen = all_.counts + all_.chunks() * all_.experts;
    }

private:
    std::int64_t orders() const { return all_.samples * all_.rounds + 1; }

    std::int64_t tokens_;
    Routing all_{};
};

}  // namespace

std::unique_ptr<Kernel> make_route(const step::Route& op, const Operands& o, const KernelSetup& setup) {
    expect_slots(o, 0, 2, "route");
    if (o.out[0].shape != Shape{op.seq, op.batch, op.top_k})
        throw LogicError("route writes rows of shape " + to_string(o.out[0].shape) + ", not " +
                         to_string(Shape{op.seq, op.batch, op.top_k}));
    return std::make_unique<RouteKernel>(op, o, setup.seed);
}

}  // namespace lockstep::gpu
