// lockstep model list and show.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "model/model.hpp"
#include "report/model_tables.hpp"

namespace lockstep::cli {

namespace {

ExitCode list_models(const Parsed& parsed) {
    const config::DataPath data;
    std::vector<model::Model> models;
    for (const auto& name : model::model_names(data)) models.push_back(model::load_model(data, name));
    if (parsed.globals.json)
        fmt::print("{}\n", report::model_list_json(models).dump());
    else
        fmt::print("{}", report::format_model_list(models));
    return ExitCode::ok;
}

DType requested_dtype(const Parsed& parsed) {
    const auto text = parsed.value("precision").value_or("fp32");
    const auto precision = parse_precision(text);
    if (!precision)
        throw UsageError(fmt::format("--precision wants fp32, tf32, fp16-amp, bf16 or fp8, got '{}'", text));
    return activation_dtype(*precision);
}

ExitCode show_model(const Parsed& parsed) {
    const model::Model model = model::load_model(config::DataPath{}, parsed.words[0]);
    const long batch = parsed.integer("batch", 1).value_or(1);
    const DType dtype = requested_dtype(parsed);
    if (parsed.globals.json)
        fmt::print("{}\n", report::model_json(model, batch, dtype).dump());
    else
        fmt::print("{}", report::format_model(model, batch, dtype));
    return ExitCode::ok;
}

}  // namespace

Command model_list_command() {
    return {
        "model list", {.usage = "model list", .about = "the models that are described", .options = {}}, list_models};
}

Command model_show_command() {
    return {"model show",
            {.usage = "model show NAME",
             .about = "layers with shapes, parameters, flops and bytes",
             .options = {{"batch", "B", "samples (1)"}, {"precision", "P", "fp32, tf32, fp16-amp, bf16 or fp8 (fp32)"}},
             .least_words = 1,
             .most_words = 1},
            show_model};
}

}  // namespace lockstep::cli
