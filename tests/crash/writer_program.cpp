// A program that the kill loop kills. usage: crash_writer append|merge|repair RUN_FOLDER
// append: writes steps of 300 events for ever and prints the number of each, a line, after append returned.
// merge, repair: prints a line, then works.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "record/live_writer.hpp"
#include "record/run_file.hpp"
#include "record/sample_run.hpp"

using namespace lockstep;

namespace {

void append_for_ever(const std::string& folder) {
    const auto graph = record::test::every_op_kind();
    record::make_run_folder(folder);
    record::LiveWriter writer(record::rank_file(folder, 0), record::test::full_description(1),
                              record::test::full_rank(0), graph);
    for (std::int64_t step = 0;; ++step) {
        writer.append(record::test::make_step(graph, 0, step, 300));
        fmt::print("{}\n", step);
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string task = argv[1];
    const std::string folder = argv[2];
    try {
        if (task == "append") append_for_ever(folder);
        fmt::print("start\n");
        std::fflush(stdout);
        if (task == "merge") record::merge_run(folder);
        if (task == "repair") record::repair_run(folder, folder + "-repaired");
    } catch (const Error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
