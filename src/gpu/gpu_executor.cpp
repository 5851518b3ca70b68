#include "gpu/gpu_executor.hpp"

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <limits>
#include <thread>

#include "base/error.hpp"
#include "gpu/communication.hpp"
#include "gpu/cuda_check.hpp"
#include "gpu/device_sampler.hpp"
#include "gpu/executor_facts.hpp"
#include "gpu/kernel_table.hpp"
#include "gpu/nccl_communicator.hpp"
#include "gpu/sampling.hpp"
#include "gpu/step_events.hpp"
#include "gpu/wire_check.hpp"
#include "step/schedule.hpp"
#include "world/agree.hpp"
#include "world/clock_sync.hpp"

namespace lockstep::gpu {
namespace {

/// A name in the timelines of NVIDIA's profilers; costs nothing to speak of without one.
class ProfilerRange {
public:
    explicit ProfilerRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
    ~ProfilerRange() { nvtxRangePop(); }
    ProfilerRange(const ProfilerRange&) = delete;
    ProfilerRange& operator=(const ProfilerRange&) = delete;
};

std::vector<Stream> make_streams(const step::Schedule& schedule) {
    std::vector<Stream> streams;
    for (const step::ScheduledLane& lane : schedule.lanes) {
        const bool is_communication = lane.kind == step::Stream::Lane::communication;
        streams.push_back(lane.ops.empty()
                              ? Stream{}
                              : make_stream(is_communication ? StreamPriority::high : StreamPriority::normal));
    }
    return streams;
}

/// Where a step's anchor is recorded: the first stream that has ops, the compute stream by habit.
std::size_t anchor_lane(const step::Schedule& schedule) {
    for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane)
        if (!schedule.lanes[lane].ops.empty()) return lane;
    throw LogicError("a rank without ops can't run");
}

/// "op layer1.forward (33.6 MB, stream dp)"
std::string describe(const step::StepGraph& graph, const step::Op& op) {
    return fmt::format("op {} ({:.3f} MB, stream {})", op.name, op.bytes.value / 1e6, graph.stream(op.stream).name);
}

}  // namespace

void check_precision(const step::StepGraph& graph, const GpuFacts& facts) {
    const int capability = facts.compute_major * 10 + facts.compute_minor;
    const auto refuse = [&](const char* needed) {
        throw InputError(
            fmt::format("precision {} can't run on {} (compute capability {}.{}, needs {}); use --set "
                        "precision=fp16-amp or fp32",
                        to_string(graph.precision), facts.name, facts.compute_major, facts.compute_minor, needed));
    };
    if ((graph.precision == Precision::bf16 || graph.precision == Precision::tf32) && capability < 80) refuse("8.0");
    if (graph.precision == Precision::fp8 && capability < 89) refuse("8.9");
}

/// Everything that exists from prepare() on.
struct GpuExecutor::Prepared {
    const step::StepGraph& graph;
    step::Schedule schedule;
    TensorMemory memory;
    std::vector<Stream> streams;  // by lane; null without ops
    KernelTable kernels;
    std::vector<std::unique_ptr<NcclCommunicator>> communicators;  // by lane
    std::vector<std::unique_ptr<Communication>> communications;    // by position; null for kernels
    StepEvents events;
    DeviceClock clock;
    Sampling sampling;
    std::unique_ptr<world::World> control;  // for what ranks agree on between steps
    PinnedMemory losses;                    // of the steps in flight
    std::int32_t loss_position;
    Nanoseconds last_end;
    std::atomic<std::int32_t> issuing{0};       // position
    std::atomic<std::int64_t> issued_steps{0};  // those whose ops are all with the device
    DeviceSampler sampler;

    /// What a rank can do alone: a failure here reaches the others before they wait for it.
    Prepared(const step::StepGraph& g, int rank, const GpuOptions& options, const GpuFacts& facts)
        : graph(g),
          schedule(step::make_schedule(g, g.rank_class(rank).program)),
          memory(g, rank),
          streams(make_streams(schedule)),
          kernels(schedule, memory),
          events(schedule),
          clock(options.epoch),
          sampling(options.record_every, events.events_per_step(), cost_of_an_event()),
          losses(allocate_pinned(kept_losses * static_cast<std::int64_t>(sizeof(float)), "losses")),
          loss_position(g.loss.is_valid() ? step::last_writer(schedule, g.loss) : -1),
          sampler(facts.pci_bus_id, options.epoch) {
        memory.initialise(streams[anchor_lane(schedule)].get());
        check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }

    /// Collective.
    void connect(world::World& world, Seconds timeout) {
        communicators = make_communicators(graph, world, timeout);
        control = world.split(0, world.rank());
        bind_communications(world.rank());
    }

