// Experiments written to a folder of the test, and the errors they cause.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "experiment/experiment.hpp"

namespace lockstep::experiment {

class ExperimentFile : public testing::Test {
protected:
    void SetUp() override {
        const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = std::filesystem::temp_directory_path() / (std::string("lockstep_experiment_") + test->name());
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::filesystem::path write(const std::string& text, const std::string& name = "mine.yaml") const {
        std::ofstream(folder_ / name) << text;
        return folder_ / name;
    }
    /// `settings` as after --set.
    LoadedExperiments load(const std::string& text, const std::vector<std::string>& settings = {}) const {
        std::vector<Override> overrides;
        for (const auto& setting : settings) overrides.push_back(parse_override(setting, "--set"));
        return load_experiment(write(text), overrides, data());
    }
    std::string failure_of(const std::string& text, const std::vector<std::string>& settings = {}) const {
        try {
            load(text, settings);
        } catch (const InputError& failure) { return failure.what(); }
        return "loaded";
    }
    static config::DataPath data() { return config::DataPath(std::vector<std::filesystem::path>{LOCKSTEP_SOURCE_DIR}); }
    std::filesystem::path folder_;
};

inline constexpr const char* smallest = "model: resnet50\nbatch_per_rank: 8\n";

}  // namespace lockstep::experiment
