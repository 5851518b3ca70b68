// Which expert takes which token: drawn from the seed and a token's place in the global batch alone.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/kernels.hpp"
#include "step/global_place.hpp"
#include "step/routing.hpp"

namespace lockstep::cpu {
namespace {

class RouteKernel final : public Kernel {
public:
    RouteKernel(const step::Route& op, const Operands& o, std::uint64_t seed)
        : op_(op),
          routing_{op.experts, op.top_k, op.imbalance},
          seed_(seed),
          token_rows_(pointer<std::int32_t>(o.out[0])),
          row_tokens_(pointer<std::int32_t>(o.out[1])),
          positions_(step::global_indices(o.out[0].runs[0])),
          samples_(step::global_indices(o.out[0].runs[1])),
          global_positions_(o.out[0].global[0]),
          global_batch_(o.out[0].global[1]),
          order_(static_cast<std::size_t>(op.experts)),
          crowd_(static_cast<std::size_t>(op.experts)),
          taken_(static_cast<std::size_t>(op.experts)) {
        draw_order(~op.stream, 0, crowd_);
    }

    void run(const Moment& moment) override {
        for (std::size_t b = 0; b < samples_.size(); ++b) choose(moment, b);
        place_rows();
    }

private:
    /// A random order of the experts (Fisher and Yates).
    void draw_order(std::uint64_t stream, std::int64_t number, std::vector<std::int32_t>& order) const {
        std::iota(order.begin(), order.end(), 0);
        for (std::int64_t i = op_.experts - 1; i > 0; --i) {
            const auto counter = static_cast<std::uint64_t>(number * op_.experts + i);
            const auto other = random_bits(seed_, stream, counter) % static_cast<std::uint64_t>(i + 1);
            std::swap(order[static_cast<std::size_t>(i)], order[other]);
        }
    }
    /// Writes the experts of a sample's tokens where their rows go.
    void choose(const Moment& moment, std::size_t b) {
        const std::int64_t sample = moment.micro_batch * global_batch_ + samples_[b];
        const std::int64_t rounds = global_positions_ / op_.experts + 1;
        std::int64_t drawn = -1;
        for (std::size_t s = 0; s < positions_.size(); ++s) {
            std::int32_t* experts = token_rows_ + (s * samples_.size() + b) * static_cast<std::size_t>(op_.top_k);
            if (routing_.is_crowd(positions_[s])) {
                std::copy_n(crowd_.begin(), op_.top_k, experts);
                continue;
            }
            const std::int64_t turn = positions_[s] - routing_.crowd_before(positions_[s]);
            if (turn / op_.experts != drawn) {
                drawn = turn / op_.experts;
                draw_order(op_.stream, sample * rounds + drawn, order_);
            }
            for (std::int64_t j = 0; j < op_.top_k; ++j)
                experts[j] = order_[static_cast<std::size_t>((turn + j) % op_.experts)];
        }
    }
    /// In the order of this rank's tokens: the next free row of each expert, or none.
    void place_rows() {
        std::fill(taken_.begin(), taken_.end(), 0);
        std::fill_n(row_tokens_, op_.experts * op_.rows_per_expert, -1);
        const std::int64_t choices = op_.seq * op_.batch * op_.top_k;
        for (std::int64_t i = 0; i < choices; ++i) {
            const std::int32_t expert = token_rows_[i];
            std::int32_t& taken = taken_[static_cast<std::size_t>(expert)];
            if (taken == op_.rows_per_expert) {
                if (!op_.may_drop)
                    throw LogicError(fmt::format("expert {} is wanted by more than {} tokens", expert, taken));
                token_rows_[i] = -1;
                continue;
            }
            const std::int64_t row = expert * op_.rows_per_expert + taken++;
            token_rows_[i] = static_cast<std::int32_t>(row);
            row_tokens_[row] = static_cast<std::int32_t>(i);
        }
    }

    step::Route op_;
    step::Routing routing_;
    std::uint64_t seed_;
    std::int32_t* token_rows_;
    std::int32_t* row_tokens_;
    std::vector<std::int64_t> positions_, samples_;
    std::int64_t global_positions_, global_batch_;
    std::vector<std::int32_t> order_, crowd_, taken_;
};

}  // namespace

std::unique_ptr<Kernel> make_route(const step::Route& op, const Operands& o, const KernelSetup& setup) {
    expect_slots(o, 0, 2, "route");
    integers(o.out[0]);
    integers(o.out[1]);
    if (o.out[0].shape != Shape{op.seq, op.batch, op.top_k})
        throw LogicError(fmt::format("route writes rows of shape {}, not {}", to_string(o.out[0].shape),
                                     to_string(Shape{op.seq, op.batch, op.top_k})));
    return std::make_unique<RouteKernel>(op, o, setup.seed);
}

}  // namespace lockstep::cpu
