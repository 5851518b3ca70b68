// What is known of a run before its first step: everything needed to read it years later.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/units.hpp"
#include "step/liveness.hpp"

namespace lockstep::record {

/// rehearsed: executed on a test double of a GPU. Its values are right, its times are no measurement of anything.
enum class Origin { measured, predicted, rehearsed };
enum class Status { running, complete, interrupted, failed };
std::string_view to_string(Origin origin);
std::string_view to_string(Status status);
/// Each rank wrote a record: not a prediction.
inline bool is_executed(Origin origin) { return origin != Origin::predicted; }

/// The rank-to-device map and the clock of one rank.
struct RankDescription {
    int rank = 0;
    int local_rank = 0;
    std::string host;
    std::string device;  ///< "AMD EPYC, 1 thread"; "a100-sxm4-40gb (simulated)"
    std::string uuid;    ///< of a GPU, else ""
    std::string cpuset;  ///< "0-1"; "" when predicted
    int threads = 0;
    Nanoseconds clock_offset;  ///< add to this rank's times to get rank 0's
    Nanoseconds clock_uncertainty;
    std::int64_t multiplicity = 1;             ///< ranks this one stands for (predictions)
    bool is_sampled = false;                   ///< the state of its device is recorded by step: see device_rows.hpp
    std::map<std::string, std::string> facts;  ///< step::ExecutorInfo's
};

struct RunDescription {
    Origin origin = Origin::measured;
    std::string experiment, label, model, machine, precision, framework, backend;
    std::string intended_machine;  ///< what the experiment names, when the run is measured elsewhere
    int ranks = 1;
    std::int64_t global_batch = 1;
    bool is_strong_scaling = false;
    std::string throughput_unit = "images/s";  ///< samples of the global batch per second, or "GB/s busbw"
    std::int64_t tokens_per_sample = 0;
    int warmup_steps = 0;
    int planned_steps = 0;             ///< warm-up included
    int record_every = 1;              ///< spans of every k-th step; step times of all
    std::optional<Seconds> span_cost;  ///< of recording the spans of a step, where it was measured
    std::uint64_t seed = 1;
    Nanoseconds epoch_utc;         ///< what time 0 of the spans is, since 1970
    Flops model_flops;             ///< of one step of one rank, for MFU
    std::optional<FlopRate> peak;  ///< of one rank's device in the math type used
    std::string peak_source;
    step::MemoryUse memory;                                  ///< of one rank
    Bytes memory_capacity;                                   ///< of one rank's device; 0 unknown
    std::optional<Seconds> interval80_low, interval80_high;  ///< of the step time, when the prediction carries one
    std::string series_text;  ///< canonical experiment without ranks; its sha256 tells the series
    std::map<std::string, std::string>
        texts;  ///< "experiment.yaml", "model.yaml", "machine.yaml", "framework.yaml": verbatim, kept with sha256
    std::map<std::string, std::string> provenance;  ///< "lockstep", "argv", "mpi", "onednn", "env.SLURM_JOB_ID" ...
    std::vector<std::string> warnings;
};

/// NCCL_*, SLURM_*, OMPI_* variables of this process as "env.NAME", and no others; SLURM_JWT, a credential, is not
/// kept.
std::map<std::string, std::string> recorded_environment();
/// Lower-case hexadecimal SHA-256 of the text.
std::string sha256(const std::string& text);
/// Version of the HDF5 library in use.
std::string library_version();

}  // namespace lockstep::record
