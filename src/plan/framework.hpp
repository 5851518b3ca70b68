// The habits of a training framework: what it copies, fuses, overlaps and costs on the host.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/units.hpp"
#include "config/data_path.hpp"
#include "config/document.hpp"

namespace lockstep::plan {

enum class AttentionAlgorithm { flash, unfused };
/// channels_last: activations [n, h, w, c], weights used as they are. packed: weights are reordered each step into the
/// layouts the kernels want (CPU libraries), as ops of the graph.
enum class MemoryFormat { channels_last, packed };
enum class BucketStorage { copied, view };  ///< gradients are copied into buckets and back, or live in them
enum class OptimizerFusion { per_parameter, fused };
/// chains: an element-wise op, a dropout or a norm behind another of these, on its result, is part of one kernel (torch
/// script and torch.compile, XLA, fused norm kernels); none: each op is a kernel.
enum class ElementwiseFusion { none, chains };
enum class Launch { asynchronous, blocking };  ///< blocking: the host waits for each op

struct Framework {
    std::string name;
    std::string title;
    // Structural traits: they change the graph, and real executors honour them.
    bool overlap = true;              ///< gradient communication beside the backward pass
    std::optional<DType> wire_dtype;  ///< of gradients on the wire; the gradient's own type when absent
    bool wire_as_computed = false;    ///< the type of activations instead (fp16 in fp16-amp, whose gradients are fp32)
    Bytes bucket{25.0 * 1048576};
    Bytes first_bucket{1.0 * 1048576};
    BucketStorage bucket_storage = BucketStorage::copied;
    AttentionAlgorithm attention = AttentionAlgorithm::flash;
    MemoryFormat memory_format = MemoryFormat::channels_last;
    OptimizerFusion optimizer_fusion = OptimizerFusion::fused;
    // Cost traits: only the simulator uses them.
    Seconds host_per_op{6e-6};  ///< host time to issue one op
    Launch launch = Launch::asynchronous;
    ElementwiseFusion elementwise_fusion = ElementwiseFusion::none;
    int run_ahead = 1024;  ///< ops the host may be ahead of the device
    /// From a bucket being complete to its collective being launched, where a background thread does it in cycles
    /// (Horovod): half a cycle, and the agreement of the ranks on what is ready. 0: a hook launches it at once.
    Seconds collective_delay{0};
    std::vector<std::string>
        sources;  ///< "TRAIT: where its value is from" or "TRAIT: assumed: why", one for each trait
    std::filesystem::path file;
};

inline constexpr Bytes max_bucket{1099511627776.0};
std::string bucket_limits();  ///< the allowed sizes, for messages

/// A profile of models/frameworks/ by name, or a file. Each trait is {value: V, source: TEXT} or {value: V, assumed:
/// TEXT}; `base: NAME` builds on another profile, and without it every trait must be there. Throws InputError with all
/// errors of the file.
Framework load_framework(const config::DataPath& data, std::string_view name_or_path);
std::vector<std::string> framework_names(const config::DataPath& data);

}  // namespace lockstep::plan
