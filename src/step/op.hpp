// The ops of a step: what is computed, moved or waited for, with ordered input and output slots.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/collective.hpp"
#include "base/dtype.hpp"
#include "base/ids.hpp"
#include "base/units.hpp"
#include "model/layer.hpp"
#include "plan/framework.hpp"
#include "plan/mesh.hpp"
#include "plan/plan.hpp"
#include "step/tensor.hpp"

namespace lockstep::step {

enum class Phase { input, forward, backward, gradient_sync, optimizer };
std::string_view to_string(Phase phase);

enum class Pass { forward, backward_data, backward_weights };

// ---- compute kinds. "in" and "out" list the slots in order; [x] is an optional last slot. Row-major unless a tensor's
// layout says otherwise.

/// C[batch][m, n] = op(A) op(B) (+ bias[n]). in: A, B, [bias]; out: C.
struct Gemm {
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
    enum class Transpose { no, yes } a = Transpose::no, b = Transpose::no;  ///< yes: stored [k, m] (A) or [n, k] (B)
};
/// forward in: x [n,c,h,w], w, [bias]; out: y. backward_data in: dy, w; out: dx. backward_weights in: dy, x; out: dw,
/// [dbias]. `w` and `dw` are opaque when reorders surround the op (MemoryFormat::packed).
struct Convolution {
    std::int64_t n = 0, in_channels = 0, height = 0, width = 0, out_channels = 0, kernel = 1, stride = 1, padding = 0,
                 groups = 1;
    Pass pass = Pass::forward;
    std::int64_t kernel_width = 0, padding_width = 0;  ///< as in model::Convolution; 0: square
    std::int64_t width_of_kernel() const { return kernel_width > 0 ? kernel_width : kernel; }
    std::int64_t horizontal_padding() const { return kernel_width > 0 ? padding_width : padding; }
    std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
    std::int64_t out_width() const { return (width + 2 * horizontal_padding() - width_of_kernel()) / stride + 1; }
};
/// qkv [seq, batch, kv_heads, heads / kv_heads + 2, head_dim]: the queries of a group of heads, then its key and value,
/// so that a split over groups is contiguous. forward in: qkv; out: context [seq, batch, heads, head_dim], saved.
/// backward_data in: dcontext, qkv, context, saved; out: dqkv. saved (flash): log-sum-exp fp32 [batch, heads, seq].
/// saved (unfused): probabilities [batch, heads, seq, seq] and, with dropout, mask uint8 and the probabilities after
/// dropout of the same shape (what autograd keeps). Dropout of the probabilities is keyed as in Dropout, by the element
/// of the global [batch, heads, seq, seq], in stream `dropout_stream`.
///
/// `part` is of context parallelism around a ring (always flash): local queries against the keys and values of the rank
/// `ring_step` places before this one. in: qkv, kv [seq, batch, kv_heads, 2, head_dim] of that rank; out: context and
/// log-sum-exp, which merge with what is there (update), except in ring step 0 (overwrite). backward_data in: dcontext,
/// qkv, kv, context, log-sum-exp; out: dqkv (its queries; its keys and values are cleared in ring step 0 and left
/// alone after), dkv (added to, overwrite in ring step 0). Rows are in zigzag order over cp when causal (see Shard).
///
/// With a `memory` (simulated only): a second qkv [memory, batch, ...] behind qkv, of which keys and values are read,
/// and its gradient behind dqkv; scores are [seq, seq + memory].
struct Attention {
    enum class Part { whole, ring } part = Part::whole;
    int ring_step = 0;
    int ring_size = 1;
    std::int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;  ///< of this rank; seq: local queries
    bool causal = true;
    double dropout = 0;
    std::uint64_t dropout_stream = 0;
    plan::AttentionAlgorithm algorithm = plan::AttentionAlgorithm::flash;
    Pass pass = Pass::forward;
    std::int64_t memory = 0;
    bool relative = false;  ///< a second product makes the scores (simulated only)
};
/// Batch: x [rows, features, spatial...] normalised per feature over rows and space; layer, rms: per row over features
/// (spatial = 1). forward in: x, scale, [shift]; out: y, mean, inverse_deviation, [running_mean, running_variance]
/// (rms: y, inverse_deviation). backward_data in: dy, x, scale, mean, inverse_deviation (rms: dy, x, scale,
/// inverse_deviation); out: dx, dscale, [dshift].
struct Norm {
    model::Norm::Kind kind = model::Norm::Kind::layer;
    std::int64_t rows = 0, features = 0, spatial = 1;
    double epsilon = 1e-5;
    Pass pass = Pass::forward;
};
/// Element by element over `count` output elements:
/// relu, gelu, silu, tanh: forward in: x; out: y. relu_backward, tanh_backward in: dy, y; gelu_backward, silu_backward
/// in: dy, x; out: dx. add in: a, b; out: c. scale in: a; out: b = factor a. gated in: x [rows, f, 2] (gate, up), so
/// that a split over f is contiguous; out: y [rows, f]. gated_backward in: dy, x; out: dx. (`width` = f)
/// rotary, rotary_backward in: x [seq, batch, width] in the order of Attention's qkv; out: y; `rotary` gives this
/// rank's heads; a row's position is that of its first index in the global tensor, as for add_positions in: x [seq,
/// batch, width], table [positions, width]; out: y. add_bias in: x [rows, width], bias [width]; out: y.
/// Simulated only: sigmoid in: x; out: y. sigmoid_backward in: dy, y; out: dx. channel_scale in: x [batch, width,
/// space...], factors [batch, width]; out: y. channel_scale_backward in: dy, x, factors; out: dx, dfactors.
struct Elementwise {
    enum class Kind {
        relu,
        relu_backward,
        gelu,
        gelu_backward,
        silu,
        silu_backward,
        tanh,
        tanh_backward,
        add,
        scale,
        gated,
        gated_backward,
        rotary,
        rotary_backward,
        add_positions,
        add_bias,
        sigmoid,
        sigmoid_backward,
        channel_scale,
        channel_scale_backward
    } kind = Kind::add;
    std::int64_t count = 0;
    std::int64_t width = 0;
    std::int64_t batch = 1;      ///< rows of one position (rotary, add_positions)
    std::int64_t positions = 0;  ///< rows of the table of add_positions
    double factor = 1;
    model::Rotary rotary;
};
/// in: x [rows, columns]; out: y [columns] = sum over rows (bias gradients).
struct ColumnSum {
    std::int64_t rows = 0, columns = 0;
};
/// in: dy [seq, batch, width]; out: dtable [positions, width]: row p = sum over the batch where a local row has
/// position p (of its first index in the global tensor), 0 elsewhere.
struct PositionSum {
    std::int64_t seq = 0, batch = 0, width = 0, positions = 0;
};
/// forward in: ids int32 [tokens], table [vocab, hidden]; out: y [tokens, hidden]. backward_weights in: dy, ids; out:
/// dtable (dense). Ids are global; a table that is split over tp holds some rows: ids of others give zeros and no
/// gradient.
struct Embedding {
    std::int64_t tokens = 0, vocab = 0, hidden = 0;
    Pass pass = Pass::forward;
};
/// First token of each sequence: forward in: x [seq, batch, width]; out: y [batch, width]. backward_data in: dy; out:
/// dx (zero elsewhere).
struct FirstToken {
    std::int64_t batch = 0, seq = 0, width = 0;
    Pass pass = Pass::forward;
};
/// forward in: logits [rows, classes], labels int32 [rows]; out: loss fp32 [1] (mean over rows and micro-batches:
/// accumulates), lse fp32 [rows]. backward_data in: logits, labels, lse, [loss_scale fp32 [1]]; out: dlogits = (softmax
/// - onehot) * gradient_scale (* loss_scale).
/// With classes split over tp (each rank has `classes` columns from its logits' place on) the forward pass has parts,
/// and all-reduces between them: row_max in: logits; out: max fp32 [rows]. row_sums in: logits, labels, max; out: sums
/// fp32 [2, rows] = sum of exp(logit - max), and logit - max of the label where this rank has it, else 0. finish in:
/// max, sums; out: loss, lse. The backward pass is one, and leaves the label to the rank that has it.
struct SoftmaxLoss {
    enum class Part { whole, row_max, row_sums, finish } part = Part::whole;
    std::int64_t rows = 0, classes = 0;
    double gradient_scale = 1;  ///< 1 / (rows accumulation); also the factor of the loss sum
    Pass pass = Pass::forward;
};
/// forward in: x [n,c,h,w]; out: y, [indices int32, max only]. backward_data in: dy, [indices]; out: dx.
struct Pool {
    model::Pool::Kind kind = model::Pool::Kind::max;
    std::int64_t n = 0, channels = 0, height = 0, width = 0, kernel = 2, stride = 2, padding = 0;
    Pass pass = Pass::forward;
    std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
    std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};
/// forward in: x; out: y, mask uint8. backward_data in: dy, mask; out: dx. Kept elements are divided by 1 - p. The
/// generator's counter is micro_batch x elements of y's global shape + the index in the global shape, its stream is
/// `stream` + step, so that what is dropped does not depend on how the step is split.
struct Dropout {
    std::int64_t count = 0;
    double probability = 0;
    std::uint64_t stream = 0;
    Pass pass = Pass::forward;
};
/// Per parameter, slots in a row. sgd_momentum: v = m v + g; p -= lr v. adam: AdamW without decay.
/// in, for each parameter: gradient; then, when loss scaling is on: found_inf fp32 [1], loss_scale fp32 [1].
/// out, for each parameter (all read and written): parameter, state1, [state2 (adam)], [master fp32, when the parameter
/// is not fp32]. A step whose found_inf is not 0 changes nothing.
struct OptimizerUpdate {
    plan::Optimizer kind = plan::Optimizer::sgd_momentum;
    std::int64_t parameters = 0;  ///< tensors
    std::int64_t count = 0;       ///< elements of all of them
    double learning_rate = 1e-6;
    double gradient_factor = 1;  ///< multiplies each gradient (1 / loss scale is applied apart)
    bool has_master = false;
    bool has_loss_scale = false;
};
/// in: x; out: y, the same elements in another order (Layout::opaque on one side). The op on the opaque side defines
/// the order. `target` says which convolution uses the packed side.
struct Reorder {
    std::int64_t count = 0;
    Convolution target;
};
/// in: x; out: y, another dtype.
struct Cast {
    std::int64_t count = 0;
};
/// out: y = value.
struct Fill {
    std::int64_t count = 0;
    double value = 0;
};
/// in: gradients...; out: found_inf fp32 [1] = 1 when any element is not finite.
struct FoundInf {
    std::int64_t count = 0;
};
/// in: x [rows, blocks, width]; out: y [blocks, rows, width] (packs what an all-to-all sends, or unpacks it).
struct BlockTranspose {
    std::int64_t rows = 0, blocks = 0, width = 0;
};
/// Columns `first` to `first + kept` of rows: forward in: x [rows, width]; out: y [rows, kept]. backward_data in: dy;
/// out: dx, of which it overwrites these columns (update).
struct Slice {
    std::int64_t rows = 0, width = 0, first = 0, kept = 0;
    Pass pass = Pass::forward;
};
/// Which expert takes which token (synthetic, see routing.hpp): a function of the token's place in the global tensor,
/// the micro-batch and `stream` alone. out: token_rows int32 [seq, batch, top_k]: the row among experts' rows [experts,
/// rows_per_expert] for each choice of each token, -1: dropped; row_tokens int32 [experts, rows_per_expert]: token x
/// top_k
/// + choice of each row, -1: none. Tokens come to an expert in the order of this rank's rows; those beyond
/// rows_per_expert are dropped.
struct Route {
    std::int64_t seq = 0, batch = 0;  ///< of this rank
    std::int64_t experts = 0, top_k = 1, rows_per_expert = 0;
    double imbalance = 0;
    bool may_drop = false;  ///< false: rows_per_expert is enough for all
    std::uint64_t stream = 0;
};
/// forward in: x [tokens, width], row_tokens; out: y [rows, width], 0 in rows that nobody takes. backward_data in: dy,
/// token_rows; out: dx = factor x the sum of a token's rows.
struct Dispatch {
    std::int64_t tokens = 0, top_k = 1, rows = 0, width = 0;
    double factor = 1;
    Pass pass = Pass::forward;
};
/// p: softmax of a token's logits. forward in: x [experts, rows_per_expert, width], logits [tokens, experts],
/// token_rows; out: y [tokens, width] = sum over a token's rows of p of the row's expert times the row. backward_data
/// in: dy, x, logits, token_rows, row_tokens; out: dx (times `factor`; 0 in rows that nobody takes), dlogits.
struct Combine {
    std::int64_t tokens = 0, experts = 0, top_k = 1, rows_per_expert = 0, width = 0;
    double factor = 1;
    Pass pass = Pass::forward;
};
/// in: found_inf; out (both read and written): loss_scale, growth_tracker fp32 [1] = good steps since the last change;
/// as PyTorch's GradScaler: halved on overflow, doubled after 2000 good steps.
struct UpdateLossScale {};

using Compute = std::variant<Gemm, Convolution, Attention, Norm, Elementwise, ColumnSum, PositionSum, Embedding,
                             FirstToken, SoftmaxLoss, Pool, Dropout, OptimizerUpdate, Reorder, Cast, Fill, FoundInf,
                             BlockTranspose, Slice, UpdateLossScale, Route, Dispatch, Combine>;

// ---- movement

struct Communicator;
using CommunicatorId = Id<Communicator>;

using lockstep::CollectiveKind;
enum class Reduction { sum, average, max };
/// `count` has NCCL's meaning: elements of the buffer for all_reduce and broadcast, per rank for reduce_scatter
/// (received), all_gather (sent) and all_to_all (per pair). in: the buffer; out: the buffer (in place) or the result.
struct Collective {
    CollectiveKind kind = CollectiveKind::all_reduce;
    CommunicatorId communicator;
    Reduction reduction = Reduction::sum;
    std::int64_t count = 0;
    DType dtype = DType::fp32;
    Seconds delay{0};  ///< before it starts (Framework::collective_delay); simulated only
};
/// A neighbour relative to this rank along one mesh axis.
struct Peer {
    plan::Axis axis = plan::Axis::pp;
    int offset = 0;  ///< +1 is the next stage; wraps around only when `wraps`
    bool wraps = false;
};
struct Message {
    Peer peer;
    TensorId tensor;
    int tag = 0;
    std::int32_t micro_batch_offset = 0;  ///< the tensor's micro-batch minus the op's
};
/// One ncclGroup (or Isend/Irecv/Waitall). The tensors of sends are also listed in `in`, those of receives in `out`.
struct P2PGroup {
    CommunicatorId communicator;
    std::vector<Message> sends;
    std::vector<Message> receives;
};
/// in: x; out: y = factor x (with a cast when dtypes differ). `input` brings a batch from the data pipeline and takes
/// at least `least_time`: no `in`; out: each input of the model and the labels, already holding their values.
struct Copy {
    enum class Kind { bucket_in, bucket_out, input, host_to_device, device_to_host } kind = Kind::bucket_in;
    std::int64_t count = 0;
    double factor = 1;
    Seconds least_time;
};
/// The host waits until the ops that wrote `in` are done before it issues more.
struct HostSync {
    enum class Reason { found_inf, gradient_norm } reason = Reason::found_inf;
};

/// The stream waits until the ops that wrote `in` are done; nothing is computed. (A gather that the framework does not
/// overlap.)
struct StreamWait {};

using OpKind = std::variant<Compute, Collective, P2PGroup, Copy, HostSync, StreamWait>;

// ---- ops

/// overwrite: what was there is lost; accumulate: added to it; accumulate_micro_batches: overwrite in micro-batch 0,
/// accumulate after; update: read and written.
enum class Access { overwrite, accumulate, accumulate_micro_batches, update };
struct Write {
    TensorId tensor;
    Access access = Access::overwrite;
};

/// A queue of ops that run in order: (communicator, lane) for communication; one for compute, one for copies, one for
/// input.
struct Stream {
    enum class Lane { compute, copy, input, communication } lane = Lane::compute;
    CommunicatorId communicator;  ///< of communication lanes
    std::string name;             ///< "compute", "dp", "pp" ...
};
using StreamId = Id<Stream>;

struct Op {
    std::string name;  ///< "layer1.0.conv1.forward", "bucket3.all_reduce"
    Phase phase = Phase::forward;
    OpKind kind;
    std::vector<TensorId> in;
    std::vector<Write> out;
    std::vector<TensorId> after;  ///< not operands: the op waits for who wrote them (a framework that limits how far
                                  ///< gathers run ahead)
    StreamId stream;
    model::LayerId layer;            ///< invalid when it belongs to none
    MathType math = MathType::fp32;  ///< of the multipliers
    Flops flops;                     ///< a multiply-add is 2
    Bytes bytes;                     ///< least memory traffic; bytes of the buffer for a collective
    Seconds host_time;               ///< to issue it (cost trait of the framework)
    bool is_fused = false;           ///< part of the kernel of the op before it (simulated only; see fusion.hpp)
    bool is_last_micro_batch_only =
        false;  ///< skipped in all passes but the last (gradient communication under accumulation)
};

std::string_view kind_name(const Op& op);  ///< "gemm", "convolution", "all_reduce", "bucket_in", "host_sync" ...
bool is_communication(const Op& op);       ///< Collective or P2PGroup
bool is_compute(const Op& op);

}  // namespace lockstep::step
