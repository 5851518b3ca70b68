#include "model/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/limits.hpp"

namespace lockstep::model {

Transformer read_transformer_sizes(config::Object& object) {
    Transformer t;
    const std::size_t errors_before = object.diagnostics().count();
    t.layers = object.integer("layers", 1, max_layers);
    t.hidden = object.integer("hidden", 1, max_extent);
    t.heads = object.integer("heads", 1, max_extent);
    t.ffn = object.integer_or("ffn", 4 * t.hidden, 1, 4 * max_extent);
    t.vocab = object.integer("vocab", 2, max_extent);
    t.seq_len = object.integer("seq_len", 1, max_extent);
    t.dropout = object.number_or("dropout", 0, 0, 0.999);
    t.epsilon = object.number_or("epsilon", 1e-5, 1e-30, 1);
    const bool has_head_dim = object.has("head_dim");
    t.head_dim = object.integer_or("head_dim", 1, 1, max_extent);
    t.kv_heads = t.heads;
    t.positions = t.seq_len;
    if (object.diagnostics().count() != errors_before) return t;
    if (!has_head_dim) {
        if (t.hidden % t.heads != 0)
            object.error("heads", fmt::format("heads {} doesn't divide hidden {}; use a divisor, or give head_dim",
                                              t.heads, t.hidden));
        t.head_dim = t.hidden / t.heads;
    }
    return t;
}

void check_layer_count(config::Object& object, std::int64_t blocks, std::int64_t per_block) {
    if (blocks > (max_layers - 20) / per_block)
        object.error("layers", fmt::format("{} blocks of {} layers are more than {} layers; use fewer", blocks,
                                           per_block, max_layers));
}

LayerId Chain::add(const std::string& name, LayerKind kind) {
    last_ = builder_.add(prefix_ + name, std::move(kind), {last_},
                         {.init_scale = transformer_init_scale, .trainable = is_trained(), .repeat_group = group_});
    return last_.layer;
}

void Chain::add_linear(const std::string& name, const Linear& linear) {
    const Feed input = last_;
    const LayerId frozen = add(name, linear);
    if (std::ranges::find(sizes_.lora.targets, name) == sizes_.lora.targets.end()) return;
    const std::string adapter = prefix_ + name + ".lora_";
    const std::int64_t rank = sizes_.lora.rank;
    const LayerId a = builder_.add(adapter + "a", Linear{linear.in_features, rank, false}, {input},
                                   {.init_scale = transformer_init_scale, .repeat_group = group_});
    const LayerId b = builder_.add(adapter + "b", Linear{rank, linear.out_features, false}, {Feed{a}},
                                   {.init_scale = 0, .repeat_group = group_});
    last_ = builder_.add(adapter + "add", Add{}, {Feed{frozen}, Feed{b}}, {.repeat_group = group_});
}

LayerId Chain::add_tied(const std::string& name, LayerKind kind, ParameterId weight) {
    last_ = builder_.add(prefix_ + name, std::move(kind), {last_},
                         {.init_scale = transformer_init_scale,
                          .tied_weight = weight,
                          .trainable = is_trained(),
                          .repeat_group = group_});
    return last_.layer;
}

LayerId Chain::add_sum(const std::string& name, LayerId other) {
    last_ = builder_.add(prefix_ + name, Add{}, {last_, Feed{other}}, {.repeat_group = group_});
    return last_.layer;
}

void Chain::add_dropout(const std::string& name) {
    if (sizes_.dropout > 0) add(name, Dropout{sizes_.dropout});
}

void Chain::add_norm(const std::string& name) { add(name, Norm{sizes_.norm, sizes_.hidden, sizes_.epsilon}); }

void Chain::add_attention() {
    const std::int64_t qkv = (sizes_.heads + 2 * sizes_.kv_heads) * sizes_.head_dim;
    add_linear("qkv", Linear{sizes_.hidden, qkv, sizes_.bias});
    if (sizes_.rotary) add("rotary", Rotary{sizes_.heads, sizes_.kv_heads, sizes_.head_dim, sizes_.rope_theta});
    add("attention", Attention{sizes_.heads, sizes_.kv_heads, sizes_.head_dim, sizes_.causal, sizes_.dropout});
    add_linear("proj", Linear{sizes_.heads * sizes_.head_dim, sizes_.hidden, sizes_.bias});
    add_dropout("proj_dropout");
}

void Chain::add_mlp() {
    add_linear("up", Linear{sizes_.hidden, sizes_.gated ? 2 * sizes_.ffn : sizes_.ffn, sizes_.bias});
    add_activation();
    add_linear("down", Linear{sizes_.ffn, sizes_.hidden, sizes_.bias});
    add_dropout("down_dropout");
}

void Chain::add_activation() {
    if (sizes_.gated)
        add("gate", GatedActivation{sizes_.ffn});
    else
        add("gelu", Activation{Activation::Kind::gelu});
}

void Chain::add_experts() {
    const Experts& e = sizes_.experts;
    const Feed input = last_;
    const LayerId router = add("router", Linear{sizes_.hidden, e.count, false});
    last_ = input;
    add("dispatch", Dispatch{e.count, e.top_k, e.capacity, e.imbalance});
    add("experts.up", GroupedLinear{e.count, sizes_.hidden, sizes_.gated ? 2 * sizes_.ffn : sizes_.ffn});
    add_activation();
    add("experts.down", GroupedLinear{e.count, sizes_.ffn, sizes_.hidden});
    last_ = builder_.add(prefix_ + "combine", Combine{e.count}, {last_, Feed{router}}, {.repeat_group = group_});
    add_dropout("down_dropout");
}

}  // namespace lockstep::model
