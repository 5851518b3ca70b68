#include "experiment/collective.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "config/quantity.hpp"

namespace lockstep::experiment {

namespace {

constexpr Bytes largest_buffer{1099511627776.0};  // 1 TiB
constexpr std::array<const char*, 10> of_a_model{"model",     "batch_per_rank", "global_batch", "accumulation",
                                                 "precision", "framework",      "optimizer",    "plan",
                                                 "input",     "failures"};

CollectiveKind read_kind(config::Object& object) {
    const std::string text = object.choice_or(
        "kind", {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"}, "all_reduce");
    return parse_collective(text).value_or(CollectiveKind::all_reduce);
}

DType read_dtype(config::Object& object) {
    static const std::map<std::string, DType> types{{"fp32", DType::fp32},
                                                    {"bf16", DType::bf16},
                                                    {"fp16", DType::fp16},
                                                    {"fp64", DType::fp64},
                                                    {"int32", DType::int32}};
    return types.at(object.choice_or("dtype", {"fp32", "bf16", "fp16", "fp64", "int32"}, "fp32"));
}

void refuse_keys_of_a_model(config::Object& experiment) {
    for (const char* const key : of_a_model)
        if (experiment.has(key))
            experiment.error(key,
                             "doesn't apply to a collective (nothing is trained); leave it out, or leave "
                             "collective out");
}

}  // namespace

std::string CollectiveRequest::title() const { return fmt::format("{} of {}", to_string(kind), config::format(bytes)); }

std::optional<CollectiveRequest> read_collective(config::Object& experiment) {
    const auto node = experiment.node("collective");
    if (!node) return std::nullopt;
    refuse_keys_of_a_model(experiment);
    config::Object object(*node, "collective", experiment.diagnostics());
    const auto errors_before = object.diagnostics().count();
    CollectiveRequest request;
    if (node->is_mapping() && !object.has("kind")) object.error("", "key 'kind' is missing; give kind: all_reduce");
    request.kind = read_kind(object);
    request.bytes = object.bytes("bytes");
    request.dtype = read_dtype(object);
    object.finish();
    if (object.diagnostics().count() != errors_before) return request;
    if (request.bytes < size_of(request.dtype) || request.bytes > largest_buffer)
        object.error("bytes", fmt::format("wants from one {} to {}, got {}", to_string(request.dtype),
                                          config::format(largest_buffer), config::format(request.bytes)));
    return request;
}

}  // namespace lockstep::experiment
