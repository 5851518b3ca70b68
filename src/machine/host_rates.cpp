#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "machine/field.hpp"
#include "machine/host_probe.hpp"

namespace lockstep::machine {

namespace {

namespace fs = std::filesystem;
using config::Object;

/// A text in double quotes, so that colons and the like in a CPU's name stay text.
std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return result + "\"";
}

std::string to_yaml(const HostRates& r, const HostStructure& s) {
    std::string text = "# Rates of one rank of this host, kept so that it need not be measured before every run.\n";
    text += fmt::format("host: {{name: {}, cpu: {}, cores: {}}}\n", quoted(s.host_name), quoted(s.cpu_model), s.cores);
    text += fmt::format("threads_per_rank: {}\nmeasured_ranks: {}\n", r.threads_per_rank, r.measured_ranks);
    text += fmt::format("gemm_fp32: {} FLOPS\n", r.gemm_fp32.value);
    if (r.gemm_bf16) text += fmt::format("gemm_bf16: {} FLOPS\n", r.gemm_bf16->value);
    text += fmt::format("convolution_share: {}\nattention_share: {}\n", r.convolution_share, r.attention_share);
    text += fmt::format("memory: {} B/s\nop_overhead: {} s\n", r.memory.value, r.op_overhead.value);
    text += fmt::format("all_reduce_bus: {} B/s\nall_reduce_latency: {} s\n", r.all_reduce_bus.value,
                        r.all_reduce_latency.value);
    text += fmt::format("compute_slowdown: {}\n", r.compute_slowdown);
    return text + fmt::format("when: {}\nhow: {}\n", quoted(r.when), quoted(r.how));
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
    out << to_yaml(rates, structure);
    out.close();
    if (out) fs::rename(unfinished, file, error);
    if (!out || error)
        throw RuntimeError(
            fmt::format("can't write {} ({}); check the folder, or set XDG_CACHE_HOME to one that can be "
                        "written",
                        file.string(), error ? error.message() : "the disk may be full or read-only"));
}

}  // namespace lockstep::machine
