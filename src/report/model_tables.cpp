#include "report/model_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "config/quantity.hpp"
#include "report/model_totals.hpp"

namespace lockstep::report {

namespace {

constexpr std::string_view row_format = "{:<22} {:<18} {:<16} {:>15} {:>7} {:>7} {:>7} {:>7}\n";

/// Keeps both ends of a name that is too long: "encoder.lay..query.weight".
std::string shortened(const std::string& text, std::size_t width) {
    if (text.size() <= width) return text;
    const std::size_t tail = (width - 2) / 2;
    return text.substr(0, width - 2 - tail) + ".." + text.substr(text.size() - tail);
}

/// Three digits and a decimal prefix: 7553941504 -> "7.55G".
std::string compact(double value) {
    constexpr std::string_view prefixes = " kMGTPEZY";
    std::size_t prefix = 0;
    while (value >= 999.5 && prefix + 1 < prefixes.size()) {
        value /= 1000;
        ++prefix;
    }
    const int digits = prefix == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    const std::string number = fmt::format("{:.{}f}", value, digits);
    return prefix == 0 ? number : number + prefixes[prefix];
}

std::string describe_input(const model::Input& input) {
    if (input.kind == model::Input::Kind::image) return fmt::format("{}", fmt::join(input.shape.extents, "x"));
    return fmt::format("{} tokens", input.shape[0]);
}

/// Layers that belong together: one use of a block, or layers of none.
struct Segment {
    std::size_t begin = 0, size = 0;
    int group = -1;
    std::size_t repeats = 1;  ///< this segment and equal ones right behind it
};

std::vector<Segment> segments_of(const model::Model& model) {
    std::vector<Segment> segments;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const int group = model.layers[i].repeat_group;
        if (segments.empty() || segments.back().group != group) segments.push_back({i, 0, group, 1});
        ++segments.back().size;
    }
    return segments;
}

bool are_equal(const model::Model& model, const std::vector<std::int64_t>& counts, const Segment& a, const Segment& b) {
    if (a.size != b.size || a.group < 0 || b.group < 0) return false;
    for (std::size_t k = 0; k < a.size; ++k) {
        const auto& x = model.layers[a.begin + k];
        const auto& y = model.layers[b.begin + k];
        if (model::kind_name(x.kind) != model::kind_name(y.kind) || x.input != y.input || x.output != y.output ||
            counts[a.begin + k] != counts[b.begin + k])
            return false;
    }
    return true;
}

std::vector<Segment> folded(const model::Model& model, const std::vector<std::int64_t>& counts) {
    std::vector<Segment> result;
    for (const auto& segment : segments_of(model)) {
        if (!result.empty() && are_equal(model, counts, result.back(), segment))
            ++result.back().repeats;
        else
            result.push_back(segment);
    }
    return result;
}

/// What the names of a segment's layers have in common, up to and with the last dot.
std::string common_prefix(const model::Model& model, const Segment& segment) {
    std::string prefix = model.layers[segment.begin].name;
    for (std::size_t k = 1; k < segment.size; ++k) {
        const std::string& name = model.layers[segment.begin + k].name;
        const auto differs = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first;
        prefix.erase(differs, prefix.end());
    }
    const auto dot = prefix.rfind('.');
    return dot == std::string::npos ? "" : prefix.substr(0, dot + 1);
}

void append_row(std::string& text, const std::string& name, const model::Layer& layer, const model::LayerCost& cost,
                std::int64_t own) {
    const bool is_tied = own == 0 && !layer.parameters.empty();
    fmt::format_to(std::back_inserter(text), fmt::runtime(row_format), shortened(name, 22),
                   shortened(std::string(model::kind_name(layer.kind)), 18), shortened(to_string(layer.output), 16),
                   is_tied                    ? "tied"
                   : layer.parameters.empty() ? ""
                                              : config::format_count(own),
                   compact(cost.forward.value), compact(cost.forward_bytes.value),
                   compact(cost.backward_data.value + cost.backward_weights.value), compact(cost.backward_bytes.value));
}

void append_segment(std::string& text, const model::Model& model, const Segment& segment,
                    const std::vector<model::LayerCost>& costs, const std::vector<std::int64_t>& counts) {
    std::size_t hidden = 0;
    if (segment.repeats > 1) {
        const std::string prefix = common_prefix(model, segment);
        const std::size_t last = segment.begin + segment.size * (segment.repeats - 1);
        const std::string last_prefix = common_prefix(model, {last, segment.size, 0, 1});
        auto without_dot = [](const std::string& s) { return s.substr(0, s.empty() ? 0 : s.size() - 1); };
        fmt::format_to(std::back_inserter(text), "{} to {} (x{}), each:\n", shortened(without_dot(prefix), 40),
                       shortened(without_dot(last_prefix), 40), segment.repeats);
        hidden = prefix.size();
    }
    for (std::size_t i = segment.begin; i < segment.begin + segment.size; ++i) {
        const std::string name = model.layers[i].name.substr(hidden);
        append_row(text, hidden > 0 ? "  " + name : name, model.layers[i], costs[i], counts[i]);
    }
}

std::string heading(const model::Model& model, const ModelTotals& totals, DType dtype) {
    const double parameters = static_cast<double>(model.parameter_count());
    std::vector<std::string> inputs;
    for (const auto& input : model.inputs) inputs.push_back(input.name + " " + describe_input(input));
    std::string text = fmt::format("{}  ({})\n", model.name, fmt::join(inputs, ", "));
    if (!model.file.empty()) text += fmt::format("file         {}\n", model.file.string());
    for (const auto& source : model.sources) text += fmt::format("source       {}\n", source);
    text += fmt::format("parameters   {} ({} in {})\n", config::format_count(model.parameter_count()),
                        config::format(parameters * size_of(dtype)), to_string(dtype));
    text += fmt::format("forward      {} multiply-adds a sample (all attention scores counted)\n",
                        compact(static_cast<double>(model::forward_multiply_adds(model))));
    text += fmt::format("activations  {} a sample (outputs of convolutions and linear layers)\n",
                        compact(static_cast<double>(totals.activations)));
    if (const std::string why = model::why_only_simulated(model); !why.empty())
        text += fmt::format("run          no: {}\n", why);
    return text;
}

}  // namespace