    static constexpr std::int64_t kept_losses = 3;
    float* loss(std::int64_t step) const { return reinterpret_cast<float*>(losses.get()) + step % kept_losses; }

    void bind_communications(int rank) {
        for (const step::ScheduledOp& op : schedule.ops) {
            communications.push_back(nullptr);
            if (!step::is_communication(*op.instance.op)) continue;
            NcclCommunicator* const over = communicators[static_cast<std::size_t>(op.lane)].get();
            if (over == nullptr)
                throw LogicError(
                    fmt::format("op {} is on a stream that this rank takes no part in", op.instance.op->name));
            communications.back() =
                std::make_unique<Communication>(graph, rank, *op.instance.op, memory.operands(op.instance), *over);
        }
    }

    cudaStream_t stream(std::int32_t lane) const { return streams[static_cast<std::size_t>(lane)].get(); }

    void throw_if_failed() const {
        for (const auto& communicator : communicators)
            if (communicator) communicator->throw_if_failed();
    }
    void abort() const { abort_all(communicators); }

    /// The host waits here because the graph says so; failures of peers end the wait.
    void wait_on_host(cudaEvent_t event) const {
        for (;;) {
            const cudaError_t result = cudaEventQuery(event);
            if (result == cudaSuccess) return;
            if (result != cudaErrorNotReady) check_cuda(result, "cudaEventQuery");
            throw_if_failed();
            std::this_thread::yield();
        }
    }

    void issue(std::int64_t step, std::int32_t position) {
        const step::ScheduledOp& op = schedule.ops[static_cast<std::size_t>(position)];
        const cudaStream_t on = stream(op.lane);
        const Moment moment{step, op.instance.micro_batch};
        const ProfilerRange range(op.instance.op->name);
        const bool is_host_sync = std::holds_alternative<step::HostSync>(op.instance.op->kind);
        const Nanoseconds issued = world::steady_now() - epoch();
        for (const step::Source& source : events.awaited(position, step)) {
            const cudaEvent_t done = events.done(source.position, step - source.steps_back);
            check_cuda(cudaStreamWaitEvent(on, done, 0), "cudaStreamWaitEvent");
        }
        events.begin_op(step, position, issued, on);
        if (communications[static_cast<std::size_t>(position)])
            communications[static_cast<std::size_t>(position)]->enqueue(on);
        else
            kernels.at(position)->enqueue(moment, on);
        if (position == loss_position)
            check_cuda(cudaMemcpyAsync(loss(step), memory.operand(graph.loss, moment.micro_batch).data, sizeof(float),
                                       cudaMemcpyDeviceToHost, on),
                       "cudaMemcpyAsync");
        events.end_op(step, position, on);
        if (!is_host_sync) return;
        check_cuda(cudaEventRecord(host_sync_.get(), on), "cudaEventRecord");
        wait_on_host(host_sync_.get());
    }

    void enqueue(std::int64_t step) {
        events.begin_step(step, world::steady_now() - epoch(), sampling.takes_times(step),
                          streams[anchor_lane(schedule)].get());
        for (std::size_t i = 0; i < schedule.ops.size(); ++i) {
            issuing.store(static_cast<std::int32_t>(i), std::memory_order_relaxed);
            issue(step, static_cast<std::int32_t>(i));
        }
        for (std::size_t lane = 0; lane < streams.size(); ++lane)
            if (streams[lane]) events.end_lane(step, static_cast<std::int32_t>(lane), streams[lane].get());
        issued_steps.store(step + 1, std::memory_order_release);
    }

    void wait_for(std::int64_t step) const {
        using namespace std::chrono_literals;
        while (!events.is_complete(step)) {
            throw_if_failed();
            std::this_thread::sleep_for(20us);
        }
    }

    void set_epoch(Nanoseconds epoch) { epoch_ = epoch; }
    Nanoseconds epoch() const { return epoch_; }

private:
    Nanoseconds epoch_;
    Event host_sync_ = make_event(EventUse::ordering);
};

GpuExecutor::GpuExecutor(world::World& world, GpuOptions options, GpuFacts facts)
    : world_(world), options_(options), facts_(std::move(facts)) {
    check_cuda(cudaSetDevice(options_.device), "cudaSetDevice");
}

GpuExecutor::~GpuExecutor() = default;

const GpuExecutor::Prepared& GpuExecutor::prepared() const {
    if (!prepared_) throw LogicError("the GPU executor is used before prepare()");
    return *prepared_;
}
GpuExecutor::Prepared& GpuExecutor::prepared() {
    if (!prepared_) throw LogicError("the GPU executor is used before prepare()");
    return *prepared_;
}

