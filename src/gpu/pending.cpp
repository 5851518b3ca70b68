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
std::unique_ptr<Kernel> make_reorder(const step::Reorder&, const Operands&) { pending("reorder"); }
std::unique_ptr<Kernel> make_optimizer(const step::OptimizerUpdate&, const Operands&) { pending("optimizer"); }
std::unique_ptr<Kernel> make_block_transpose(const step::BlockTranspose&, const Operands&) {
    pending("block_transpose");
}
std::unique_ptr<Kernel> make_slice(const step::Slice&, const Operands&) { pending("slice"); }
std::unique_ptr<Kernel> make_route(const step::Route&, const Operands&, const KernelSetup&) { pending("route"); }
std::unique_ptr<Kernel> make_dispatch(const step::Dispatch&, const Operands&) { pending("dispatch"); }
std::unique_ptr<Kernel> make_combine(const step::Combine&, const Operands&) { pending("combine"); }
std::unique_ptr<Kernel> make_found_inf(const Operands&) { pending("found_inf"); }
std::unique_ptr<Kernel> make_update_loss_scale(const Operands&) { pending("update_loss_scale"); }

}  // namespace lockstep::gpu
