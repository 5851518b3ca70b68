// lockstep plan search: finds the best plans of an experiment's model on its machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/command.hpp"
#include "cli/inputs.hpp"
#include "cli/prepare.hpp"
#include "config/quantity.hpp"
#include "drive/progress.hpp"
#include "drive/stop_signals.hpp"
#include "report/search_tables.hpp"
#include "search/search.hpp"

namespace lockstep::cli {

namespace {

struct Request {
    std::optional<int> ranks;
    std::optional<Bytes> memory;
    int top = 10;
    bool is_exhaustive = false;
};

Request read_request(const Parsed& parsed) {
    Request request;
    if (const auto ranks = parsed.integer("ranks", 1))
        request.ranks = static_cast<int>(std::min<long>(*ranks, plan::max_ranks));
    if (const auto text = parsed.value("memory")) {
        try {
            request.memory = config::parse_bytes(*text);
        } catch (const InputError& failure) { throw UsageError(fmt::format("--memory {}", failure.what())); }
        if (*request.memory <= Bytes{}) throw UsageError("--memory wants more than 0, such as '70 GiB'");
    }
    constexpr long most = 1000;
    request.top = static_cast<int>(std::min(most, parsed.integer("top", 1).value_or(request.top)));
    request.is_exhaustive = parsed.has("exhaustive");
    return request;
}

/// The progress line, a new one for each phase.
class ProgressLines {
public:
    explicit ProgressLines(bool is_quiet)
        : mode_(is_quiet ? drive::Progress::Mode::silent : drive::Progress::mode_for_stderr()) {}

    void show(const search::SearchProgress& at) {
        if (at.phase != phase_) {
            finish();
            phase_ = at.phase;
            line_.emplace(mode_, "plan search", at.total, at.phase);
        }
        std::string note = at.per_second > 0 ? fmt::format("({:.0f} a second)", at.per_second) : "";
        if (at.best) note += fmt::format("{}best {}", note.empty() ? "" : ", ", config::format(*at.best));
        line_->expect(at.total);
        line_->show(at.done, note);
    }
    void finish() {
        if (line_) line_->finish();
    }

private:
    drive::Progress::Mode mode_;
    std::string phase_;
    std::optional<drive::Progress> line_;
};

analysis::SearchFindings search_point(const experiment::Experiment& written, const config::DataPath& data,
                                      const Request& request, const drive::StopSignals& signals, bool is_quiet) {
    const machine::Machine machine = load_turned(data, written.machine, written.knobs);
    const experiment::Experiment experiment = for_device(written, machine.device.kind);
    const machine::Placement placement = machine.place(request.ranks.value_or(experiment.ranks.back()));
    const cost::CostModel costs(machine, placement);
    const search::Subject subject{experiment, machine, placement, costs};
    const plan::Space space =
        plan::make_space(plan::with_defaults(experiment.search, experiment.model, placement.ranks), experiment.plan,
                         experiment.batch, experiment.optimizer, experiment.model, placement);
    ProgressLines progress(is_quiet);
    search::SearchOptions options;
    options.limit = request.memory.value_or(search::usable_memory(machine.smallest_device(placement).memory));
    options.top = request.top;
    options.is_exhaustive = request.is_exhaustive;
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.is_stopped = [&signals] { return signals.request() != drive::StopRequest::none; };
    options.show = [&progress](const search::SearchProgress& at) { progress.show(at); };
    analysis::SearchFindings findings = search::search(subject, space, options);
    progress.finish();
    findings.limit_source = request.memory ? "--memory" : search::usable_memory_text();
    return findings;
}

ExitCode search_plans(const Parsed& parsed) {
    const Request request = read_request(parsed);
    const LoadedInput input = load_input(parsed.words[0], parsed.globals);
    if (parsed.globals.print_config) {
        print_config(input);
        return ExitCode::ok;
    }
    const drive::StopSignals signals;
    const auto color = use_color(parsed.globals.color) ? report::Color::on : report::Color::off;
    std::vector<analysis::SearchFindings> all;
    ExitCode code = ExitCode::ok;
    for (const auto& point : input.experiments.points) {
        if (point.collective)
            throw InputError(point.collective->title() + " has no plans to search (nothing is split); name a model");
        all.push_back(search_point(point, input.data, request, signals, parsed.globals.quiet));
        if (!parsed.globals.json) fmt::print("{}\n", report::format_search(all.back(), color));
        if (all.back().is_complete) continue;
        code = ExitCode::incomplete_data;
        break;
    }
    if (parsed.globals.json) fmt::print("{}\n", report::search_json(all).dump());
    return code;
}

}  // namespace

Command plan_search_command() {
    return {"plan search",
            {.usage = "plan search EXPERIMENT",
             .about = "find the fastest plans that fit, and why others don't",
             .options = {{"ranks", "N", "world size (the experiment's largest)"},
                         {"memory", "SIZE", "limit a rank (the device's less 5 %)"},
                         {"top", "K", "plans to rank (10)"},
                         {"exhaustive", "", "simulate every plan of the space"}},
             .least_words = 1,
             .most_words = 1},
            search_plans};
}

}  // namespace lockstep::cli
