// The names of published measurements: each leads to a machine, a model and a profile of the catalogue.
#include "experiment/published_names.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "base/error.hpp"
#include "machine/catalog.hpp"
#include "model/model.hpp"
#include "plan/framework.hpp"

namespace lockstep::experiment {
namespace {

using config::Node;

config::DataPath data() { return config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}); }

/// One line of a CSV file: fields in quotes may hold commas.
std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields(1);
    bool is_quoted = false;
    for (const char c : line) {
        if (c == '"')
            is_quoted = !is_quoted;
        else if (c == ',' && !is_quoted)
            fields.emplace_back();
        else if (c != '\r')
            fields.back() += c;
    }
    return fields;
}

using Row = std::map<std::string, std::string>;

/// Rows of a file of the corpus; none when there is no corpus.
std::vector<Row> rows_of(const std::string& file) {
    const char* const folder = std::getenv("LOCKSTEP_CORPUS");
    std::vector<Row> rows;
    if (folder == nullptr) return rows;
    std::ifstream in(std::filesystem::path(folder) / file);
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> names = fields_of(line);
    while (std::getline(in, line)) {
        const std::vector<std::string> fields = fields_of(line);
        Row row;
        for (std::size_t i = 0; i < names.size() && i < fields.size(); ++i) row[names[i]] = fields[i];
        rows.push_back(std::move(row));
    }
    return rows;
}

/// The machine that an experiment's `machine: NODE` is; fails the test when there is none.
machine::Machine machine_of(const Node& node) {
    config::Diagnostics diagnostics;
    const machine::Machine found = machine::load_machine(data(), node, diagnostics);
    diagnostics.throw_if_any();
    return found;
}

constexpr const char* no_corpus = "LOCKSTEP_CORPUS is not set or doesn't hold the file";

TEST(PublishedNames, names_that_are_not_listed_are_kept) {
    const PublishedNames names(data());
    EXPECT_EQ(names.model("resnet50").text(), "resnet50");
    EXPECT_EQ(names.machine("dgx-2", 1).text(), "dgx-2");
    EXPECT_EQ(names.framework("pytorch-ddp", "resnet50").profile, "pytorch-ddp");
    EXPECT_FALSE(names.system("a machine nobody knows").has_value());
}

TEST(PublishedNames, a_node_becomes_a_cluster_where_a_row_has_several) {
    const Node cluster = PublishedNames(data()).machine("dgx-a100-80gb", 4);
    EXPECT_EQ(machine_of(cluster).devices(), 32);
    EXPECT_EQ(PublishedNames(data()).machine("dgx-a100-80gb", 1).text(), "dgx-a100-80gb");
}

TEST(PublishedNames, a_framework_can_differ_by_model_and_say_something_of_the_plan) {
    const PublishedNames names(data());
    EXPECT_EQ(names.framework("PyTorch", "resnext101-32x4d").profile, "pytorch-1-ddp");
    EXPECT_EQ(names.framework("PyTorch", "bert-large").profile, "apex-ddp");
    EXPECT_EQ(names.framework("OneFlow ", "resnet50").profile, "oneflow");
    EXPECT_EQ(names.framework("torchtitan async TP", "llama-3.1-8b").plan.find("async_tp")->text(), "true");
}

TEST(PublishedNames, what_the_table_names_is_in_the_catalogue) {
    const Node table = config::parse_file(data().find("table of names", "experiments/published", "names"));
    for (const Node& entry : table.find("frameworks")->items())
        EXPECT_NO_THROW(plan::load_framework(data(), entry.find("profile")->text())) << entry.find("name")->text();
    for (const Node& entry : table.find("systems")->items())
        if (const Node* const machine = entry.find("machine")) {
            EXPECT_NO_THROW(machine_of(*machine)) << entry.find("begins")->text();
        }
}

TEST(PublishedNames, every_training_row_has_a_machine_that_is_large_enough_a_model_and_a_profile) {
    const auto rows = rows_of("training.csv");
    if (rows.empty()) GTEST_SKIP() << no_corpus;
    const PublishedNames names(data());
    std::map<std::string, machine::Machine> machines;
    std::set<std::string> models, profiles;
    for (const Row& row : rows) {
        const int nodes = std::stoi(row.at("nodes")), gpus = std::stoi(row.at("gpus"));
        const Node machine = names.machine(row.at("machine"), nodes);
        const auto [found, is_new] = machines.try_emplace(machine.canonical());
        if (is_new) { ASSERT_NO_THROW(found->second = machine_of(machine)) << row.at("id"); }
        EXPECT_GE(found->second.devices(), gpus) << row.at("id");
        EXPECT_EQ(found->second.place(gpus).nodes(), nodes) << row.at("id");
        const Node model = names.model(row.at("model"));
        if (models.insert(model.canonical()).second) {
            config::Diagnostics diagnostics;
            model::load_model(data(), model, diagnostics);
            EXPECT_EQ(diagnostics.count(), 0U) << row.at("id") << ' ' << row.at("model");
        }
        const std::string profile = names.framework(row.at("framework"), row.at("model")).profile;
        if (profiles.insert(profile).second) { EXPECT_NO_THROW(plan::load_framework(data(), profile)) << row.at("id"); }
    }
}

TEST(PublishedNames, every_collective_has_a_system_or_a_reason_why_not) {
    const auto rows = rows_of("collectives.csv");
    if (rows.empty()) GTEST_SKIP() << no_corpus;
    const PublishedNames names(data());
    std::map<std::string, machine::Machine> machines;
    for (const Row& row : rows) {
        const auto system = names.system(row.at("system"));
        ASSERT_TRUE(system.has_value()) << row.at("system");
        if (!system->why_skipped.empty()) continue;
        const auto [found, is_new] = machines.try_emplace(system->machine.canonical());
        if (is_new) { ASSERT_NO_THROW(found->second = machine_of(system->machine)) << row.at("system"); }
        ASSERT_FALSE(row.at("num_gpus").empty()) << row.at("id") << ": a count is wanted, or a reason to skip";
        EXPECT_GE(found->second.devices(), std::stoi(row.at("num_gpus"))) << row.at("system");
    }
}

}  // namespace
}  // namespace lockstep::experiment
