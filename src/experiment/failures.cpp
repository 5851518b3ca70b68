#include "experiment/failures.hpp"

#include <fmt/format.h>

#include "config/quantity.hpp"

namespace lockstep::experiment {

namespace {

constexpr Seconds default_work{30.0 * 24 * 3600};
constexpr Seconds longest{100 * 365.0 * 24 * 3600};  ///< of work and intervals: steps are counted in whole numbers

void require_bounded(config::Object& object, std::string_view key, Seconds time) {
    if (time > longest) object.error(key, "is above 100 years; give a time that a run may last");
}

void require_positive(config::Object& object, std::string_view key, double value) {
    if (!(value > 0)) object.error(key, "wants more than 0; leave failures out for none");
}

/// "30 s" or {rate: "2 GB/s"}.
CheckpointCost read_checkpoint(config::Object& failures) {
    const auto node = failures.node("checkpoint");
    if (!node || !node->is_mapping()) {
        const CheckpointTime cost{failures.seconds("checkpoint")};
        return cost;
    }
    config::Object written(*node, "checkpoint", failures.diagnostics());
    const auto errors_before = failures.diagnostics().count();
    const CheckpointRate cost{written.bandwidth("rate")};
    if (failures.diagnostics().count() == errors_before) require_positive(written, "rate", cost.rate.value);
    written.finish();
    return cost;
}

std::optional<Seconds> read_interval(config::Object& failures) {
    const auto node = failures.node("interval");
    if (!node || node->text() == "auto") return std::nullopt;
    return failures.seconds("interval");
}

void check_interval(config::Object& failures, const Failures& read) {
    if (!read.interval) return;
    if (!(read.interval->value > 0)) {
        failures.error("interval", "wants more than 0, or auto for the best one");
        return;
    }
    const auto* const time = std::get_if<CheckpointTime>(&read.checkpoint);
    const Seconds checkpoint = (time == nullptr ? Seconds{0} : time->time);
    if (*read.interval < checkpoint || *read.interval < read.background)
        failures.error(
            "interval",
            fmt::format("{} is shorter than a checkpoint takes ({} and {} in the background); give more, or "
                        "auto for the best one",
                        config::format(*read.interval), config::format(checkpoint), config::format(read.background)));
}

}  // namespace

std::optional<Failures> read_failures(config::Object& experiment) {
    const auto node = experiment.node("failures");
    if (!node) return std::nullopt;
    config::Object object(*node, "failures", experiment.diagnostics());
    const auto errors_before = object.diagnostics().count();
    Failures failures;
    failures.mtbf_per_gpu = object.seconds("mtbf_per_gpu");
    failures.checkpoint = read_checkpoint(object);
    failures.background = object.seconds_or("background", Seconds{0});
    failures.interval = read_interval(object);
    failures.restart = object.seconds("restart");
    failures.detect = object.seconds_or("detect", Seconds{0});
    failures.work = object.seconds_or("work", default_work);
    object.finish();
    if (object.diagnostics().count() != errors_before) return failures;
    require_positive(object, "mtbf_per_gpu", failures.mtbf_per_gpu.value);
    require_positive(object, "work", failures.work.value);
    if (const auto* time = std::get_if<CheckpointTime>(&failures.checkpoint))
        require_positive(object, "checkpoint", time->time.value + failures.background.value);
    require_bounded(object, "work", failures.work);
    if (failures.interval) require_bounded(object, "interval", *failures.interval);
    check_interval(object, failures);
    return failures;
}

}  // namespace lockstep::experiment
