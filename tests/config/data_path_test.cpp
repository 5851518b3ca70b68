#include "config/data_path.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "refusal.hpp"

namespace lockstep::config {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two data folders and a place for experiments in a folder of its own; the environment names no others at the start
/// and at the end.
class DataPathTest : public testing::Test {
protected:
    void SetUp() override {
        clear_environment();
        root = fs::path(testing::TempDir()) / ("lockstep_data_path_" + std::to_string(::getpid()));
        write("first/models/resnet50.yaml");
        write("second/models/resnet50.yaml");
        write("second/models/vgg16.yaml");
        write("second/models/notes.txt");
        write("second/shelf_of_this_test/mine.yaml");
        write("second/experiments/deep/down/e.yaml");
    }
    void TearDown() override {
        fs::remove_all(root);
        clear_environment();
    }
    static void clear_environment() {
        ::unsetenv("LOCKSTEP_DATA_PATH");
        ::unsetenv("XDG_CONFIG_HOME");
    }
    void write(const fs::path& file) const {
        fs::create_directories((root / file).parent_path());
        std::ofstream(root / file) << "a: 1\n";
    }
    DataPath both() const { return DataPath(std::vector<fs::path>{root / "first", root / "second"}); }

    fs::path root;
};

TEST_F(DataPathTest, the_first_folder_that_has_a_name_wins) {
    EXPECT_EQ(both().find("model", "models", "resnet50"), root / "first/models/resnet50.yaml");
    EXPECT_EQ(both().find("model", "models", "vgg16"), root / "second/models/vgg16.yaml");
}

TEST_F(DataPathTest, names_are_sorted_and_each_listed_once) {
    EXPECT_THAT(both().names("models"), ElementsAre("resnet50", "vgg16"));
    EXPECT_TRUE(both().names("nothing").empty());
}

TEST_F(DataPathTest, a_path_is_taken_as_it_is_or_below_a_folder) {
    const fs::path file = root / "second/models/vgg16.yaml";
    EXPECT_EQ(both().find("model", "models", file.string()), file);
    EXPECT_EQ(both().find("model", "models", "shelf_of_this_test/mine.yaml"),
              root / "second/shelf_of_this_test/mine.yaml");
    EXPECT_THAT(
        refusal([&] { both().find("model", "models", "none_of_this_name.yaml"); }),
        AllOf(HasSubstr("model file 'none_of_this_name.yaml' does not exist"), HasSubstr((root / "second").string())));
}

TEST_F(DataPathTest, an_unknown_name_lists_the_nearest_the_known_and_the_searched) {
    EXPECT_THAT(refusal([&] { both().find("model", "models", "vgg61"); }),
                AllOf(HasSubstr("unknown model 'vgg61' (did you mean 'vgg16'?)"), HasSubstr("known: resnet50, vgg16"),
                      HasSubstr((root / "first/models").string())));
    EXPECT_THAT(refusal([&] { both().find("model", "models", ""); }), HasSubstr("empty name"));
}

TEST_F(DataPathTest, an_experiment_finds_data_beside_it_and_in_a_parent_that_holds_some) {
    const DataPath path(root / "second/experiments/deep/down/e.yaml");
    EXPECT_EQ(path.folders().at(0), root / "second/experiments/deep/down");
    EXPECT_EQ(path.folders().at(1), root / "second");
    EXPECT_EQ(path.find("model", "models", "resnet50"), root / "second/models/resnet50.yaml");
}

TEST_F(DataPathTest, the_environment_adds_folders_in_order_before_the_users_and_the_source_tree) {
    ::setenv("LOCKSTEP_DATA_PATH", ((root / "second").string() + "::" + (root / "first").string() + ":").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", root.c_str(), 1);
    fs::create_directories(root / "lockstep");
    EXPECT_THAT(DataPath().folders(),
                ElementsAre(root / "second", root / "first", root / "lockstep", fs::path(LOCKSTEP_SOURCE_DIR)));
}

TEST_F(DataPathTest, the_source_tree_is_found_by_a_program_that_was_built_in_it) {
    EXPECT_THAT(DataPath().folders(), Contains(fs::path(LOCKSTEP_SOURCE_DIR)));
}

}  // namespace
}  // namespace lockstep::config