void GpuExecutor::prepare(const step::StepGraph& graph) {
    if (prepared_) throw LogicError("the GPU executor is prepared twice");
    check_precision(graph, facts_);
    if (graph.mesh.ranks() != world_.size())
        throw InputError(fmt::format("the step graph is for {} ranks but {} run; start as many as the plan has",
                                     graph.mesh.ranks(), world_.size()));
    world::agree(world_, [&] { prepared_ = std::make_unique<Prepared>(graph, world_.rank(), options_, facts_); });
    prepared_->connect(world_, options_.timeout);
    prepared_->set_epoch(options_.epoch);
    visible_.store(prepared_.get(), std::memory_order_release);
}

void GpuExecutor::enqueue(std::int64_t step) {
    Prepared& p = prepared();
    if (step != enqueued_)
        throw LogicError(fmt::format("step {} is enqueued where {} is next", step, enqueued_.load()));
    if (enqueued_ - collected_ >= 2) throw LogicError("a third step is enqueued while two are in flight");
    ++enqueued_;
    p.sampler.start();
    try {
        p.enqueue(step);
    } catch (...) {
        p.abort();
        throw;
    }
}

std::vector<step::StepRecord> GpuExecutor::collect() {
    Prepared& p = prepared();
    if (collected_ == enqueued_) throw LogicError("no step is in flight to be collected");
    const std::int64_t step = collected_;
    step::StepRecord record;
    record.step = step;
    record.rank = world_.rank();
    try {
        p.wait_for(step);
        p.events.resolve(step, p.clock, record);
    } catch (...) {
        p.abort();
        throw;
    }
    record.loss = p.loss_position >= 0 ? *p.loss(step) : std::numeric_limits<double>::quiet_NaN();
    record.device = p.sampler.latest(record.begin);
    p.sampling.step_took(step, (record.end - (step == 0 ? record.begin : p.last_end)).seconds(), *p.control);
    p.last_end = record.end;
    ++collected_;
    return {std::move(record)};
}

step::ExecutorInfo GpuExecutor::info() const {
    step::ExecutorInfo info{"gpu", facts_.name, library_versions()};
    if (!prepared_) return info;
    const Prepared& p = *prepared_;
    info.facts = nccl_facts(p.communicators);
    info.facts.merge(sampling_facts(p.sampling, p.events.events_per_step()));
    info.facts["device_samples"] = p.sampler.description();
    info.facts["library_algorithms"] = algorithms_text(p.kernels.algorithms());
    info.span_cost = p.sampling.cost_of_a_step();
    info.samples_device = p.sampler.has_device();
    return info;
}

step::MemoryUse GpuExecutor::memory() const {
    const Prepared& p = prepared();
    step::MemoryUse use = p.memory.plan().peak;
    const Bytes workspaces{static_cast<double>(p.kernels.workspace_bytes())};
    use.workspace += workspaces;
    use.total = Bytes{static_cast<double>(p.memory.plan().arena_bytes)} + workspaces;
    return use;
}

std::vector<float> GpuExecutor::read(step::TensorId tensor) {
    const Prepared& p = prepared();
    if (collected_ != enqueued_) throw LogicError("a tensor is read while a step is in flight");
    return p.memory.read(tensor);
}

void GpuExecutor::check_wire() {
    const Prepared& p = prepared();
    if (collected_ != enqueued_) throw LogicError("the wire is checked while a step is in flight");
    for (const auto& communicator : p.communicators)
        if (communicator) gpu::check_wire(*communicator);
}

std::string GpuExecutor::where() const {
    const Prepared* p = visible_.load(std::memory_order_acquire);
    if (p == nullptr) return fmt::format("preparing on GPU {} {}", facts_.ordinal, facts_.name);
    const std::int64_t step = collected_, last = enqueued_;
    const std::string on = fmt::format("GPU {} {}", facts_.ordinal, facts_.name);
    if (step == last) return fmt::format("idle after step {} on {}", last - 1, on);
    if (step >= p->issued_steps.load(std::memory_order_acquire)) {
        const auto at = static_cast<std::size_t>(p->issuing.load(std::memory_order_relaxed));
        return fmt::format("step {}, issuing {} on {}", step, describe(p->graph, *p->schedule.ops[at].instance.op), on);
    }
    std::string text;
    for (std::size_t lane = 0; lane < p->schedule.lanes.size(); ++lane) {
        const std::int32_t at = p->events.unfinished(step, static_cast<std::int32_t>(lane));
        if (at < 0) continue;
        text += fmt::format("{}step {}, {}", text.empty() ? "" : "; ", step,
                            describe(p->graph, *p->schedule.ops[static_cast<std::size_t>(at)].instance.op));
    }
    if (text.empty()) text = fmt::format("step {}, complete", step);
    return text + " on " + on;
}

void GpuExecutor::abort() {
    if (prepared_) prepared_->abort();
}

}  // namespace lockstep::gpu
