// An experiment: what is trained, on what, how it is split, with what habits; read from one file and the overrides
// around it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "config/data_path.hpp"
#include "config/document.hpp"
#include "experiment/collective.hpp"
#include "experiment/failures.hpp"
#include "machine/machine.hpp"
#include "machine/placement.hpp"
#include "machine/variation.hpp"
#include "model/model.hpp"
#include "plan/framework.hpp"
#include "plan/plan.hpp"
#include "plan/space.hpp"

namespace lockstep::experiment {

/// A data pipeline that can be the limit.
struct InputPipeline {
    Bytes bytes_per_sample;
    Bandwidth rate;  ///< of one rank's share of it
};

/// One point but for its rank counts: every other list of the file is expanded.
struct Experiment {
    std::string name;   ///< the file's stem
    std::string label;  ///< what tells this point from the others of the file: "model=vgg16 precision=bf16", or ""
    std::optional<CollectiveRequest> collective;  ///< then there is no model, batch, framework and plan
    model::Model model;
    config::Node machine;  ///< as written: a name, a path, or a mapping; see machine::load_machine
    std::vector<int> ranks;
    Precision precision = Precision::fp32;
    plan::Framework framework;
    plan::BatchRequest batch;
    plan::PlanRequest plan;
    plan::SpaceRequest search;  ///< of `plan search`; nothing that is trained depends on it
    plan::Optimizer optimizer = plan::Optimizer::sgd_momentum;
    std::optional<InputPipeline> input;
    std::optional<Failures> failures;
    machine::Variation variation;  ///< of ranks, in predictions
    int steps = 50;
    int warmup = 10;
    std::uint64_t seed = 1;
    int threads_per_rank = 0;  ///< of a CPU rank; 0: cores / largest entry of ranks that fits the host
    /// The whole document after overrides and defaults, this point's scalars in place of lists, values in one spelling.
    config::Node merged;

    bool is_strong_scaling() const { return batch.global > 0; }
    /// Of a collective: all ranks along dp. Throws InputError when the world doesn't fit batch and plan
    /// (plan::make_plan), or the plan the model (plan::check_plan).
    plan::Plan plan_for(const machine::Placement& placement) const;
    /// Canonical text of what is trained: `merged` without `ranks` (which tell the runs of a series apart), without
    /// `steps` and `warmup` (which say how long is measured) and without `failures` (which change no step). Equal for
    /// the runs of one series.
    std::string series_text() const;
};

inline constexpr std::size_t max_points = 10'000;           ///< of one file
inline constexpr std::size_t max_rank_counts = 1'000;       ///< entries of `ranks`
inline constexpr std::size_t max_total_layers = 2'000'000;  ///< of the models of all points together

/// A value that replaces what the file says, and where it came from.
struct Override {
    std::string path;    ///< "plan.bucket"
    std::string value;   ///< YAML
    std::string origin;  ///< "--set" or "LOCKSTEP_..."
};
/// Splits "path=value" at the first '='; throws UsageError naming the form when there is none or the path is empty.
Override parse_override(const std::string& text, const std::string& origin);

struct LoadedExperiments {
    std::vector<Experiment> points;  ///< at least one
    /// Key path -> "file:line", "--set", "LOCKSTEP_...", "default", "framework NAME", "default of the model".
    std::map<std::string, std::string> origins;
    config::Node merged;  ///< before expansion; what a default makes differ between points is left out
    std::filesystem::path file;
};

/// Reads, overrides and expands. Lists of model, machine, precision, framework, batch_per_rank, global_batch,
/// accumulation, optimizer, plan keys (but stage_blocks, whose value is a list) and of failures and collective make one
/// point for each combination, the last of them varying fastest; `ranks` stays a list. A later override of a path
/// replaces an earlier one, and one of batch_per_rank or global_batch replaces the other of the file. Defaults: machine
/// host, ranks [1], precision fp32, framework pytorch-ddp, accumulation 1 (unless plan.microbatch tells it), optimizer
/// sgd-momentum for images and adam for sequences, steps 50, warmup 10, seed 1, threads_per_rank 0. Throws InputError
/// with every error of the file, of the overrides ("--set ranks=0: ...") and of what they name.
LoadedExperiments load_experiment(const std::filesystem::path& file, const std::vector<Override>& overrides,
                                  const config::DataPath& data);

/// "key = value   # origin", one per line, for --print-config.
std::string format_config(const LoadedExperiments& loaded);

}  // namespace lockstep::experiment
