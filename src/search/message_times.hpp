// What a message from each stage of a pipeline to the next takes.
#pragma once

#include <vector>

#include "base/units.hpp"
#include "plan/mesh.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// `bytes` from the first rank of each stage to its counterpart on the next; of the last stage to that on the first.
std::vector<Seconds> message_times(const Subject& subject, const plan::Mesh& mesh, Bytes bytes);

}  // namespace lockstep::search
