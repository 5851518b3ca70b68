#include "cpu/isa.hpp"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace lockstep::cpu {
namespace {

bool has(dnnl_cpu_isa_t isa) { return (dnnl_get_effective_cpu_isa() & isa) == isa; }

}  // namespace

bool has_native_bf16() { return has(dnnl_cpu_isa_avx512_core_bf16); }

bool prefers_blocked_channels() { return has(dnnl_cpu_isa_avx2) && !has(dnnl_cpu_isa_avx512_core); }

std::string isa_name() {
    if (has(dnnl_cpu_isa_avx512_core_amx)) return "avx512_core_amx";
    if (has(dnnl_cpu_isa_avx512_core_bf16)) return "avx512_core_bf16";
    if (has(dnnl_cpu_isa_avx512_core_vnni)) return "avx512_core_vnni";
    if (has(dnnl_cpu_isa_avx512_core)) return "avx512_core";
    if (has(dnnl_cpu_isa_avx2)) return "avx2";
    if (has(dnnl_cpu_isa_avx)) return "avx";
    return "sse41 or none";
}

std::string library_version() {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

void flush_denormals() {
#if defined(__x86_64__)
    constexpr unsigned flush_results = 0x8000, operands_are_zero = 0x0040;
    _mm_setcsr(_mm_getcsr() | flush_results | operands_are_zero);
#elif defined(__aarch64__)
    std::uint64_t control = 0;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | (std::uint64_t{1} << 24)));
#endif
}

}  // namespace lockstep::cpu
