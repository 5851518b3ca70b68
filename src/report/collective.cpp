#include "report/collective.hpp"

#include <fmt/format.h>

#include "config/quantity.hpp"
#include "report/table.hpp"

namespace lockstep::report {

namespace {

std::string gigabytes(Bandwidth rate) { return fmt::format("{:.4g}", rate / 1_GBps); }

}  // namespace

config::Json collective_json(const analysis::RunFindings& run) {
    const analysis::CollectiveFindings& found = *run.collective;
    config::Json json = config::Json::object();
    json.set("kind", to_string(found.kind));
    json.set("dtype", to_string(found.dtype));
    json.set("buffer_bytes", found.buffer.value);
    json.set("time_s", found.time.value);
    json.set("algbw_bytes_per_s", found.algorithm.value);
    json.set("busbw_bytes_per_s", found.bus.value);
    return json;
}

bool are_one_table(const analysis::SeriesFindings& a, const analysis::SeriesFindings& b) {
    const analysis::RunFindings& left = a.points.front();
    const analysis::RunFindings& right = b.points.front();
    return left.collective && right.collective && left.collective->kind == right.collective->kind &&
           left.precision == right.precision && left.machine == right.machine && left.origin == right.origin;
}

std::string collective_table(std::span<const analysis::SeriesFindings> sizes) {
    Table table({{"ranks"}, {"buffer"}, {"bytes"}, {"time"}, {"p95"}, {"algbw GB/s"}, {"busbw GB/s"}});
    for (const analysis::SeriesFindings& series : sizes)
        for (const analysis::RunFindings& run : series.points) {
            const analysis::CollectiveFindings& found = *run.collective;
            table.add({std::to_string(run.ranks), config::format(found.buffer),
                       config::format_count(static_cast<long long>(found.buffer.value)), config::format(found.time),
                       config::format(run.step_time.p95), gigabytes(found.algorithm), gigabytes(found.bus)});
        }
    return table.text("  ");
}

}  // namespace lockstep::report
