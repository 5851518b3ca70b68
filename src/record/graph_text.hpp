// A step graph as JSON text and back, exactly.
#pragma once

#include <string>

#include "step/graph.hpp"

namespace lockstep::record {

/// One line of JSON with every field of the graph. Enumerations are written as their ordinal (schema_version says
/// which).
std::string graph_to_text(const step::StepGraph& graph);

/// The graph of a text. Throws InputError naming `file` and the field when something is missing, of the wrong type,
/// points outside its table or has impossible sizes: the text may come from a stranger.
step::StepGraph graph_from_text(const std::string& text, const std::string& file);

}  // namespace lockstep::record
