// Models of a few thousand parameters that use every kind of layer, and their step graphs.
#pragma once

#include <string>

#include "model/builder.hpp"
#include "step/builder.hpp"

namespace lockstep::cpu::testing {

enum class Normalised { no, yes };

/// 16 x 16 images: convolutions (strided, 1x1), pools, a residual sum, dropout, a flattened image of 4 x 4, a
/// classifier.
inline model::Model small_cnn(Normalised normalised) {
    using namespace model;
    ModelBuilder b("small-cnn");
    b.add_input({Input::Kind::image, "input", {3, 16, 16}});
    LayerId x = b.add("conv1", model::Convolution{3, 16, 3, 1, 1, 1, true}, {Feed::from_input(0)});
    if (normalised == Normalised::yes) x = b.add("bn1", model::Norm{model::Norm::Kind::batch, 16}, {x});
    x = b.add("relu1", Activation{Activation::Kind::relu}, {x});
    const LayerId shortcut = b.add("pool1", model::Pool{model::Pool::Kind::max, 3, 2, 1}, {x});
    x = b.add("conv2", model::Convolution{16, 16, 3, 1, 1}, {shortcut});
    if (normalised == Normalised::yes) x = b.add("bn2", model::Norm{model::Norm::Kind::batch, 16}, {x});
    x = b.add("sum", Add{}, {x, shortcut});
    x = b.add("relu2", Activation{Activation::Kind::relu}, {x});
    x = b.add("conv3", model::Convolution{16, 24, 1, 2, 0}, {x});
    x = b.add("drop", model::Dropout{0.25}, {x});
    x = b.add("flatten", Flatten{}, {x});
    x = b.add("classifier", Linear{24 * 16, 10}, {x});
    b.add("loss", model::SoftmaxLoss{10}, {x});
    return b.take();
}

/// Two transformer blocks with rotary positions, shared key heads, a gated and a plain feed-forward part, dropout, and
/// an output layer tied to the embedding.
inline model::Model small_gpt() {
    using namespace model;
    ModelBuilder b("small-gpt");
    b.model();
    model::Input tokens{Input::Kind::tokens, "tokens", {12}};
    tokens.vocab = 50;
    b.add_input(tokens);
    LayerId x = b.add("embedding", model::Embedding{50, 16}, {Feed::from_input(0)});
    const ParameterId table = b.model().layer(x).parameters[0];
    x = b.add("positions", PositionEmbedding{20, 16}, {x});
    for (int i = 0; i < 2; ++i) {
        const std::string block = "block" + std::to_string(i) + ".";
        const auto kind = i == 0 ? model::Norm::Kind::layer : model::Norm::Kind::rms;
        LayerId y = b.add(block + "norm1", model::Norm{kind, 16}, {x});
        y = b.add(block + "qkv", Linear{16, (4 + 2 * 2) * 4}, {y});
        y = b.add(block + "rotary", Rotary{4, 2, 4}, {y});
        y = b.add(block + "attention", model::Attention{4, 2, 4, true, 0.1}, {y});
        y = b.add(block + "output", Linear{16, 16, false}, {y});
        x = b.add(block + "sum1", Add{}, {x, y});
        y = b.add(block + "norm2", model::Norm{kind, 16}, {x});
        if (i == 0) {
            y = b.add(block + "up", Linear{16, 48}, {y});
            y = b.add(block + "gated", GatedActivation{24}, {y});
        } else {
            y = b.add(block + "up", Linear{16, 24}, {y});
            y = b.add(block + "gelu", Activation{Activation::Kind::gelu}, {y});
        }
        y = b.add(block + "down", Linear{24, 16}, {y});
        y = b.add(block + "dropout", model::Dropout{0.1}, {y});
        x = b.add(block + "sum2", Add{}, {x, y});
    }
    LayerOptions tied;
    tied.tied_weight = table;
    x = b.add("head", Linear{16, 50, false}, {x}, tied);
    b.add("loss", model::SoftmaxLoss{50}, {x});
    return b.take();
}

struct SmallPlan {
    int ranks = 1;
    std::int64_t micro_batch = 2;
    int accumulation = 1;
    plan::MemoryFormat memory_format = plan::MemoryFormat::packed;
    plan::BucketStorage bucket_storage = plan::BucketStorage::copied;
    plan::AttentionAlgorithm attention = plan::AttentionAlgorithm::flash;
    plan::Optimizer optimizer = plan::Optimizer::sgd_momentum;
    Precision precision = Precision::fp32;
};

/// Buckets of 4 KiB, so that there are several.
inline step::StepGraph small_graph(const model::Model& model, const SmallPlan& small) {
    plan::Plan plan;
    plan.mesh.dp = small.ranks;
    plan.micro_batch = small.micro_batch;
    plan.accumulation = small.accumulation;
    plan.bucket = plan.first_bucket = Bytes{4096};
    plan.optimizer = small.optimizer;
    plan::Framework framework;
    framework.memory_format = small.memory_format;
    framework.bucket_storage = small.bucket_storage;
    framework.attention = small.attention;
    return step::build_step({model, plan, framework, {small.ranks, small.ranks}, small.precision, 1, std::nullopt});
}

}  // namespace lockstep::cpu::testing
