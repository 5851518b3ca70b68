// The sizes that describe a transformer, and the block of layers that gpt and bert share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/document.hpp"
#include "model/builder.hpp"

namespace lockstep::model {

/// Low-rank adapters (Hu et al. 2021): each target's linear layer is frozen, and y = W x + (alpha / rank) B (A x)
/// trains A [rank, in] (normal start) and B [out, rank] (from zero) alone. alpha / rank is part of B here: B is zero at
/// the start either way, so that only the step that the optimizer takes along B differs, not the work.
struct Lora {
    std::int64_t rank = 0;  ///< 0: none, everything trains
    double alpha = 0;
    std::vector<std::string> targets;  ///< of qkv, proj, up, down
};

/// Blocks whose MLP is a mixture of experts, each an MLP of the block's sizes without bias.
struct Experts {
    std::int64_t count = 0;  ///< 0: none
    std::int64_t top_k = 2;
    double capacity = 0, imbalance = 0;  ///< as in Dispatch
    std::int64_t every = 1;              ///< each every-th block has experts: blocks every - 1, 2 every - 1 ...
    bool has(std::int64_t block) const { return count > 0 && (block + 1) % every == 0; }
};

struct Transformer {
    std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
    std::int64_t vocab = 0, seq_len = 0, positions = 0;
    bool gated = false;  ///< one linear to 2 ffn, silu(gate) * up, linear back
    bool tied = true;    ///< the output layer uses the token embedding's weight
    bool bias = true;    ///< of the linear layers inside the blocks
    bool rotary = false;
    bool causal = true;
    double rope_theta = 10000;
    double dropout = 0;  ///< of embeddings, attention probabilities and residual branches alike
    double epsilon = 1e-5;
    Norm::Kind norm = Norm::Kind::layer;
    Lora lora;
    Experts experts;
};

/// Reads the sizes both families have: layers, hidden, heads, ffn (default 4 hidden), vocab, seq_len, dropout, epsilon.
/// Reports sizes that don't go together (heads that don't divide hidden ...). Leaves what a family adds to its reader.
Transformer read_transformer_sizes(config::Object& object);
/// Reports more layers than a model may have, `per_block` layers a block.
void check_layer_count(config::Object& object, std::int64_t blocks, std::int64_t per_block);

/// Adds layers one behind another with names under a common prefix.
class Chain {
public:
    Chain(ModelBuilder& builder, const Transformer& sizes, std::string prefix, int repeat_group, Feed start)
        : builder_(builder), sizes_(sizes), prefix_(std::move(prefix)), group_(repeat_group), last_(start) {}

    LayerId add(const std::string& name, LayerKind kind);
    /// A linear layer; with adapters where Lora::targets has its name: NAME.lora_a, NAME.lora_b and NAME.lora_add.
    void add_linear(const std::string& name, const Linear& linear);
    void add_activation();
    LayerId add_tied(const std::string& name, LayerKind kind, ParameterId weight);
    LayerId add_sum(const std::string& name, LayerId other);
    void add_dropout(const std::string& name);  ///< nothing when its probability is 0
    void add_norm(const std::string& name);
    /// qkv, rotary, attention, projection, dropout: [s, hidden] -> [s, hidden].
    void add_attention();
    /// up, gelu or gated silu, down, dropout: [s, hidden] -> [s, hidden].
    void add_mlp();
    /// router, and dispatch, up, gelu or gated silu, down, combine; dropout: [s, hidden] -> [s, hidden].
    void add_experts();
    LayerId last() const { return last_.layer; }

private:
    bool is_trained() const { return sizes_.lora.rank == 0; }
    ModelBuilder& builder_;
    const Transformer& sizes_;
    std::string prefix_;
    int group_;
    Feed last_;
};

inline constexpr double transformer_init_scale = 0.02;  ///< GPT-2, BERT and Llama alike

}  // namespace lockstep::model
