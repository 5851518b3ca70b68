#include "plan/framework.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace lockstep::plan {

namespace {

constexpr std::string_view folder = "models/frameworks";
constexpr std::size_t longest_chain = 8;  ///< of profiles built on one another

/// Reads the traits of one profile. Each is {value: ..., source: ...} or {value: ..., assumed: ...}: a figure whose
/// origin nobody wrote down is refused.
class TraitReader {
public:
    enum class Absent { refuse, keep };  ///< keep: the profile is built on another
    TraitReader(config::Object& profile, Absent absent, std::vector<std::string>& sources)
        : profile_(profile), absent_(absent), sources_(sources) {}

    /// Calls read(object) with the trait's mapping when the profile has it; read takes the key "value".
    template <class Read>
    void trait(std::string_view name, Read&& read) {
        const auto node = profile_.node(name);
        if (!node) {
            if (absent_ == Absent::refuse)
                profile_.error("", fmt::format("trait '{}' is missing; add {}: {{value: ..., source: ...}}, or name a "
                                               "profile to build on with base:",
                                               name, name));
            return;
        }
        config::Object object(*node, std::string(name), profile_.diagnostics());
        if (!node->is_mapping()) return;
        if (object.has("value"))
            read(object);
        else
            object.error("", "key 'value' is missing");
        note_origin(name, object);
        object.finish();
    }

private:
    void note_origin(std::string_view name, config::Object& object) {
        const std::string source = object.text_or("source", "");
        const std::string assumed = object.text_or("assumed", "");
        if (source.empty() == assumed.empty())
            object.error("", "wants 'source' (where the value is from) or 'assumed' (why it was chosen), one of them");
        // A trait replaces the one of the profile below, with its origin.
        const std::string prefix = fmt::format("{}: ", name);
        std::erase_if(sources_, [&](const std::string& text) { return text.starts_with(prefix); });
        sources_.push_back(prefix + (assumed.empty() ? source : "assumed: " + assumed));
    }

    config::Object& profile_;
    Absent absent_;
    std::vector<std::string>& sources_;
};

template <class T>
T choose(config::Object& object, const std::vector<std::pair<std::string, T>>& choices) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    const std::string chosen = object.choice_or("value", names, names.front());
    return std::ranges::find(choices, chosen, &std::pair<std::string, T>::first)->second;
}

Bytes read_bucket(config::Object& object, Bytes fallback) {
    const Bytes size = object.bytes_or("value", fallback);
    if (size < Bytes{1} || size > max_bucket) object.error("value", bucket_limits());
    return size;
}

void read_structure(TraitReader& reader, Framework& f) {
    using config::Object;
    reader.trait("overlap", [&](Object& o) { f.overlap = o.flag_or("value", f.overlap); });
    reader.trait("wire_dtype", [&](Object& o) {
        using Wire = std::pair<std::optional<DType>, bool>;
        std::tie(f.wire_dtype, f.wire_as_computed) = choose<Wire>(o, {{"gradient", {std::nullopt, false}},
                                                                      {"computation", {std::nullopt, true}},
                                                                      {"fp32", {DType::fp32, false}},
                                                                      {"fp16", {DType::fp16, false}},
                                                                      {"bf16", {DType::bf16, false}}});
    });
    reader.trait("bucket", [&](Object& o) { f.bucket = read_bucket(o, f.bucket); });
    reader.trait("first_bucket", [&](Object& o) { f.first_bucket = read_bucket(o, f.first_bucket); });
    reader.trait("bucket_storage", [&](Object& o) {
        f.bucket_storage = choose<BucketStorage>(o, {{"copied", BucketStorage::copied}, {"view", BucketStorage::view}});
    });
    reader.trait("attention", [&](Object& o) {
        f.attention = choose<AttentionAlgorithm>(
            o, {{"flash", AttentionAlgorithm::flash}, {"unfused", AttentionAlgorithm::unfused}});
    });
    reader.trait("memory_format", [&](Object& o) {
        f.memory_format =
            choose<MemoryFormat>(o, {{"channels-last", MemoryFormat::channels_last}, {"packed", MemoryFormat::packed}});
    });
    reader.trait("optimizer_fusion", [&](Object& o) {
        f.optimizer_fusion = choose<OptimizerFusion>(
            o, {{"fused", OptimizerFusion::fused}, {"per-parameter", OptimizerFusion::per_parameter}});
    });
}

void read_costs(TraitReader& reader, Framework& f) {
    using config::Object;
    reader.trait("host_per_op", [&](Object& o) {
        f.host_per_op = o.seconds_or("value", f.host_per_op);
        if (f.host_per_op > Seconds{1}) o.error("value", "more than 1 s for one op; use a time such as '6 us'");
    });
    reader.trait("launch", [&](Object& o) {
        f.launch = choose<Launch>(o, {{"asynchronous", Launch::asynchronous}, {"blocking", Launch::blocking}});
    });
    reader.trait("elementwise_fusion", [&](Object& o) {
        f.elementwise_fusion =
            choose<ElementwiseFusion>(o, {{"none", ElementwiseFusion::none}, {"chains", ElementwiseFusion::chains}});
    });
    reader.trait("collective_delay", [&](Object& o) {
        f.collective_delay = o.seconds_or("value", f.collective_delay);
        if (f.collective_delay > Seconds{1})
            o.error("value", "more than 1 s before a bucket is sent; use a time such as '2.5 ms'");
    });
    reader.trait("run_ahead", [&](Object& o) {
        f.run_ahead = static_cast<int>(o.integer_or("value", f.run_ahead, 1, std::numeric_limits<std::int32_t>::max()));
    });
}

Framework load(const config::DataPath& data, std::string_view name_or_path, std::size_t depth);

Framework read(const config::Node& document, const config::DataPath& data, std::size_t depth,
               config::Diagnostics& diagnostics) {
    Framework framework;
    config::Object profile(document, "framework", diagnostics);
    const std::string base = profile.text_or("base", "");
    if (!base.empty()) {
        try {
            framework = load(data, base, depth + 1);
        } catch (const InputError& failure) { profile.error("base", failure.what()); }
    }
    framework.title = profile.text("title");
    TraitReader reader(profile, base.empty() ? TraitReader::Absent::refuse : TraitReader::Absent::keep,
                       framework.sources);
    read_structure(reader, framework);
    read_costs(reader, framework);
    profile.finish();
    return framework;
}

Framework load(const config::DataPath& data, std::string_view name_or_path, std::size_t depth) {
    if (depth > longest_chain)
        throw InputError(fmt::format("framework '{}' is more than {} profiles away (a circle of base: lines?)",
                                     name_or_path, longest_chain));
    const auto file = data.find("framework", folder, name_or_path);
    config::Diagnostics diagnostics;
    Framework framework = read(config::parse_file(file), data, depth, diagnostics);
    diagnostics.throw_if_any();
    framework.name = file.stem().string();
    framework.file = file;
    return framework;
}

}  // namespace

std::string bucket_limits() { return "a bucket holds from 1 B to 1 TiB; use a size such as 25 MiB"; }

Framework load_framework(const config::DataPath& data, std::string_view name_or_path) {
    return load(data, name_or_path, 0);
}

std::vector<std::string> framework_names(const config::DataPath& data) { return data.names(folder); }

}  // namespace lockstep::plan
