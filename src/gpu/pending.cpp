// Makers that are being written: each goes from here to its own file.
#include "base/error.hpp"
#include "gpu/gpu_backend.hpp"
#include "gpu/gpu_executor.hpp"
#include "gpu/kernels.hpp"

namespace lockstep::gpu {
namespace {
[[noreturn]] void pending(const char* what) { throw LogicError(std::string("not written yet: ") + what); }
}  // namespace

std::unique_ptr<step::Executor> GpuBackend::executor(world::World& world, const GpuOptions& options) {
    return std::make_unique<GpuExecutor>(world, options, devices().at(static_cast<std::size_t>(options.device)));
}
std::vector<GpuFacts> GpuBackend::devices() { pending("devices"); }
std::map<std::string, std::string> GpuBackend::provenance() { pending("provenance"); }
int GpuBackend::choose_device(world::World&) { pending("choose_device"); }
std::string GpuBackend::binding_warning(int) { pending("binding_warning"); }
std::string GpuBackend::versions() { pending("versions"); }
std::unique_ptr<Kernel> make_attention(const step::Attention&, MathType, const Operands&, const KernelSetup&) {
    pending("attention");
}

}  // namespace lockstep::gpu
