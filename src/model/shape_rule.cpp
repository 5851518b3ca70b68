#include "model/shape_rule.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/limits.hpp"

namespace lockstep::model {

namespace {

std::string describe(const Source& source) {
    return fmt::format("'{}' gives {}", source.name, to_string(source.shape));
}

[[noreturn]] void misfit(const std::string& wanted, const Source& source) {
    throw InputError(fmt::format("shapes don't fit ({} is wanted, {})", wanted, describe(source)));
}

const Shape& image(const Source& source) {
    if (source.shape.rank() != 3) misfit("an image [channels, height, width]", source);
    return source.shape;
}

/// (size + 2 padding - kernel) / stride + 1, rounded down: convolutions and pools alike.
std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                     const Source& source) {
    if (size + 2 * padding < kernel)
        throw InputError(fmt::format("shapes don't fit (a kernel of {} with padding {} is larger than what {})", kernel,
                                     padding, describe(source)));
    return (size + 2 * padding - kernel) / stride + 1;
}

const Shape& last_extent(const Source& source, std::int64_t extent) {
    if (source.shape.rank() == 0 || source.shape.back() != extent) misfit(fmt::format("[..., {}]", extent), source);
    return source.shape;
}

const Shape& sequence(const Source& source, std::int64_t width) {
    if (source.shape.rank() != 2 || source.shape.back() != width) misfit(fmt::format("[sequence, {}]", width), source);
    return source.shape;
}

Shape with_last_extent(Shape shape, std::int64_t extent) {
    shape.extents.back() = extent;
    return shape;
}

struct Rule {
    const std::vector<Source>& sources;
    const Source& first() const { return sources.front(); }

