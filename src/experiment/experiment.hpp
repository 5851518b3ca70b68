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
#include "machine/machine.hpp"
#include "model/model.hpp"
#include "plan/framework.hpp"
#include "plan/plan.hpp"

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
    model::Model model;
    config::Node machine;  ///< as written: a name, a path, or a mapping; see machine::load_machine
    std::vector<int> ranks;
    Precision precision = Precision::fp32;
    plan::Framework framework;
    plan::BatchRequest batch;
    plan::PlanRequest plan;
    plan::Optimizer optimizer = plan::Optimizer::sgd_momentum;
    std::optional<InputPipeline> input;
    int steps = 50;
    int warmup = 10;
    std::uint64_t seed = 1;
    int threads_per_rank = 0;  ///< of a CPU rank; 0: cores / largest entry of ranks that fits the host
    config::Node merged;  ///< the whole document after overrides and defaults, this point's scalars in place of lists

    bool is_strong_scaling() const { return batch.global > 0; }
    plan::Plan plan_for(int world_size) const;
    /// Canonical text of `merged` without `ranks`: equal for the runs of one series.
    std::string series_text() const;
};

/// A value that replaces what the file says, and where it came from.
struct Override {
    std::string path;    ///< "plan.bucket"
    std::string value;   ///< YAML
    std::string origin;  ///< "--set" or "LOCKSTEP_..."
};
/// Splits "path=value"; throws UsageError naming the form when there is no '='.
Override parse_override(const std::string& text, const std::string& origin);

struct LoadedExperiments {
    std::vector<Experiment> points;              ///< at least one
    std::map<std::string, std::string> origins;  ///< key path -> "file:line", "--set", "default"
    config::Node merged;                         ///< before expansion
    std::filesystem::path file;
};

/// Reads, overrides and expands (model, machine, precision, framework, batch_per_rank, global_batch, accumulation and
/// plan keys may be lists). Throws InputError with every error of the file.
LoadedExperiments load_experiment(const std::filesystem::path& file, const std::vector<Override>& overrides,
                                  const config::DataPath& data);

/// "key = value   # origin", one per line, for --print-config.
std::string format_config(const LoadedExperiments& loaded);

}  // namespace lockstep::experiment
