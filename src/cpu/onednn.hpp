// oneDNN for this folder's kernels: engine and stream, operands as its memories, primitives with bound arguments. The
// only header of the project that shows oneDNN; only kernel sources include it.
#pragma once

#include <cstdint>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cpu/kernel.hpp"

namespace lockstep::cpu {

/// Engine and stream of one executor, and the orders its convolutions have chosen for packed tensors.
class OneDnn {
public:
    OneDnn() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {}
    dnnl::engine engine;
    dnnl::stream stream;
    std::map<std::int32_t, dnnl::memory::desc> packed;  ///< by tensor id
};

/// Hands out pieces of a kernel's scratch block.
class ScratchPlan {
public:
    std::int64_t add(std::int64_t bytes) {
        const std::int64_t offset = bytes_;
        bytes_ += (bytes + 63) / 64 * 64;
        return offset;
    }
    std::int64_t bytes() const { return bytes_; }

private:
    std::int64_t bytes_ = 0;
};

dnnl::memory::data_type data_type(DType dtype);
/// Dims as oneDNN orders them (n, c, h, w), stored row-major, channels last or in blocks of 8 channels.
dnnl::memory::desc activation_desc(const Operand& operand, const dnnl::memory::dims& dims);
/// [out, in / groups, k, k], or [groups, out / groups, in / groups, k, k], row-major or channels last.
dnnl::memory::desc plain_desc(DType dtype, const dnnl::memory::dims& dims);

/// Attributes every primitive gets: temporaries come from the kernel's scratch block.
dnnl::primitive_attr user_scratchpad();

/// A primitive and the memories it works on. Executing it allocates nothing of ours.
class Prepared {
public:
    Prepared() = default;
    template <class PrimitiveDesc>
    Prepared(const PrimitiveDesc& description, const dnnl::primitive& primitive,
             std::vector<std::pair<int, dnnl::memory>> arguments, ScratchPlan& scratch)
        : primitive_(primitive), arguments_(std::move(arguments)) {
        const dnnl::memory::desc temporaries = description.scratchpad_desc();
        if (temporaries.get_size() > 0) {
            arguments_.emplace_back(DNNL_ARG_SCRATCHPAD,
                                    dnnl::memory(temporaries, description.get_engine(), DNNL_MEMORY_NONE));
            place_in_scratch(arguments_.back().second, scratch.add(static_cast<std::int64_t>(temporaries.get_size())));
        }
        collect_arguments();
    }
    /// `memory` is a piece of the scratch block at `offset`.
    void place_in_scratch(const dnnl::memory& memory, std::int64_t offset) { pieces_.emplace_back(memory, offset); }
    void bind_scratch(std::byte* scratch);
    /// Throws RuntimeError when oneDNN fails.
    void run(const dnnl::stream& stream) const;

private:
    void collect_arguments();
    dnnl::primitive primitive_;
    std::vector<std::pair<int, dnnl::memory>> arguments_;
    std::vector<std::pair<dnnl::memory, std::int64_t>> pieces_;
    std::vector<dnnl_exec_arg_t> raw_;
};

[[noreturn]] void throw_onednn(const std::string& what, const dnnl::error& error);
/// Runs `make` and turns oneDNN's errors into RuntimeError: "WHAT can't run on this CPU (...)".
template <class F>
auto with_onednn_errors(const std::string& what, F&& make) {
    try {
        return make();
    } catch (const dnnl::error& error) { throw_onednn(what, error); }
}

}  // namespace lockstep::cpu
