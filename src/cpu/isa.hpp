// What this processor's vector units can do.
#pragma once

#include <string>

namespace lockstep::cpu {

/// True when bf16 products run natively (AVX-512 with BF16, or AMX).
bool has_native_bf16();
/// True when convolutions run fastest on activations in blocks of 8 channels (AVX2 without AVX-512).
bool prefers_blocked_channels();
/// The instruction set oneDNN uses here: "avx2", "avx512_core_bf16" ...
std::string isa_name();
/// Version of oneDNN: "2.6.3".
std::string library_version();

/// Subnormal results and operands count as zero on the calling thread, as training on GPUs has it: they would slow
/// loops down many times. OpenMP threads need their own call.
void flush_denormals();

}  // namespace lockstep::cpu
