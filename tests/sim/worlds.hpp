// Random plans of small transformers on random clusters, for tests of folding and of shared links.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "config/data_path.hpp"
#include "machine/catalog.hpp"
#include "model/gpt.hpp"
#include "step/builder.hpp"
#include "step/check.hpp"

namespace lockstep::sim {

inline model::Model small_gpt(int layers, bool has_experts_or_tied_weights) {
    model::Transformer sizes;
    sizes.layers = layers;
    sizes.hidden = 512;
    sizes.heads = sizes.kv_heads = 8;
    sizes.head_dim = 64;
    sizes.ffn = 2048;
    sizes.vocab = 4096;
    sizes.seq_len = sizes.positions = 256;
    sizes.tied = has_experts_or_tied_weights;
    return model::build_gpt("gpt", sizes);
}

struct World {
    std::string text;  ///< what it is, for messages
    machine::Machine machine;
    step::StepGraph graph;
};

inline machine::Machine shipped_machine(const std::string& yaml) {
    const config::DataPath data(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR});
    config::Diagnostics diagnostics;
    auto machine = machine::load_machine(data, config::parse_text(yaml, "test"), diagnostics);
    diagnostics.throw_if_any();
    return machine;
}

/// A plan of `ranks` that the model takes, drawn until one does.
inline World random_world(std::mt19937& random) {
    const auto pick = [&](const auto& values) { return values[random() % values.size()]; };
    const std::vector<std::string> machines{
        "{node: dgx-a100-40gb, count: 8, network: ib-hdr-4}",
        "{node: dgx-1v-16gb, count: 8, network: ib-edr-2}",
        "{node: 8x-rtx3090-pcie, count: 4, network: eth-25g}",
        "{node: dgx-h100, count: 8, network: ib-ndr-8}",
        "{nodes: [{node: dgx-a100-40gb, count: 2}, {node: dgx-1v-32gb, count: 2}], network: ib-edr-4}",
        "{node: dgx-a100-40gb, count: 3, network: ib-hdr-8, faults: [{node: 1, nic: 2, rate: 0.3}]}"};
    for (;;) {
        const std::string yaml = pick(machines);
        const machine::Machine machine = shipped_machine(yaml);
        plan::Plan plan;
        plan.mesh.tp = pick(std::vector{1, 2, 4, 8});
        plan.mesh.pp = pick(std::vector{1, 2, 4});
        plan.mesh.cp = pick(std::vector{1, 1, 2});
        plan.mesh.dp = pick(std::vector{1, 2, 3, 4, 8});
        plan.split.zero = pick(std::vector{0, 0, 1, 2, 3});
        plan.split.sequence_parallel = plan.mesh.tp > 1 && random() % 2 == 0;
        if (plan.mesh.pp > 1 && random() % 3 == 0) {
            plan.split.vpp = 2;
            plan.split.schedule = plan::Schedule::interleaved;
        }
        if (plan.mesh.cp > 1 && random() % 2 == 0) plan.split.context = plan::ContextAlgorithm::all_to_all;
        plan.accumulation = plan.mesh.pp * pick(std::vector{1, 2});
        plan.micro_batch = 2;
        plan.optimizer = plan::Optimizer::adam;
        plan.bucket = plan.first_bucket = Bytes{1e6};
        const int ranks = plan.mesh.ranks();
        const model::Model model = small_gpt(8, random() % 2 == 0);
        if (ranks < 2 || ranks > std::min(64, machine.devices()) || !plan::plan_refusals(plan, model).empty()) continue;
        const machine::Placement placement = machine.place(ranks);
        step::StepGraph graph = step::build_step({.model = model,
                                                  .plan = plan,
                                                  .framework = {},
                                                  .placement = placement,
                                                  .precision = Precision::fp32,
                                                  .seed = 1,
                                                  .input = std::nullopt});
        return {fmt::format("tp {} cp {} dp {} pp {} vpp {} zero {} passes {} on {}", plan.mesh.tp, plan.mesh.cp,
                            plan.mesh.dp, plan.mesh.pp, plan.split.vpp, plan.split.zero, plan.accumulation, yaml),
                machine, std::move(graph)};
    }
}

}  // namespace lockstep::sim
