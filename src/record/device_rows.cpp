#include "record/device_rows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "record/attributes.hpp"
#include "record/column_table.hpp"
#include "record/schema.hpp"

namespace lockstep::record {

namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

double value_of(const auto& quantity) { return quantity ? quantity->value : nothing; }

template <class Q>
std::optional<Q> told(double value) {
    return std::isnan(value) ? std::nullopt : std::optional<Q>(Q{value});
}

std::uint64_t checksum_of(const DeviceRow& row) {
    return checksum(std::as_bytes(std::span(&row, 1)).first(offsetof(DeviceRow, checksum)));
}

}  // namespace

DeviceRow device_row(const step::StepRecord& step) {
    DeviceRow row{step.step, step.rank, -1, -1, nothing, nothing, nothing, nothing, -1, 0};
    if (step.device) {
        const step::DeviceSample& sample = *step.device;
        row.temperature_c = sample.temperature.value_or(-1);
        row.time_ns = sample.time.count;
        row.sm_clock_hz = value_of(sample.sm_clock);
        row.memory_clock_hz = value_of(sample.memory_clock);
        row.power_w = value_of(sample.power);
        row.power_limit_w = value_of(sample.power_limit);
        if (sample.throttle) row.throttle_reasons = static_cast<std::int64_t>(sample.throttle->bits);
    }
    row.checksum = checksum_of(row);
    return row;
}

std::optional<step::DeviceSample> device_sample(const DeviceRow& row, Nanoseconds offset) {
    step::DeviceSample sample;
    sample.sm_clock = told<Frequency>(row.sm_clock_hz);
    sample.memory_clock = told<Frequency>(row.memory_clock_hz);
    sample.power = told<Watts>(row.power_w);
    sample.power_limit = told<Watts>(row.power_limit_w);
    if (row.temperature_c != -1) sample.temperature = row.temperature_c;
    if (row.throttle_reasons != -1)
        sample.throttle = step::ThrottleReasons{static_cast<std::uint64_t>(row.throttle_reasons)};
    if (sample == step::DeviceSample{}) return std::nullopt;
    sample.time = Nanoseconds{row.time_ns} + offset;
    return sample;
}

bool is_whole(const DeviceRow& row) { return row.checksum == checksum_of(row); }

Handle device_row_type() {
    Handle type(H5Tcreate(H5T_COMPOUND, sizeof(DeviceRow)), H5Tclose);
    const auto add = [&](const char* name, std::size_t offset, hid_t member) {
        H5Tinsert(type.get(), name, offset, member);
    };
    add("step", offsetof(DeviceRow, step), H5T_NATIVE_INT64);
    add("rank", offsetof(DeviceRow, rank), H5T_NATIVE_INT32);
    add("temperature_c", offsetof(DeviceRow, temperature_c), H5T_NATIVE_INT32);
    add("time_ns", offsetof(DeviceRow, time_ns), H5T_NATIVE_INT64);
    add("sm_clock_hz", offsetof(DeviceRow, sm_clock_hz), H5T_NATIVE_DOUBLE);
    add("memory_clock_hz", offsetof(DeviceRow, memory_clock_hz), H5T_NATIVE_DOUBLE);
    add("power_w", offsetof(DeviceRow, power_w), H5T_NATIVE_DOUBLE);
    add("power_limit_w", offsetof(DeviceRow, power_limit_w), H5T_NATIVE_DOUBLE);
    add("throttle_reasons", offsetof(DeviceRow, throttle_reasons), H5T_NATIVE_INT64);
    add("checksum", offsetof(DeviceRow, checksum), H5T_NATIVE_UINT64);
    return type;
}

void describe_device_columns(hid_t table, const std::string& file_name) {
    write_units(table,
                {{"step", "1"},
                 {"rank", "1"},
                 {"temperature_c", "degC"},
                 {"time_ns", "ns"},
                 {"sm_clock_hz", "Hz"},
                 {"memory_clock_hz", "Hz"},
                 {"power_w", "W"},
                 {"power_limit_w", "W"},
                 {"throttle_reasons", "bits"},
                 {"checksum", "1"}},
                file_name);
    std::string names;
    for (std::uint64_t bit = 1; bit <= static_cast<std::uint64_t>(step::ThrottleReason::display_clocks); bit <<= 1U)
        names += fmt::format("{}{:#x} {}", names.empty() ? "" : ", ", bit, step::to_string(step::ThrottleReasons{bit}));
    write_attribute(table, "throttle_reasons", names, file_name);
    write_attribute(table, "not_told", std::string("NaN, -1"), file_name);
}

}  // namespace lockstep::record
