#include "model/gpt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/limits.hpp"

namespace lockstep::model {

namespace {

constexpr std::int64_t layers_per_block =
    16;  // norm, qkv, rotary, attention, proj, dropout, add; norm, router ... combine, dropout, add
constexpr std::int64_t layers_per_adapter = 3;

const std::vector<std::string> lora_targets{"qkv", "proj", "up", "down"};

Lora read_lora(config::Object& gpt) {
    Lora lora;
    const auto node = gpt.node("lora");
    if (!node) return lora;
    config::Object object(*node, "lora", gpt.diagnostics());
    lora.rank = object.integer("rank", 1, max_extent);
    lora.alpha = object.number_or("alpha", static_cast<double>(lora.rank), 1e-6, 1e6);
    lora.targets = object.has("targets") ? object.texts("targets") : lora_targets;
    if (lora.targets.empty())
        object.error("targets", fmt::format("an empty list; use some of {}", fmt::join(lora_targets, ", ")));
    for (const auto& target : lora.targets) {
        if (std::ranges::find(lora_targets, target) == lora_targets.end())
            object.error("targets",
                         fmt::format("unknown target '{}'{}; use some of {}", target,
                                     config::did_you_mean(target, lora_targets), fmt::join(lora_targets, ", ")));
        if (std::ranges::count(lora.targets, target) > 1)
            object.error("targets", fmt::format("'{}' is in the list twice; keep one", target));
    }
    object.finish();
    return lora;
}

Experts read_experts(config::Object& gpt, const Lora& lora) {
    Experts experts;
    const auto node = gpt.node("experts");
    if (!node) return experts;
    config::Object object(*node, "experts", gpt.diagnostics());
    experts.count = object.integer("count", 1, max_extent);
    experts.top_k = object.integer_or("top_k", std::min<std::int64_t>(2, experts.count), 1, max_extent);
    experts.capacity = object.number_or("capacity", 0, 0, 1e6);
    experts.imbalance = object.number_or("imbalance", 0, 0, 1e6);
    experts.every = object.integer_or("every", 1, 1, max_layers);
    for (const char* target : {"up", "down"})
        if (std::ranges::find(lora.targets, target) != lora.targets.end())
            gpt.error("lora", fmt::format("target '{}' is the MLP that experts replace, and adapters of experts aren't "
                                          "built; use targets: [qkv, proj]",
                                          target));
    object.finish();
    return experts;
}

void read_positions(config::Object& object, Transformer& t) {
    t.rotary = object.choice_or("position", {"learned", "rotary"}, "learned") == "rotary";
    t.rope_theta = object.number_or("rope_theta", 10000, 1, 1e12);
    t.positions = object.integer_or("positions", t.seq_len, 1, max_extent);
    if (t.rotary && object.has("positions"))
        object.error("positions", "rotary positions have no table; remove 'positions', or use position: learned");
    if (t.positions < t.seq_len)
        object.error("positions",
                     fmt::format("{} positions are fewer than seq_len {}; raise positions or lower seq_len",
                                 t.positions, t.seq_len));
    if (t.rotary && t.head_dim % 2 != 0)
        object.error("head_dim", fmt::format("rotary positions want an even head_dim, got {}", t.head_dim));
}

void add_block(ModelBuilder& builder, const Transformer& t, int index, LayerId& stream) {
    const std::string prefix = fmt::format("block.{}.", index);
    Chain attention(builder, t, prefix, index, stream);
    attention.add_norm("norm1");
    attention.add_attention();
    const LayerId middle = attention.add_sum("add1", stream);
    Chain mlp(builder, t, prefix, index, middle);
    mlp.add_norm("norm2");
    if (t.experts.has(index))
        mlp.add_experts();
    else
        mlp.add_mlp();
    stream = mlp.add_sum("add2", middle);
}

}  // namespace

Transformer read_gpt(const config::Node& node, config::Diagnostics& diagnostics) {
    config::Object object(node, "gpt", diagnostics);
    const std::size_t errors_before = diagnostics.count();
    Transformer t = read_transformer_sizes(object);
    t.gated = object.flag_or("gated", false);
    t.tied = object.flag_or("tied", true);
    t.bias = object.flag_or("bias", true);
    t.norm = object.choice_or("norm", {"layer", "rms"}, "layer") == "rms" ? Norm::Kind::rms : Norm::Kind::layer;
    t.kv_heads = object.integer_or("kv_heads", t.heads, 1, max_extent);
    const bool readable = diagnostics.count() == errors_before;
    read_positions(object, t);
    if (readable && t.heads % t.kv_heads != 0)
        object.error("kv_heads", fmt::format("kv_heads {} doesn't divide heads {}", t.kv_heads, t.heads));
    t.lora = read_lora(object);
    t.experts = read_experts(object, t.lora);
    check_layer_count(object, t.layers,
                      layers_per_block + layers_per_adapter * static_cast<std::int64_t>(t.lora.targets.size()));
    object.finish();
    return t;
}

Model build_gpt(const std::string& name, const Transformer& t) {
    ModelBuilder builder(name);
    builder.add_input({Input::Kind::tokens, "tokens", {t.seq_len}, t.vocab});
    Chain start(builder, t, "", -1, Feed::from_input(0));
    const LayerId tokens = start.add("embedding", Embedding{t.vocab, t.hidden});
    if (!t.rotary) start.add("position", PositionEmbedding{t.positions, t.hidden});
    start.add_dropout("embedding_dropout");

    LayerId stream = start.last();
    for (std::int64_t i = 0; i < t.layers; ++i) add_block(builder, t, static_cast<int>(i), stream);

    Chain head(builder, t, "", -1, stream);
    head.add_norm("norm");
    const Linear output{t.hidden, t.vocab, false};
    if (t.tied)
        head.add_tied("output", output, builder.model().layer(tokens).parameters.front());
    else
        head.add("output", output);
    head.add("loss", SoftmaxLoss{t.vocab});
    Model model = builder.take();
    model.sample_unit = "sequences";
    model.lora_rank = t.lora.rank;
    return model;
}

}  // namespace lockstep::model
