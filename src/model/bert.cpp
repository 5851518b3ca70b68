#include "model/bert.hpp"

#include <fmt/format.h>

#include "model/limits.hpp"

namespace lockstep::model {

namespace {

constexpr std::int64_t layers_per_block = 12;
constexpr std::int64_t segments = 2;  // sentence A and sentence B

LayerId add_embeddings(ModelBuilder& builder, const Transformer& t, LayerId& tokens) {
    const int token_input = builder.add_input({Input::Kind::tokens, "tokens", {t.seq_len}, t.vocab});
    const int segment_input = builder.add_input({Input::Kind::tokens, "segments", {t.seq_len}, segments});
    tokens =
        Chain(builder, t, "", -1, Feed::from_input(token_input)).add("token_embedding", Embedding{t.vocab, t.hidden});
    Chain chain(builder, t, "", -1, Feed::from_input(segment_input));
    chain.add("segment_embedding", Embedding{segments, t.hidden});
    chain.add_sum("embedding_add", tokens);
    chain.add("position", PositionEmbedding{t.positions, t.hidden});
    chain.add_norm("embedding_norm");
    chain.add_dropout("embedding_dropout");
    return chain.last();
}

void add_block(ModelBuilder& builder, const Transformer& t, int index, LayerId& stream) {
    Chain chain(builder, t, fmt::format("block.{}.", index), index, stream);
    chain.add_attention();
    chain.add_sum("add1", stream);
    chain.add_norm("norm1");
    const LayerId middle = chain.last();
    chain.add_mlp();
    chain.add_sum("add2", middle);
    chain.add_norm("norm2");
    stream = chain.last();
}

}  // namespace

Transformer read_bert(const config::Node& node, config::Diagnostics& diagnostics) {
    config::Object object(node, "bert", diagnostics);
    Transformer t = read_transformer_sizes(object);
    t.causal = false;
    t.positions = object.integer_or("positions", t.seq_len, 1, max_extent);
    if (t.positions < t.seq_len)
        object.error("positions",
                     fmt::format("{} positions are fewer than seq_len {}; raise positions or lower seq_len",
                                 t.positions, t.seq_len));
    check_layer_count(object, t.layers, layers_per_block);
    object.finish();
    return t;
}

Model build_bert(const std::string& name, const Transformer& t) {
    ModelBuilder builder(name);
    LayerId tokens;
    LayerId stream = add_embeddings(builder, t, tokens);
    for (std::int64_t i = 0; i < t.layers; ++i) add_block(builder, t, static_cast<int>(i), stream);

    Chain head(builder, t, "", -1, stream);
    head.add("transform", Linear{t.hidden, t.hidden, true});
    head.add("transform_gelu", Activation{Activation::Kind::gelu});
    head.add_norm("transform_norm");
    head.add_tied("output", Linear{t.hidden, t.vocab, true}, builder.model().layer(tokens).parameters.front());
    head.add("loss", SoftmaxLoss{t.vocab});
    Model model = builder.take();
    model.sample_unit = "sequences";
    return model;
}

}  // namespace lockstep::model
