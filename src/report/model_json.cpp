#include "report/model_tables.hpp"
#include "report/model_totals.hpp"

namespace lockstep::report {

namespace {

config::Json shape_json(const Shape& shape) {
    config::Json json = config::Json::array();
    for (auto extent : shape.extents) json.push(extent);
    return json;
}

config::Json inputs_json(const model::Model& model) {
    config::Json inputs = config::Json::array();
    for (const auto& input : model.inputs) {
        config::Json& json = inputs.push(config::Json::object());
        const bool is_image = input.kind == model::Input::Kind::image;
        json.set("name", input.name);
        json.set("kind", is_image ? "image" : "tokens");
        json.set("shape", shape_json(input.shape));
        json.set("vocab", is_image ? config::Json(nullptr) : config::Json(input.vocab));
    }
    return inputs;
}

config::Json layer_json(const model::Model& model, const model::Layer& layer, const model::LayerCost& cost,
                        std::int64_t own_parameters) {
    config::Json inputs = config::Json::array();
    for (auto id : layer.inputs)
        inputs.push(id.is_valid() ? model.layer(id).name
                                  : model.inputs[static_cast<std::size_t>(layer.model_input)].name);
    config::Json json = config::Json::object();
    json.set("name", layer.name);
    json.set("kind", model::kind_name(layer.kind));
    json.set("inputs", std::move(inputs));
    json.set("input_shape", shape_json(layer.input));
    json.set("output_shape", shape_json(layer.output));
    json.set("repeat_group", layer.repeat_group >= 0 ? config::Json(layer.repeat_group) : config::Json(nullptr));
    json.set("parameters", own_parameters);
    json.set("forward_flops", cost.forward.value);
    json.set("backward_data_flops", cost.backward_data.value);
    json.set("backward_weights_flops", cost.backward_weights.value);
    json.set("forward_bytes", cost.forward_bytes.value);
    json.set("backward_bytes", cost.backward_bytes.value);
    json.set("multiply_adds", cost.multiply_adds);
    return json;
}

}  // namespace

config::Json model_list_json(const std::vector<model::Model>& models) {
    config::Json list = config::Json::array();
    for (const auto& model : models) {
        config::Json& json = list.push(config::Json::object());
        json.set("name", model.name);
        json.set("file", model.file.string());
        json.set("sample_unit", model.sample_unit);
        json.set("parameters", model.parameter_count());
        json.set("multiply_adds", model::forward_multiply_adds(model));
    }
    return list;
}

config::Json model_json(const model::Model& model, std::int64_t batch, DType dtype) {
    const auto costs = costs_of(model, batch, dtype);
    const auto counts = own_parameters(model);
    const ModelTotals totals = totals_of(model, costs);
    config::Json json = config::Json::object();
    json.set("name", model.name);
    json.set("file", model.file.string());
    config::Json& sources = json.set("sources", config::Json::array());
    for (const auto& source : model.sources) sources.push(source);
    json.set("sample_unit", model.sample_unit);
    json.set("batch", batch);
    json.set("dtype", to_string(dtype));
    json.set("inputs", inputs_json(model));
    json.set("parameters", model.parameter_count());
    json.set("multiply_adds", model::forward_multiply_adds(model));
    json.set("can_run", model::why_only_simulated(model).empty());
    json.set("activations", totals.activations);
    config::Json layers = config::Json::array();
    for (std::size_t i = 0; i < costs.size(); ++i) layers.push(layer_json(model, model.layers[i], costs[i], counts[i]));
    json.set("layers", std::move(layers));
    config::Json sums = config::Json::object();
    sums.set("forward_flops", totals.forward.value);
    sums.set("backward_flops", totals.backward.value);
    sums.set("forward_bytes", totals.forward_bytes.value);
    sums.set("backward_bytes", totals.backward_bytes.value);
    json.set("totals", std::move(sums));
    return json;
}

}  // namespace lockstep::report
