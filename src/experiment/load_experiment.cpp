#include <fmt/format.h>

#include <set>

#include "base/error.hpp"
#include "experiment/axes.hpp"
#include "experiment/defaults.hpp"
#include "experiment/experiment.hpp"
#include "experiment/merged.hpp"
#include "experiment/overrides.hpp"
#include "experiment/point_reader.hpp"

namespace lockstep::experiment {

using config::Node;

namespace {

/// The points of one file share most of their errors: each is kept once.
class DistinctErrors {
public:
    explicit DistinctErrors(config::Diagnostics& all) : all_(all) {
        for (const auto& error : all.errors()) seen_.insert(error);
    }
    void add(const config::Diagnostics& some) {
        for (const auto& error : some.errors())
            if (seen_.insert(error).second) all_.error({}, error);
    }

private:
    config::Diagnostics& all_;
    std::set<std::string> seen_;
};

std::size_t checked_point_count(const Node& document, const std::vector<ListAxis>& axes,
                                config::Diagnostics& diagnostics) {
    const std::size_t count = point_count(axes);
    if (count <= max_points) return count;
    std::vector<std::string> lengths;
    for (const ListAxis& axis : axes) lengths.push_back(fmt::format("{} of {}", axis.values.size(), axis.path));
    diagnostics.error(document.where(), fmt::format("experiment: the lists ({}) make more than {} points; shorten them",
                                                    fmt::join(lengths, ", "), max_points));
    return 1;  // the first is still read, for its errors
}

std::vector<Experiment> read_points(const Node& document, const std::string& name, const config::DataPath& data,
                                    config::Diagnostics& diagnostics) {
    const auto axes = find_axes(document, diagnostics);
    const std::size_t count = checked_point_count(document, axes, diagnostics);
    DistinctErrors errors(diagnostics);
    PointReader reader(data);
    std::vector<Experiment> points;
    std::size_t layers = 0;
    for (std::size_t number = 0; number < count; ++number) {
        const PointDocument at = point_document(document, axes, number);
        config::Diagnostics of_point;
        Experiment point = reader.read(at.document, of_point);
        errors.add(of_point);
        if (diagnostics.has_errors()) continue;
        point.name = name;
        point.label = at.label;
        point.merged = merged_point(point, at.document);
        layers += point.model.layers.size();
        if (layers > max_total_layers)
            throw InputError(
                fmt::format("{}: the models of its {} points have more than {} layers together (they would "
                            "not fit in memory); shorten the lists",
                            config::to_string(document.where()), count, max_total_layers));
        points.push_back(std::move(point));
    }
    return points;
}

}  // namespace

LoadedExperiments load_experiment(const std::filesystem::path& file, const std::vector<Override>& overrides,
                                  const config::DataPath& data) {
    const Node written = config::parse_file(file);
    if (!written.is_mapping())
        throw InputError(fmt::format("{}: experiment: wants keys and values (key: value); start with model: resnet50",
                                     config::to_string(written.where())));
    config::Diagnostics diagnostics;
    const Overridden overridden = apply_overrides(written, overrides, diagnostics);
    const Node document = with_defaults(overridden.document);
    LoadedExperiments loaded;
    loaded.file = file;
    loaded.points = read_points(document, file.stem().string(), data, diagnostics);
    diagnostics.throw_if_any();
    loaded.merged = merged_file(document, loaded.points);
    loaded.origins = origins_of(loaded.merged, overridden.origin_of_label);
    return loaded;
}

}  // namespace lockstep::experiment
