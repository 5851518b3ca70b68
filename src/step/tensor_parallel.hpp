// The collectives of tensor parallelism between a layer and its neighbours.
#pragma once

#include "step/assembly.hpp"

namespace lockstep::step {

/// All-gathers a tensor split along the sequence over tp: [seq / tp, batch, width] -> [seq, batch, width].
TensorId gather_sequence(Assembly& a, std::string name, TensorId part, model::LayerId layer);
/// Sums [seq, batch, width] over tp: in place, or scattered along the sequence. Returns the result.
TensorId reduce_sums(Assembly& a, std::string name, TensorId sums, plan::Spread to, model::LayerId layer);
/// All-reduces a tensor over tp in place.
void all_reduce_over_tp(Assembly& a, std::string name, TensorId tensor, Reduction reduction, model::LayerId layer);

/// The input of a layer as its op wants it: gathered where the op needs the whole sequence and the producer left a
/// part. One gather serves all readers of a pass.
TensorId whole_input(Assembly& a, Chunk& chunk, model::LayerId id, const char* why);

}  // namespace lockstep::step