std::string format_model_list(const std::vector<model::Model>& models) {
    constexpr std::string_view format = "{:<24} {:<16} {:>7} {:>17} {:>12}\n";
    std::string text = fmt::format(fmt::runtime(format), "model", "input", "layers", "parameters", "GMAC/sample");
    for (const auto& model : models)
        text += fmt::format(fmt::runtime(format), shortened(model.name, 24),
                            model.inputs.empty() ? "" : shortened(describe_input(model.inputs.front()), 16),
                            model.layers.size(), config::format_count(model.parameter_count()),
                            fmt::format("{:.2f}", static_cast<double>(model::forward_multiply_adds(model)) / 1e9));
    return text;
}

std::string format_model(const model::Model& model, std::int64_t batch, DType dtype) {
    const auto costs = costs_of(model, batch, dtype);
    const auto counts = own_parameters(model);
    const ModelTotals totals = totals_of(model, costs);
    std::string text = heading(model, totals, dtype);
    text += fmt::format("\nbatch {}, {}: floating-point operations and least bytes moved of each layer\n", batch,
                        to_string(dtype));
    text += fmt::format("{:<22} {:<18} {:<16} {:>15} {:>15} {:>15}\n", "", "", "", "", "forward", "backward");
    text +=
        fmt::format(fmt::runtime(row_format), "layer", "kind", "output", "parameters", "flop", "byte", "flop", "byte");
    for (const auto& segment : folded(model, counts)) append_segment(text, model, segment, costs, counts);
    text += fmt::format(fmt::runtime(row_format), "total", fmt::format("{} layers", model.layers.size()), "",
                        config::format_count(model.parameter_count()), compact(totals.forward.value),
                        compact(totals.forward_bytes.value), compact(totals.backward.value),
                        compact(totals.backward_bytes.value));
    return text;
}

}  // namespace lockstep::report
