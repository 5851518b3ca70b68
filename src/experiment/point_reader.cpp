#include "experiment/point_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "experiment/defaults.hpp"
#include "experiment/keys.hpp"
#include "experiment/variation_reader.hpp"

namespace lockstep::experiment {

using config::Node;

namespace {

constexpr int max_steps = 1'000'000'000;
constexpr int max_threads = 65'536;

struct Refusal {
    std::string_view key;  ///< where it is reported
    std::string reason;
    std::vector<int> ranks;
};

/// The plan with as many ranks as one replica has: what the model refuses of it, any world's plan is refused for.
plan::Plan smallest_plan(const plan::PlanRequest& request) {
    plan::Plan plan;
    plan.mesh = {.tp = request.tp, .cp = request.cp, .ep = request.ep, .pp = request.pp};
    plan.split = request.split;
    plan.accumulation = request.pp;
    return plan;
}

/// What speaks against the plan of one world. Which ranks share a node is known where a machine is: a world counts as
/// one node here.
std::vector<Refusal> refusals_of(const Experiment& experiment, int ranks) {
    const machine::Placement placement{ranks, ranks};
    std::vector<Refusal> refusals;
    plan::Plan plan = smallest_plan(experiment.plan);
    std::string_view key = "ranks";
    try {
        plan::make_mesh(experiment.plan, placement);
        key = experiment.is_strong_scaling() ? "global_batch" : "batch_per_rank";
        plan = plan::make_plan(experiment.plan, experiment.batch, experiment.optimizer, placement);
    } catch (const InputError& failure) { refusals.push_back({key, failure.what(), {ranks}}); }
    for (auto& reason : plan::plan_refusals(plan, experiment.model))
        refusals.push_back({"plan", std::move(reason), {ranks}});
    return refusals;
}

/// Every rank count of the list has to make a plan that suits the model. What is the same in all worlds is said once.
void check_worlds(config::Object& object, const Experiment& experiment) {
    std::vector<Refusal> refusals;
    for (const int ranks : experiment.ranks)
        for (auto& refusal : refusals_of(experiment, ranks)) {
            const auto known = std::ranges::find(refusals, refusal.reason, &Refusal::reason);
            if (known == refusals.end())
                refusals.push_back(std::move(refusal));
            else
                known->ranks.push_back(ranks);
        }
    for (const Refusal& refusal : refusals) {
        const bool is_general = refusal.key == "plan" && refusal.ranks.size() == experiment.ranks.size();
        const bool names_ranks = refusal.key == "ranks";
        object.error(refusal.key,
                     is_general || names_ranks
                         ? refusal.reason
                         : fmt::format("with ranks={}: {}", fmt::join(refusal.ranks, ", "), refusal.reason));
    }
}

/// A collective is between ranks, and each has an element of it.
void check_buffer(config::Object& object, const Experiment& experiment) {
    const CollectiveRequest& request = *experiment.collective;
    const bool is_whole = request.kind == CollectiveKind::all_reduce || request.kind == CollectiveKind::broadcast;
    for (const int ranks : experiment.ranks) {
        if (ranks < 2)
            object.error("ranks", "a collective on one rank moves nothing; give 2 ranks or more");
        else if (!is_whole && request.bytes / size_of(request.dtype) < ranks)
            object.error("collective", fmt::format("{} has less than one {} for each of {} ranks; give more bytes",
                                                   request.title(), to_string(request.dtype), ranks));
    }
}

}  // namespace

const std::optional<model::Model>& PointReader::load_model(const Node& node, config::Diagnostics& diagnostics) {
    const auto [entry, is_new] = models_.try_emplace(node.canonical());
    if (!is_new) return entry->second;
    const auto errors_before = diagnostics.count();
    try {
        model::Model model = model::load_model(data_, node, diagnostics);
        if (diagnostics.count() == errors_before) entry->second = std::move(model);
    } catch (const InputError& failure) { diagnostics.error(node.where(), failure.what()); }
    return entry->second;
}

const std::optional<plan::Framework>& PointReader::load_framework(const Node& node, config::Diagnostics& diagnostics) {
    const auto [entry, is_new] = frameworks_.try_emplace(node.canonical());
    if (!is_new) return entry->second;
    try {
        if (!node.is_scalar()) throw InputError("framework: wants the name of a profile or a file");
        entry->second = plan::load_framework(data_, node.text());
    } catch (const InputError& failure) { diagnostics.error(node.where(), failure.what()); }
    return entry->second;
}

Experiment PointReader::read(const Node& document, config::Diagnostics& diagnostics) {
    const auto errors_before = diagnostics.count();
    config::Object object(document, "experiment", diagnostics);
    Experiment experiment;
    experiment.collective = read_collective(object);
    if (!experiment.collective) read_training(object, experiment);
    experiment.machine = read_machine(object);
    experiment.ranks = read_ranks(object);
    experiment.variation =
        read_variation(object, experiment.ranks.empty() ? plan::max_ranks : std::ranges::max(experiment.ranks));
    experiment.steps = static_cast<int>(object.integer("steps", 1, max_steps));
    experiment.warmup = static_cast<int>(object.integer("warmup", 0, max_steps));
    experiment.seed = static_cast<std::uint64_t>(object.integer("seed", 0));
    experiment.threads_per_rank = static_cast<int>(object.integer("threads_per_rank", 0, max_threads));
    object.finish();
    if (diagnostics.count() != errors_before) return experiment;
    if (experiment.collective)
        check_buffer(object, experiment);
    else
        check_worlds(object, experiment);
    return experiment;
}

void PointReader::read_training(config::Object& object, Experiment& experiment) {
    config::Diagnostics& diagnostics = object.diagnostics();
    if (const auto node = object.node("model")) {
        if (const auto& model = load_model(*node, diagnostics)) experiment.model = *model;
    } else if (object.self().is_mapping()) {
        object.error("", "key 'model' is missing; name one, such as model: resnet50");
    }
    experiment.precision = read_precision(object);
    if (const auto& framework = load_framework(object.node("framework").value_or(Node{}), diagnostics))
        experiment.framework = *framework;
    experiment.batch = read_batch(object);
    experiment.plan = plan::read_plan(object.node("plan").value_or(Node{}), experiment.framework, diagnostics);
    experiment.search = plan::read_space(object.node("search").value_or(Node{}), diagnostics);
    experiment.optimizer = read_optimizer(object, default_optimizer(experiment.model));
    experiment.input = read_input(object);
    experiment.failures = read_failures(object);
}

}  // namespace lockstep::experiment
