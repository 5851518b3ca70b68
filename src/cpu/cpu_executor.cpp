#include "cpu/cpu_executor.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/error.hpp"
#include "cpu/communication_thread.hpp"
#include "cpu/compute_thread.hpp"
#include "cpu/isa.hpp"
#include "cpu/wire_check.hpp"

namespace lockstep::cpu {
namespace {

using Worlds = std::vector<std::unique_ptr<world::World>>;

/// One world per communication stream that this rank takes part in, so that streams never wait for one another.
/// Collective.
Worlds split_worlds(const step::StepGraph& graph, world::World& world) {
    Worlds worlds;
    for (const step::Stream& stream : graph.streams) {
        worlds.push_back(nullptr);
        if (stream.lane != step::Stream::Lane::communication) continue;
        const step::Communicator& communicator = graph.communicators[stream.communicator.index()];
        const std::vector<int> members = step::members(graph.mesh, communicator, world.rank());
        // A rank that is in no group is the first of none either, so that its own number is a colour of its own.
        const int colour = members.empty() ? world.rank() : members.front();
        std::unique_ptr<world::World> part = world.split(colour, world.rank());
        if (!members.empty()) worlds.back() = std::move(part);
    }
    return worlds;
}

ComputeSettings settings_of(const step::StepGraph& graph, const step::Schedule& schedule, const TensorMemory& memory,
                            int threads) {
    ComputeSettings settings{threads, graph.seed, -1, nullptr};
    if (!graph.loss.is_valid()) return settings;
    settings.loss_position = step::last_writer(schedule, graph.loss);
    if (settings.loss_position >= 0) settings.loss = reinterpret_cast<const float*>(memory.address(graph.loss, 0));
    return settings;
}

}  // namespace

void check_precision(const step::StepGraph& graph) {
    const std::string runs = has_native_bf16() ? "fp32 and bf16" : "fp32";
    const bool is_bf16 = graph.precision == Precision::bf16;
    if (graph.precision != Precision::fp32 && !(is_bf16 && has_native_bf16()))
        throw InputError(fmt::format("precision {} can't run on this CPU ({} runs {}); use --set precision=fp32",
                                     to_string(graph.precision), isa_name(), runs));
    for (const step::Tensor& tensor : graph.tensors) {
        const bool is_known = tensor.dtype == DType::fp32 || tensor.dtype == DType::bf16 ||
                              tensor.dtype == DType::int32 || tensor.dtype == DType::uint8;
        if (!is_known)
            throw InputError(
                fmt::format("tensor {} of type {} can't live on a CPU (it computes in {}); choose a framework "
                            "profile and --set precision=fp32 without that type",
                            tensor.name, to_string(tensor.dtype), runs));
    }
}

/// Everything that exists from prepare() on. Members are destroyed in reverse order: threads first.
struct CpuExecutor::Prepared {
    const step::StepGraph& graph;
    Worlds worlds;
    TensorMemory memory;
    RunState state;
    bool has_loss;  ///< an op of this rank writes it
    ComputeThread compute;
    CommunicationThread communication;

    Prepared(const step::StepGraph& g, world::World& world, const CpuOptions& options)
        : graph(g),
          worlds(split_worlds(g, world)),
          memory(g, world.rank()),
          state(step::make_schedule(g, g.rank_class(world.rank()).program), options.epoch),
          has_loss(settings_of(g, state.schedule(), memory, options.threads).loss != nullptr),
          compute(state, memory, settings_of(g, state.schedule(), memory, options.threads)),
          communication(state, g, world.rank(), memory, worlds) {}
};

CpuExecutor::CpuExecutor(world::World& world, CpuOptions options) : world_(world), options_(std::move(options)) {
    if (options_.threads < 1) throw LogicError(fmt::format("a rank with {} threads", options_.threads));
}
CpuExecutor::~CpuExecutor() = default;

const CpuExecutor::Prepared& CpuExecutor::prepared() const {
    if (!prepared_) throw LogicError("the CPU executor is used before prepare()");
    return *prepared_;
}

void CpuExecutor::prepare(const step::StepGraph& graph) {
    if (prepared_) throw LogicError("the CPU executor is prepared twice");
    check_precision(graph);
    if (graph.mesh.ranks() != world_.size())
        throw InputError(fmt::format("the step graph is for {} ranks but {} run; start as many as the plan has",
                                     graph.mesh.ranks(), world_.size()));
    prepared_ = std::make_unique<Prepared>(graph, world_, options_);
    visible_.store(prepared_.get(), std::memory_order_release);
}

void CpuExecutor::enqueue(std::int64_t step) {
    prepared();
    if (step != enqueued_) throw LogicError(fmt::format("step {} is enqueued where {} is next", step, enqueued_));
    if (enqueued_ - collected_ >= 2) throw LogicError("a third step is enqueued while two are in flight");
    prepared_->state.enqueue(step);
    ++enqueued_;
}

std::vector<step::StepRecord> CpuExecutor::collect() {
    prepared();
    if (collected_ == enqueued_) throw LogicError("no step is in flight to be collected");
    step::StepRecord record = prepared_->state.collect(collected_);
    record.rank = world_.rank();
    if (!prepared_->has_loss) record.loss = std::numeric_limits<double>::quiet_NaN();
    ++collected_;
    return {std::move(record)};
}

step::ExecutorInfo CpuExecutor::info() const {
    const char* plural = options_.threads == 1 ? "" : "s";
    return {"cpu",
            fmt::format("{}, {} thread{}", options_.cpu_model.empty() ? "CPU" : options_.cpu_model, options_.threads,
                        plural),
            fmt::format("oneDNN {}, {}", library_version(), isa_name())};
}

step::MemoryUse CpuExecutor::memory() const {
    const Prepared& p = prepared();
    step::MemoryUse use = p.memory.plan().peak;
    const Bytes scratch{static_cast<double>(p.compute.scratch_bytes())};
    use.workspace += scratch;
    use.total = Bytes{static_cast<double>(p.memory.arena_bytes())} + scratch;
    return use;
}

std::vector<float> CpuExecutor::read(step::TensorId tensor) {
    const Prepared& p = prepared();
    if (collected_ != enqueued_) throw LogicError("a tensor is read while a step is in flight");
    return p.memory.read(tensor);
}

void CpuExecutor::check_wire() {
    const Prepared& p = prepared();
    if (collected_ != enqueued_) throw LogicError("the wire is checked while a step is in flight");
    for (std::size_t i = 0; i < p.worlds.size(); ++i)
        if (p.worlds[i]) cpu::check_wire(*p.worlds[i], p.graph.streams[i].name);
}

std::string CpuExecutor::where() const {
    const Prepared* p = visible_.load(std::memory_order_acquire);
    return p != nullptr ? p->state.where() : "preparing";
}

}  // namespace lockstep::cpu
