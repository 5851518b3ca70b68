// The fields of a run's and a rank's description, listed once and used for writing and for reading.
// Those that are `added` came later: a record without them has their defaults.
#pragma once

#include "record/run_description.hpp"

namespace lockstep::record {

template <class V>
void fields(V& v, step::MemoryUse& x) {
    v("parameters", x.parameters), v("gradients", x.gradients), v("optimizer", x.optimizer),
        v("activations", x.activations);
    v("workspace", x.workspace), v("total", x.total);
}
template <class V>
void fields(V& v, RunDescription& x) {
    v("origin", x.origin), v("experiment", x.experiment), v("label", x.label), v("model", x.model),
        v("machine", x.machine);
    v("precision", x.precision), v("framework", x.framework), v("backend", x.backend),
        v("intended_machine", x.intended_machine);
    v("ranks", x.ranks), v("global_batch", x.global_batch), v("is_strong_scaling", x.is_strong_scaling);
    v("throughput_unit", x.throughput_unit), v("tokens_per_sample", x.tokens_per_sample),
        v("warmup_steps", x.warmup_steps);
    v("planned_steps", x.planned_steps), v("record_every", x.record_every), v("seed", x.seed),
        v("epoch_utc_ns", x.epoch_utc);
    v("model_flops", x.model_flops), v("peak", x.peak), v("peak_source", x.peak_source), v("memory", x.memory);
    v("memory_capacity", x.memory_capacity), v("interval80_low_s", x.interval80_low),
        v("interval80_high_s", x.interval80_high);
    v("series_text", x.series_text), v("texts", x.texts), v("provenance", x.provenance), v("warnings", x.warnings);
    v.added("span_cost_s", x.span_cost);
}
template <class V>
void fields(V& v, RankDescription& x) {
    v("rank", x.rank), v("local_rank", x.local_rank), v("host", x.host), v("device", x.device), v("uuid", x.uuid),
        v("cpuset", x.cpuset);
    v("threads", x.threads), v("clock_offset_ns", x.clock_offset), v("clock_uncertainty_ns", x.clock_uncertainty);
    v("multiplicity", x.multiplicity);
    v.added("is_sampled", x.is_sampled), v.added("facts", x.facts);
}

}  // namespace lockstep::record
