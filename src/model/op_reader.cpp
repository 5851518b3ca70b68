#include "model/op_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "model/limits.hpp"

namespace lockstep::model {

namespace {

using config::Object;

std::int64_t size(Object& layer, std::string_view key) { return layer.integer(key, 1, max_extent); }
std::int64_t size_or(Object& layer, std::string_view key, std::int64_t fallback) {
    return layer.integer_or(key, fallback, 1, max_extent);
}

/// The first (channels) and the last extent of what comes in; 1 when there is none, which the shape rules report.
std::int64_t channels(const Shape& in) { return in.rank() > 0 ? in[0] : 1; }
std::int64_t features(const Shape& in) { return in.rank() > 0 ? in.back() : 1; }

bool is_list(Object& layer, std::string_view key) {
    const auto node = layer.node(key);
    return node && node->is_sequence();
}

/// `key: [height, width]`, each from `least` to 100,000.
std::pair<std::int64_t, std::int64_t> size_pair(Object& layer, std::string_view key, std::int64_t least) {
    constexpr std::int64_t most = 100'000;
    const std::vector<std::int64_t> sizes = layer.integers(key);
    const auto fits = [&](std::int64_t size) { return size >= least && size <= most; };
    if (sizes.size() == 2 && fits(sizes[0]) && fits(sizes[1])) return {sizes[0], sizes[1]};
    layer.error(key, fmt::format("{}: wants a number or [height, width], each from {} to {}", key, least, most));
    return {1, 1};
}

/// kernel: 3 or [1, 7]; padding is written in the same way.
LayerKind read_convolution(Object& layer, const Shape& in) {
    Convolution c{.in_channels = channels(in)};
    c.out_channels = size(layer, "out");
    const bool is_square = !is_list(layer, "kernel");
    if (is_square)
        c.kernel = layer.integer("kernel", 1, 100'000);
    else
        std::tie(c.kernel, c.kernel_width) = size_pair(layer, "kernel", 1);
    c.stride = size_or(layer, "stride", 1);
    if (is_square)
        c.padding = layer.integer_or("padding", 0, 0, max_extent);
    else if (layer.has("padding"))
        std::tie(c.padding, c.padding_width) = size_pair(layer, "padding", 0);
    c.groups = size_or(layer, "groups", 1);
    c.bias = layer.flag_or("bias", false);
    return c;
}

LayerKind read_linear(Object& layer, const Shape& in) {
    return Linear{features(in), size(layer, "out"), layer.flag_or("bias", true)};
}

LayerKind read_norm(Object& layer, const Shape& in, Norm::Kind kind) {
    return Norm{kind, kind == Norm::Kind::batch ? channels(in) : features(in),
                layer.number_or("epsilon", 1e-5, 1e-30, 1)};
}

LayerKind read_pool(Object& layer, Pool::Kind kind) {
    Pool pool{.kind = kind};
    pool.kernel = layer.integer("kernel", 1, 100'000);
    pool.stride = size_or(layer, "stride", pool.kernel);
    pool.padding = layer.integer_or("padding", 0, 0, max_extent);
    return pool;
}

std::int64_t head_dim(Object& layer, const Shape& in, std::int64_t heads, std::int64_t kv_heads) {
    const std::int64_t width = features(in);
    if (width % (heads + 2 * kv_heads) != 0)
        layer.error("heads", fmt::format("heads {} and kv_heads {} don't fit {} (it must be a multiple of heads + 2 "
                                         "kv_heads = {}: queries, keys and values side by side)",
                                         heads, kv_heads, to_string(in), heads + 2 * kv_heads));
    return std::max<std::int64_t>(1, width / (heads + 2 * kv_heads));
}

LayerKind read_rotary(Object& layer, const Shape& in) {
    Rotary rotary;
    rotary.heads = size(layer, "heads");
    rotary.kv_heads = size_or(layer, "kv_heads", rotary.heads);
    rotary.theta = layer.number_or("theta", 10000, 1, 1e12);
    rotary.head_dim = head_dim(layer, in, rotary.heads, rotary.kv_heads);
    return rotary;
}

LayerKind read_attention(Object& layer, const Shape& in) {
    Attention attention;
    attention.heads = size(layer, "heads");
    attention.kv_heads = size_or(layer, "kv_heads", attention.heads);
    attention.causal = layer.flag_or("causal", true);
    attention.dropout = layer.number_or("dropout", 0, 0, 0.999);
    attention.memory = layer.integer_or("memory", 0, 0, max_extent);
    attention.relative = layer.flag_or("relative", false);
    attention.head_dim = head_dim(layer, in, attention.heads, attention.kv_heads);
    return attention;
}

LayerKind read_gated(Object& layer, const Shape& in) {
    if (features(in) % 2 != 0)
        layer.error("op", fmt::format("gated_silu wants an even last extent (gate and up), got {}", to_string(in)));
    return GatedActivation{features(in) / 2};
}

LayerKind read_dispatch(Object& layer) {
    Dispatch dispatch;
    dispatch.experts = size(layer, "experts");
    dispatch.top_k = size_or(layer, "top_k", 1);
    dispatch.capacity = layer.number_or("capacity", 0, 0, 1e6);
    dispatch.imbalance = layer.number_or("imbalance", 0, 0, 1e6);
    return dispatch;
}

using Reader = std::function<LayerKind(Object&, const Source&)>;

const std::map<std::string, Reader, std::less<>>& readers() {
    static const std::map<std::string, Reader, std::less<>> table{
        {"convolution", [](Object& o, const Source& in) { return read_convolution(o, in.shape); }},
        {"linear", [](Object& o, const Source& in) { return read_linear(o, in.shape); }},
        {"batch_norm", [](Object& o, const Source& in) { return read_norm(o, in.shape, Norm::Kind::batch); }},
        {"layer_norm", [](Object& o, const Source& in) { return read_norm(o, in.shape, Norm::Kind::layer); }},
        {"rms_norm", [](Object& o, const Source& in) { return read_norm(o, in.shape, Norm::Kind::rms); }},
        {"relu", [](Object&, const Source&) { return Activation{Activation::Kind::relu}; }},
        {"gelu", [](Object&, const Source&) { return Activation{Activation::Kind::gelu}; }},
        {"silu", [](Object&, const Source&) { return Activation{Activation::Kind::silu}; }},
        {"tanh", [](Object&, const Source&) { return Activation{Activation::Kind::tanh}; }},
        {"sigmoid", [](Object&, const Source&) { return Activation{Activation::Kind::sigmoid}; }},
        {"gated_silu", [](Object& o, const Source& in) { return read_gated(o, in.shape); }},
        {"max_pool", [](Object& o, const Source&) { return read_pool(o, Pool::Kind::max); }},
        {"average_pool", [](Object& o, const Source&) { return read_pool(o, Pool::Kind::average); }},
        {"global_max_pool",
         [](Object&, const Source&) {
             return Pool{Pool::Kind::max, 0, 1, 0};
         }},
        {"global_average_pool",
         [](Object&, const Source&) {
             return Pool{Pool::Kind::average, 0, 1, 0};
         }},
        {"add", [](Object&, const Source&) { return Add{}; }},
        {"channel_scale", [](Object&, const Source&) { return ChannelScale{}; }},
        {"concatenate", [](Object& o, const Source&) { return Concatenate{size_or(o, "blocks", 1)}; }},
        {"dropout", [](Object& o, const Source&) { return Dropout{o.number_or("probability", 0.1, 0, 0.999)}; }},
        {"embedding",
         [](Object& o, const Source& in) {
             return Embedding{size_or(o, "vocab", std::max<std::int64_t>(in.vocab, 1)), size(o, "hidden")};
         }},
        {"position_embedding",
         [](Object& o, const Source& in) {
             return PositionEmbedding{size_or(o, "positions", channels(in.shape)), features(in.shape)};
         }},
        {"rotary", [](Object& o, const Source& in) { return read_rotary(o, in.shape); }},
        {"attention", [](Object& o, const Source& in) { return read_attention(o, in.shape); }},
        {"flatten", [](Object&, const Source&) { return Flatten{}; }},
        {"first_token", [](Object&, const Source&) { return FirstToken{}; }},
        {"dispatch", [](Object& o, const Source&) { return read_dispatch(o); }},
        {"grouped_linear",
         [](Object& o, const Source& in) {
             return GroupedLinear{std::max<std::int64_t>(in.experts, 1), features(in.shape), size(o, "out")};
         }},
        {"combine", [](Object&, const Source& in) { return Combine{std::max<std::int64_t>(in.experts, 1)}; }},
        {"softmax_loss", [](Object&, const Source& in) { return SoftmaxLoss{features(in.shape)}; }},
    };
    return table;
}

}  // namespace

const std::vector<std::string>& op_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto& [name, reader] : readers()) all.push_back(name);
        return all;
    }();
    return names;
}

std::optional<ReadOp> read_op(Object& layer, const std::vector<Source>& sources) {
    const std::size_t errors_before = layer.diagnostics().count();
    const std::string op = layer.text("op");
    const auto reader = readers().find(op);
    if (reader == readers().end()) {
        if (layer.diagnostics().count() == errors_before)
            layer.error("op", fmt::format("unknown op '{}'{}", op, config::did_you_mean(op, op_names())));
        return std::nullopt;
    }
    ReadOp read{reader->second(layer, sources.front()), {}};
    if (layer.has("init_scale")) read.options.init_scale = layer.number("init_scale", 0, 1e6);
    read.options.trainable = layer.flag_or("trainable", true);
    layer.finish();
    if (layer.diagnostics().count() != errors_before) return std::nullopt;
    return read;
}

}  // namespace lockstep::model
