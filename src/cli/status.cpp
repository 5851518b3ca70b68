// lockstep status: how far a run is.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "config/json.hpp"
#include "record/run_file.hpp"

namespace lockstep::cli {

namespace {

ExitCode show_status(const Parsed& parsed) {
    const record::RunState state = record::read_state(parsed.words[0]);
    const bool is_dead = state.status == record::Status::running && !state.is_alive;
    if (parsed.globals.json) {
        config::Json json;
        json.set("run", parsed.words[0]);
        json.set("status", record::to_string(state.status));
        json.set("alive", state.is_alive);
        json.set("steps", state.steps);
        json.set("planned_steps", state.planned_steps);
        json.set("ranks_present", state.ranks_present);
        json.set("ranks", state.ranks);
        json.set("merged", state.is_merged);
        json.set("leftover_rank_files", state.leftover_files);
        fmt::print("{}\n", json.dump());
    } else {
        fmt::print("{}: {}, step {} of {}, {} of {} ranks, {}\n", parsed.words[0],
                   is_dead ? "killed" : record::to_string(state.status), state.steps, state.planned_steps,
                   state.ranks_present, state.ranks, state.is_merged ? "merged" : "not merged");
        if (is_dead)
            fmt::print("every finished step is there; 'lockstep repair {}' copies them into one file\n",
                       parsed.words[0]);
        if (state.leftover_files > 0)
            fmt::print(
                "a killed merge left {} rank files beside run.h5, which holds all that they hold; they can be "
                "removed\n",
                state.leftover_files);
    }
    return ExitCode::ok;
}

}  // namespace

Command status_command() {
    return {"status",
            {.usage = "status RUN",
             .about = "how far a run is, and whether it lives",
             .options = {},
             .least_words = 1,
             .most_words = 1},
            show_status};
}

}  // namespace lockstep::cli
