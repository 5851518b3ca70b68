// Plans that are executed for real and compared with the unsplit step, whatever the world.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "drive/numeric_check.hpp"
#include "model/model.hpp"
#include "plan/plan.hpp"
#include "world/world.hpp"

namespace lockstep::split {

struct Case {
    std::string name;
    int ranks = 2;
    plan::Plan plan;
    enum class Model { gpt, llama, experts, gpt_small } model = Model::gpt;
    plan::AttentionAlgorithm attention = plan::AttentionAlgorithm::flash;
};

/// gpt: learned positions, biases, tied embeddings, dropout. llama: rotary, grouped keys, gated, RMS norms, untied.
/// experts: llama with 4 experts of which a token goes to 2, in each second block; nothing is dropped.
/// gpt_small: the catalogue's, its vocabulary padded for tp; of 2 blocks and 64 tokens.
model::Model model_of(Case::Model model);

std::vector<Case> cases();

/// Collective over a world of Case::ranks: one step of the split and of the unsplit model; loss and every
/// gradient within a relative L2 of 1e-4, else RuntimeError.
drive::NumericReport run_case(world::World& world, const Case& one);

/// What a rank allocates for the tensors of a case, and what was predicted of its class.
struct Allocation {
    Bytes allocated, predicted;
};
Allocation allocation_of(world::World& world, const Case& one);

}  // namespace lockstep::split
