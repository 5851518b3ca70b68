// The table /device_samples: the state of the ranks' devices by step, of runs whose executor can tell it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/hdf5_handle.hpp"
#include "step/span.hpp"

namespace lockstep::record {

constexpr const char* device_table = "/device_samples";

/// The n-th row goes with the n-th row of /steps. NaN and -1: not told; in all columns: no sample was taken.
struct DeviceRow {
    std::int64_t step;
    std::int32_t rank;
    std::int32_t temperature_c;  ///< degrees Celsius
    std::int64_t time_ns;
    double sm_clock_hz, memory_clock_hz;
    double power_w, power_limit_w;
    std::int64_t throttle_reasons;  ///< bits of step::ThrottleReason
    std::uint64_t checksum;         ///< of the row before it, as schema.hpp's
};
static_assert(sizeof(DeviceRow) == 72);

DeviceRow device_row(const step::StepRecord& step);
/// With `offset` added to its time; none when the row tells nothing.
std::optional<step::DeviceSample> device_sample(const DeviceRow& row, Nanoseconds offset);
/// As it was written.
bool is_whole(const DeviceRow& row);

Handle device_row_type();
/// Units of the columns and the names of the reasons' bits, as attributes.
void describe_device_columns(hid_t table, const std::string& file_name);

}  // namespace lockstep::record
