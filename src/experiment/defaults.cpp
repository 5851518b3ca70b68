#include "experiment/defaults.hpp"

#include <array>
#include <string>
#include <utility>

namespace lockstep::experiment {

using config::Node;

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> defaults{{{"machine", "host"},
                                                                                 {"ranks", "1"},
                                                                                 {"precision", "fp32"},
                                                                                 {"framework", "pytorch-ddp"},
                                                                                 {"steps", "50"},
                                                                                 {"warmup", "10"},
                                                                                 {"seed", "1"},
                                                                                 {"threads_per_rank", "0"}}};

bool says_how_a_model_is_trained(std::string_view key) { return key == "precision" || key == "framework"; }

}  // namespace

Node with_defaults(const Node& document) {
    if (!document.is_mapping()) return document;
    const config::Location where{std::string(default_origin), 0, 0};
    std::vector<Node::Entry> entries = document.entries();
    const auto add = [&](std::string_view key, std::string_view text) {
        if (document.find(key) == nullptr)
            entries.push_back({std::string(key), where, Node::make_scalar(std::string(text), where)});
    };
    const bool is_collective = document.find("collective") != nullptr;
    for (const auto& [key, text] : defaults)
        if (!is_collective || !says_how_a_model_is_trained(key)) add(key, text);
    if (is_collective) return Node::make_mapping(std::move(entries), document.where());
    // With a micro-batch the passes follow from each world's batch.
    const Node* const plan = document.find("plan");
    if (plan == nullptr || plan->find("microbatch") == nullptr) add("accumulation", "1");
    return Node::make_mapping(std::move(entries), document.where());
}

plan::Optimizer default_optimizer(const model::Model& model) {
    for (const auto& input : model.inputs)
        if (input.kind == model::Input::Kind::tokens) return plan::Optimizer::adam;
    return plan::Optimizer::sgd_momentum;
}

}  // namespace lockstep::experiment
