// What the tests of the search look for plans of: small transformers on two nodes of eight GPUs.
#pragma once

#include <filesystem>
#include <fstream>

#include <string>
#include <vector>

#include "config/data_path.hpp"
#include "machine/catalog.hpp"
#include "plan/space.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// An experiment with everything a search wants; keeps what a Subject refers to.
class SmallWorld {
public:
    explicit SmallWorld(const std::string& text, int ranks = 16)
        : experiment_(read(text)),
          machine_(load_machine(experiment_.machine)),
          placement_(machine_.place(ranks)),
          costs_(machine_, placement_),
          subject_{experiment_, machine_, placement_, costs_} {}

    const Subject& subject() const { return subject_; }
    plan::Space space() const {
        return plan::make_space(plan::with_defaults(experiment_.search, experiment_.model, placement_.ranks),
                                experiment_.plan, experiment_.batch, experiment_.optimizer, experiment_.model,
                                placement_);
    }
    /// The only plan of a space such as "{tp: 2, pp: 4}"; axes that aren't named are 1, ZeRO 0, no recomputation.
    plan::Plan plan(const std::string& text) const {
        config::Diagnostics diagnostics;
        plan::SpaceRequest lists = plan::read_space(config::parse_text(text, "test"), diagnostics);
        diagnostics.throw_if_any();
        for (auto* axis : {&lists.tp, &lists.pp, &lists.vpp, &lists.cp, &lists.ep})
            if (axis->empty()) *axis = {1};
        if (lists.zero.empty()) lists.zero = {0};
        if (lists.microbatch.empty()) lists.microbatch = {1};
        if (lists.recompute.empty()) lists.recompute = {plan::Recompute::none};
        if (lists.sequence_parallel.empty()) lists.sequence_parallel = {false};
        return plan::make_space(lists, experiment_.plan, experiment_.batch, experiment_.optimizer, experiment_.model,
                                placement_)
            .candidates.at(0)
            .plan;
    }

private:
    static config::DataPath data() { return config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}); }
    static experiment::Experiment read(const std::string& text) {
        const auto file = std::filesystem::temp_directory_path() / "lockstep_search_test.yaml";
        std::ofstream(file) << text;
        return experiment::load_experiment(file, {}, data()).points.at(0);
    }
    static machine::Machine load_machine(const config::Node& node) {
        config::Diagnostics diagnostics;
        auto machine = machine::load_machine(data(), node, diagnostics);
        diagnostics.throw_if_any();
        return machine;
    }

    experiment::Experiment experiment_;
    machine::Machine machine_;
    machine::Placement placement_;
    cost::CostModel costs_;
    Subject subject_;
};

inline std::string small_gpt(const std::string& more, int global_batch = 64,
                             const std::string& framework = "megatron-lm-2021") {
    return "model: {base: gpt-small, layers: 12, hidden: 1024, heads: 16, vocab: 51200, seq_len: 1024}\n"
           "machine: {node: dgx-a100-80gb, count: 2, network: ib-hdr-8}\n"
           "ranks: [16]\nprecision: bf16\nframework: " +
           framework + "\nglobal_batch: " + std::to_string(global_batch) + "\n" + more + "\n";
}

}  // namespace lockstep::search
