// What a file holds besides steps and events.
#include "record/attributes.hpp"
#include "record/column_table.hpp"
#include "record/field_text.hpp"
#include "record/graph_text.hpp"
#include "record/run_fields.hpp"
#include "record/schema.hpp"

namespace lockstep::record {

namespace {

Handle make_group(hid_t file, const std::string& name, const std::string& file_name) {
    return {check(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, untimed(H5P_GROUP_CREATE).get(), H5P_DEFAULT),
                  "make group " + name, file_name),
            H5Gclose};
}

/// One row per op of the graph.
void write_ops(hid_t file, const step::StepGraph& graph, const std::string& file_name) {
    std::vector<std::int64_t> number, stream, layer, is_last_only;
    std::vector<std::string> block, name, kind, phase, math, stream_name;
    std::vector<double> flops, bytes, host;
    for (const auto& one : graph.blocks)
        for (const auto& op : one.ops) {
            number.push_back(static_cast<std::int64_t>(number.size()));
            block.push_back(one.name);
            name.push_back(op.name);
            kind.emplace_back(step::kind_name(op));
            phase.emplace_back(step::to_string(op.phase));
            stream.push_back(op.stream.value);
            stream_name.push_back(op.stream.is_valid() ? graph.stream(op.stream).name : "");
            layer.push_back(op.layer.value);
            math.emplace_back(to_string(op.math));
            flops.push_back(op.flops.value);
            bytes.push_back(op.bytes.value);
            host.push_back(op.host_time.value * 1e9);
            is_last_only.push_back(op.is_last_micro_batch_only ? 1 : 0);
        }
    write_columns(file, "/graph/ops",
                  {{"op", "1", number},
                   {"block", "", block},
                   {"name", "", name},
                   {"kind", "", kind},
                   {"phase", "", phase},
                   {"stream", "1", stream},
                   {"stream_name", "", stream_name},
                   {"layer", "1", layer},
                   {"math", "", math},
                   {"flops", "flop", flops},
                   {"bytes", "byte", bytes},
                   {"host_ns", "ns", host},
                   {"last_micro_batch_only", "1", is_last_only}},
                  file_name);
}

void write_tensors(hid_t file, const step::StepGraph& graph, const std::string& file_name) {
    std::vector<std::int64_t> number, elements, view_of, first_element;
    std::vector<std::string> name, shape, dtype, role;
    std::vector<double> bytes;
    for (const auto& tensor : graph.tensors) {
        number.push_back(static_cast<std::int64_t>(number.size()));
        name.push_back(tensor.name);
        shape.push_back(to_string(tensor.shape));
        dtype.emplace_back(to_string(tensor.dtype));
        role.emplace_back(step::to_string(tensor.role));
        elements.push_back(tensor.elements());
        bytes.push_back(tensor.bytes().value);
        view_of.push_back(tensor.view ? tensor.view->of.value : -1);
        first_element.push_back(tensor.view ? tensor.view->first_element : 0);
    }
    write_columns(file, "/graph/tensors",
                  {{"tensor", "1", number},
                   {"name", "", name},
                   {"shape", "", shape},
                   {"dtype", "", dtype},
                   {"role", "", role},
                   {"elements", "1", elements},
                   {"bytes", "byte", bytes},
                   {"view_of", "1", view_of},
                   {"first_element", "1", first_element}},
                  file_name);
}

void write_summary(hid_t file, const RunDescription& run, const std::string& file_name) {
    const auto text = [&](const char* name, std::string_view value) {
        write_attribute(file, name, std::string(value), file_name);
    };
    const auto number = [&](const char* name, std::int64_t value) { write_attribute(file, name, value, file_name); };
    number("schema_version", schema_version);
    text("written_by", "lockstep");
    text("origin", to_string(run.origin));
    text("experiment", run.experiment);
    text("model", run.model);
    text("machine", run.machine);
    text("precision", run.precision);
    text("framework", run.framework);
    text("backend", run.backend);
    text("throughput_unit", run.throughput_unit);
    text("series_sha256", sha256(run.series_text));
    number("ranks", run.ranks);
    number("global_batch", run.global_batch);
    number("warmup_steps", run.warmup_steps);
    number("planned_steps", run.planned_steps);
    number("epoch_utc_ns", run.epoch_utc.count);
}

void write_texts(hid_t file, const RunDescription& run, const std::string& file_name) {
    const Handle group = make_group(file, "/texts", file_name);
    for (const auto& [name, text] : run.texts) {
        write_text(file, "/texts/" + name, text, file_name);
        const Handle dataset(check(H5Dopen2(file, ("/texts/" + name).c_str(), H5P_DEFAULT), "open " + name, file_name),
                             H5Dclose);
        write_attribute(dataset.get(), "sha256", sha256(text), file_name);
    }
}

}  // namespace

void write_header(hid_t file, const RunDescription& run, const std::vector<RankDescription>& ranks,
                  const step::StepGraph& graph, const std::string& file_name) {
    const std::string description = to_text(run);
    const std::string graph_text = graph_to_text(graph);
    require_readable(description, "the description of the run");
    require_readable(graph_text, "the step graph");
    write_summary(file, run, file_name);
    write_text(file, "/description", description, file_name);
    std::string all_ranks;
    for (const auto& rank : ranks) all_ranks += (all_ranks.empty() ? "[" : ",\n") + to_text(rank);
    write_text(file, "/ranks", all_ranks + "]", file_name);
    write_texts(file, run, file_name);
    const Handle provenance = make_group(file, "/provenance", file_name);
    for (const auto& [name, value] : run.provenance) write_attribute(provenance.get(), name, value, file_name);
    const Handle group = make_group(file, "/graph", file_name);
    write_text(file, "/graph/text", graph_text, file_name);
    write_ops(file, graph, file_name);
    write_tensors(file, graph, file_name);
}

}  // namespace lockstep::record
