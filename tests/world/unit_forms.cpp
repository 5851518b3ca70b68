// Forms that need no launcher: a world of one, and ranks as threads.
#include "world/forms.hpp"

namespace lockstep::world {

std::vector<Form> forms() {
    std::vector<Form> result;
    result.push_back({"self", [](const RankBody& body) { body(*make_self_world()); }});
    for (const int ranks : {1, 2, 3, 4})
        result.push_back(
            {"thread_" + std::to_string(ranks), [ranks](const RankBody& body) { run_thread_world(ranks, body); }});
    result.push_back({"thread_4_halves", [](const RankBody& body) { run_thread_world(4, on_halves(body)); }});
    return result;
}

}  // namespace lockstep::world
