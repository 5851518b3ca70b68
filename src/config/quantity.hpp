// Numbers with units as people write them: "25 GB/s", "80 GiB", "3 us", "312 TFLOPS", "400 Gb/s".
#pragma once

#include <string>
#include <string_view>

#include "base/units.hpp"

namespace lockstep::config {

/// Parsers: a finite number that isn't negative, optional space, a unit; "0" needs none. Decimal (k, M, G, T, P, E) and
/// binary (Ki, Mi, Gi, Ti, Pi, Ei) prefixes; B is byte, b is bit, and a size in bits is refused. Throw InputError that
/// names the accepted units ("wants a size such as '25 MiB' ..., got '25'").
Bytes parse_bytes(std::string_view text);
Seconds parse_seconds(std::string_view text);      ///< s, ms, us, ns, ps, min, h, d
Bandwidth parse_bandwidth(std::string_view text);  ///< B/s, GB/s, GiB/s, Gb/s, GBps, Gbps; GT/s is refused
FlopRate parse_flop_rate(std::string_view text);   ///< FLOPS, TFLOPS, TFLOP/s, TOPS, TOP/s ...
Watts parse_watts(std::string_view text);          ///< W, kW, MW

/// For people: 3 significant digits without trailing zeros; binary prefixes for sizes, decimal ones for the rest:
/// "25 MiB", "1.5 GB/s", "312 TFLOP/s", "3.2 us", "4.11 GFLOP".
std::string format(Bytes bytes);
std::string format(Seconds seconds);
std::string format(Bandwidth bandwidth);
std::string format(FlopRate rate);
std::string format(Flops flops);
std::string format(Watts watts);
/// 25557032 -> "25,557,032".
std::string format_count(long long count);

}  // namespace lockstep::config
