#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "config/json.hpp"
#include "machine/field.hpp"
#include "machine/host_probe.hpp"

namespace lockstep::machine {

namespace {

namespace fs = std::filesystem;
using config::Object;

/// A double prints in the fewest digits that read back as it.
std::string with_unit(double value, const char* unit) { return fmt::format("{} {}", value, unit); }

/// As JSON, which is YAML too: what a text holds stays text.
config::Json to_json(const HostRates& r, const HostStructure& s) {
    config::Json json = config::Json::object();
    json.set("host", config::Json::Object{{"name", s.host_name}, {"cpu", s.cpu_model}, {"cores", s.cores}});
    json.set("threads_per_rank", r.threads_per_rank);
    json.set("measured_ranks", r.measured_ranks);
    json.set("gemm_fp32", with_unit(r.gemm_fp32.value, "FLOPS"));
    if (r.gemm_bf16) json.set("gemm_bf16", with_unit(r.gemm_bf16->value, "FLOPS"));
    json.set("convolution_share", r.convolution_share);
    json.set("attention_share", r.attention_share);
    json.set("memory", with_unit(r.memory.value, "B/s"));
    json.set("op_overhead", with_unit(r.op_overhead.value, "s"));
    json.set("all_reduce_bus", with_unit(r.all_reduce_bus.value, "B/s"));
    json.set("all_reduce_latency", with_unit(r.all_reduce_latency.value, "s"));
    json.set("compute_slowdown", r.compute_slowdown);
    json.set("when", r.when);
    json.set("how", r.how);
    return json;
}

fs::path cache_folder() {
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') return xdg;
    if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return fs::path(home) / ".cache";
    throw RuntimeError("no place to keep the rates of this host (HOME and XDG_CACHE_HOME are not set); set one");
}

}  // namespace

fs::path host_rates_file(const HostStructure& structure) {
    return cache_folder() / "lockstep" / fmt::format("host-{}.yaml", structure.host_name);
}

std::optional<HostRates> read_host_rates(const fs::path& file) {
    if (!fs::exists(file)) return std::nullopt;
    config::Diagnostics diagnostics;
    Object object(config::parse_file(file), "host rates", diagnostics);
    object.node("host");
    HostRates r;
    r.threads_per_rank = static_cast<int>(object.integer("threads_per_rank", 1, 100'000));
    r.measured_ranks = static_cast<int>(object.integer("measured_ranks", 1, 100'000));
    r.gemm_fp32 = positive(object, "gemm_fp32", &Object::flop_rate);
    if (object.has("gemm_bf16")) r.gemm_bf16 = positive(object, "gemm_bf16", &Object::flop_rate);
    r.convolution_share = object.number("convolution_share", 0, 10);
    r.attention_share = object.number("attention_share", 0, 10);
    r.memory = positive(object, "memory", &Object::bandwidth);
    r.op_overhead = object.seconds("op_overhead");
    r.all_reduce_bus = object.bandwidth("all_reduce_bus");
    r.all_reduce_latency = object.seconds("all_reduce_latency");
    r.compute_slowdown = object.number("compute_slowdown", 0, 0.99);
    r.when = object.text("when");
    r.how = object.text("how");
    object.finish();
    diagnostics.throw_if_any();
    return r;
}

void write_host_rates(const HostRates& rates, const HostStructure& structure, const fs::path& file) {
    std::error_code error;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
    // Written beside and renamed, so that a reader never sees half a file.
    const fs::path unfinished = file.string() + ".new";
    std::ofstream out(unfinished);
    out << to_json(rates, structure).dump() << '\n';
    out.close();
    if (out) fs::rename(unfinished, file, error);
    if (!out || error)
        throw RuntimeError(
            fmt::format("can't write {} ({}); check the folder, or set XDG_CACHE_HOME to one that can be "
                        "written",
                        file.string(), error ? error.message() : "the disk may be full or read-only"));
}

}  // namespace lockstep::machine