    Shape operator()(const Convolution& conv) const {
        const Shape& in = image(first());
        if (in[0] != conv.in_channels) misfit(fmt::format("[{}, height, width]", conv.in_channels), first());
        if (conv.in_channels % conv.groups != 0 || conv.out_channels % conv.groups != 0)
            throw InputError(fmt::format("groups {} must divide the {} channels going in and the {} coming out",
                                         conv.groups, conv.in_channels, conv.out_channels));
        return {conv.out_channels, windows(in[1], conv.kernel, conv.stride, conv.padding, first()),
                windows(in[2], conv.width(), conv.stride, conv.horizontal_padding(), first())};
    }
    Shape operator()(const Linear& linear) const {
        return with_last_extent(last_extent(first(), linear.in_features), linear.out_features);
    }
    Shape operator()(const Norm& norm) const {
        if (norm.kind != Norm::Kind::batch) return last_extent(first(), norm.features);
        if (image(first())[0] != norm.features) misfit(fmt::format("[{}, height, width]", norm.features), first());
        return first().shape;
    }
    Shape operator()(const Activation&) const { return first().shape; }
    Shape operator()(const GatedActivation& gated) const {
        return with_last_extent(last_extent(first(), 2 * gated.features), gated.features);
    }
    Shape operator()(const Pool& pool) const {
        const Shape& in = image(first());
        if (pool.kernel == 0) return {in[0], 1, 1};
        if (2 * pool.padding > pool.kernel)
            throw InputError(fmt::format("padding {} is more than half the kernel {}", pool.padding, pool.kernel));
        return {in[0], windows(in[1], pool.kernel, pool.stride, pool.padding, first()),
                windows(in[2], pool.kernel, pool.stride, pool.padding, first())};
    }
    Shape operator()(const Add&) const {
        if (sources[0].shape != sources[1].shape)
            throw InputError(fmt::format("shapes don't fit (add wants two equal ones, {} and {})", describe(sources[0]),
                                         describe(sources[1])));
        return first().shape;
    }
    Shape operator()(const ChannelScale&) const {
        const Shape& in = image(first());
        if (sources[1].shape != Shape{in[0], 1, 1})
            misfit(fmt::format("a factor for each of {} channels", in[0]), sources[1]);
        return in;
    }
    Shape operator()(const Concatenate& concatenate) const {
        Shape sum = first().shape;
        if (sum.rank() != 2 && sum.rank() != 3) misfit("[sequence, features] or [channels, height, width]", first());
        const std::size_t joined = sum.rank() == 3 ? 0 : 1;
        sum.extents[joined] = 0;
        for (const Source& source : sources) {
            Shape wanted = first().shape;
            if (source.shape.rank() == wanted.rank()) wanted.extents[joined] = source.shape.extents[joined];
            if (source.shape != wanted)
                throw InputError(fmt::format("shapes don't fit (what is concatenated differs in {} alone, {} and {})",
                                             joined == 0 ? "channels" : "features", describe(first()),
                                             describe(source)));
            if (source.shape.extents[joined] % concatenate.blocks != 0)
                misfit(fmt::format("a multiple of {} blocks", concatenate.blocks), source);
            sum.extents[joined] = checked_sum(sum.extents[joined], source.shape.extents[joined]);
        }
        return sum;
    }
    Shape operator()(const Dropout&) const { return first().shape; }
    Shape operator()(const Embedding& embedding) const {
        if (first().vocab == 0) misfit("a model input of tokens", first());
        if (first().vocab > embedding.vocab)
            throw InputError(fmt::format("vocab {} is too small (ids of '{}' reach {})", embedding.vocab, first().name,
                                         first().vocab - 1));
        return {first().shape[0], embedding.hidden};
    }
    Shape operator()(const PositionEmbedding& position) const {
        const Shape& in = sequence(first(), position.hidden);
        if (in[0] > position.positions)
            throw InputError(
                fmt::format("{} positions are too few for the sequence ({})", position.positions, describe(first())));
        return in;
    }
    Shape operator()(const Rotary& rotary) const {
        if (rotary.head_dim % 2 != 0)
            throw InputError(fmt::format("rotary wants an even head_dim, got {}", rotary.head_dim));
        return sequence(first(), (rotary.heads + 2 * rotary.kv_heads) * rotary.head_dim);
    }
    Shape operator()(const Attention& attention) const {
        if (attention.heads % attention.kv_heads != 0)
            throw InputError(fmt::format("kv_heads {} doesn't divide heads {}", attention.kv_heads, attention.heads));
        if (attention.memory > 0 && sources[1].shape != Shape{attention.memory, first().shape.back()})
            misfit(fmt::format("[{}, {}] of memory", attention.memory, first().shape.back()), sources[1]);
        return with_last_extent(sequence(first(), (attention.heads + 2 * attention.kv_heads) * attention.head_dim),
                                attention.heads * attention.head_dim);
    }
    Shape operator()(const Flatten&) const { return {checked_elements(first().shape)}; }
    Shape operator()(const FirstToken&) const {
        if (first().shape.rank() != 2) misfit("[sequence, hidden]", first());
        return {first().shape[1]};
    }
    Shape operator()(const Dispatch& dispatch) const {
        if (first().shape.rank() != 2) misfit("[sequence, hidden]", first());
        if (dispatch.top_k > dispatch.experts)
            throw InputError(
                fmt::format("top_k {} is more than the {} experts there are", dispatch.top_k, dispatch.experts));
        const double most = static_cast<double>(dispatch.experts) / static_cast<double>(dispatch.top_k) - 1;
        if (dispatch.imbalance > most)
            throw InputError(
                fmt::format("imbalance {} is more than {} experts of which a token takes {} can have (all "
                            "tokens take the same); use at most {}",
                            dispatch.imbalance, dispatch.experts, dispatch.top_k, most));
        return {checked_product({first().shape[0], dispatch.top_k}), first().shape[1]};
    }
    Shape operator()(const GroupedLinear& linear) const {
        if (linear.experts != first().experts)
            throw InputError(fmt::format("has weights of {} experts, and '{}' rows of {}", linear.experts, first().name,
                                         first().experts));
        return with_last_extent(last_extent(first(), linear.in_features), linear.out_features);
    }
    Shape operator()(const Combine& combine) const {
        const Source& logits = sources[1];
        if (combine.experts != first().experts)
            throw InputError(
                fmt::format("combines {} experts, and '{}' has {}", combine.experts, first().name, first().experts));
        if (logits.shape.rank() != 2 || logits.shape.back() != combine.experts)
            misfit(fmt::format("a router's [sequence, {}]", combine.experts), logits);
        if (first().shape[0] % logits.shape[0] != 0)
            misfit(fmt::format("some rows for each of {} positions", logits.shape[0]), first());
        return {logits.shape[0], first().shape.back()};
    }
    Shape operator()(const SoftmaxLoss& loss) const {
        if (first().shape.rank() > 2) misfit("[classes] or [sequence, classes]", first());
        last_extent(first(), loss.classes);
        return {};
    }
};

/// Whether input `slot` of a layer takes rows of experts, may take them, or must not.
enum class Rows { none, any, wanted };
Rows rows_into(const LayerKind& kind, std::size_t slot) {
    if (std::holds_alternative<GroupedLinear>(kind)) return Rows::wanted;
    if (std::holds_alternative<Combine>(kind)) return slot == 0 ? Rows::wanted : Rows::none;
    const bool is_between = std::holds_alternative<Activation>(kind) || std::holds_alternative<GatedActivation>(kind);
    return is_between ? Rows::any : Rows::none;
}

void check_rows(const LayerKind& kind, const std::vector<Source>& sources) {
    for (std::size_t slot = 0; slot < sources.size(); ++slot) {
        const Rows rows = rows_into(kind, slot);
        const bool are_rows = sources[slot].dispatch.is_valid();
        if (are_rows && rows == Rows::none)
            throw InputError(
                fmt::format("'{}' holds rows of experts, which only grouped_linear, activations, gated_silu "
                            "and combine read; put combine behind them",
                            sources[slot].name));
        if (!are_rows && rows == Rows::wanted)
            throw InputError(fmt::format("{} reads rows of experts, which '{}' doesn't hold; put it behind a dispatch",
                                         kind_name(kind), sources[slot].name));
    }
}

/// How many inputs a kind takes (at least, where it takes any number).
std::size_t inputs_of(const LayerKind& kind) {
    if (const auto* attention = std::get_if<Attention>(&kind)) return attention->memory > 0 ? 2 : 1;
    const bool takes_two = std::holds_alternative<Add>(kind) || std::holds_alternative<Combine>(kind) ||
                           std::holds_alternative<ChannelScale>(kind) || std::holds_alternative<Concatenate>(kind);
    return takes_two ? 2 : 1;
}

}  // namespace

Shape output_shape(const LayerKind& kind, const std::vector<Source>& sources) {
    const std::size_t wanted = inputs_of(kind);
    const bool takes_more = std::holds_alternative<Concatenate>(kind) && sources.size() > wanted;
    if (sources.size() != wanted && !takes_more)
        throw InputError(fmt::format("{} wants {} input{}, got {}", kind_name(kind), wanted, wanted == 1 ? "" : "s",
                                     sources.size()));
    for (const auto& source : sources) {
        if (source.vocab > 0 && !std::holds_alternative<Embedding>(kind))
            throw InputError(fmt::format("'{}' holds token ids, which only an embedding can read", source.name));
        if (source.vocab == 0 && source.shape.rank() == 0)
            throw InputError(fmt::format("'{}' is a loss, which feeds no other layer", source.name));
    }
    check_rows(kind, sources);
    Shape shape = std::visit(Rule{sources}, kind);
    checked_elements(shape);
    return shape;
}

}  // namespace lockstep::model
