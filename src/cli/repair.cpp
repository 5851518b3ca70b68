// lockstep repair: copies the finished steps of a killed run into one file.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "record/run_file.hpp"

namespace lockstep::cli {

namespace {

ExitCode repair(const Parsed& parsed) {
    std::string folder = parsed.words[0];
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    const auto report = record::repair_run(folder, parsed.value("out").value_or(folder + "-repaired"));
    fmt::print("{}: {} steps of {} rank{}", report.output.string(), report.steps, report.ranks,
               report.ranks == 1 ? "" : "s");
    if (report.discarded_steps > 0) fmt::print(" ({} more were finished by some ranks only)", report.discarded_steps);
    fmt::print("\n");
    if (report.leftover_files > 0)
        fmt::print(
            "the {} rank files beside {}/run.h5 are what a killed merge left; run.h5 holds all that they hold, "
            "they can be removed\n",
            report.leftover_files, folder);
    return ExitCode::ok;
}

}  // namespace

Command repair_command() {
    return {"repair",
            {.usage = "repair RUN",
             .about = "copy the finished steps of a killed run into one file",
             .options = {{"out", "DIR", "new folder (RUN-repaired)"}},
             .least_words = 1,
             .most_words = 1},
            repair};
}

}  // namespace lockstep::cli
