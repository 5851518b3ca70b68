#include "gpu_double/nccl/communicator.hpp"

#include <chrono>
#include <mutex>
#include <thread>

#include "gpu_double/handle_table.hpp"
#include "gpu_double/nccl/misuse.hpp"
#include "gpu_double/runtime/stream_work.hpp"

namespace lockstep::nccl_double {
namespace {

using Table = gpu_double::HandleTable<ncclComm_t, Communicator>;

std::vector<std::string> leaks();

Table& table() {
    static Table& all = *[] {
        gpu_double::add_leak_check(leaks);
        return new Table(0xcc);
    }();
    return all;
}

std::vector<std::string> leaks() {
    std::vector<std::string> lines;
    for (const auto& one : table().all()) lines.push_back(one->describe() + " was neither destroyed nor aborted");
    return lines;
}

struct LastError {
    std::mutex mutex;
    std::string text;
};
LastError& process_error() {
    static LastError& error = *new LastError;
    return error;
}

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace

std::string Communicator::describe() const { return fmt::format("NCCL communicator, rank {} of {}", rank, ranks); }

ncclResult_t Communicator::poll() {
    if (hangs || engine == nullptr) return ncclInProgress;
    // Who has come once has come, whatever it did then.
    if (stage == Stage::starting && engine->rendezvous.have_all_come()) return start();
    if (stage != Stage::finalized) engine->look_for_peers();
    if (engine->failure() != ncclSuccess) return engine->failure();
    switch (stage) {
        case Stage::starting: return ncclInProgress;
        case Stage::ready: return post();
        case Stage::finalizing:
            if (!engine->is_idle() || !engine->rendezvous.all_are(Presence::finalized)) return ncclInProgress;
            stage = Stage::finalized;
            return ncclSuccess;
        case Stage::finalized: break;
    }
    return ncclSuccess;
}

ncclResult_t Communicator::poll_to_the_end() {
    for (;;) {
        const ncclResult_t state = poll();
        if (state != ncclInProgress) return state;
        pause();
    }
}

ncclResult_t Communicator::start() {
    if (const int other = engine->rendezvous.same_device(); other >= 0) {
        engine->fail(
            ncclInvalidUsage,
            fmt::format("Duplicate GPU detected : rank {} and rank {} both on CUDA device {}", rank, other, ordinal));
        return engine->failure();
    }
    stage = Stage::ready;
    return ncclSuccess;
}

ncclResult_t Communicator::post() {
    if (pending.empty()) return ncclSuccess;
    if (!was_asked && !is_blocking) {
        was_asked = true;
        return ncclInProgress;
    }
    for (Pending& work : pending)
        gpu_double::enqueue(work.stream, [engine = engine, launch = std::move(work.launch)] { engine->run(launch); });
    pending.clear();
    return ncclSuccess;
}

void Communicator::add(Pending work) {
    work.launch.number = engine->issued++;
    pending.push_back(std::move(work));
    was_asked = false;
}

void Communicator::begin_to_finalize() {
    stage = Stage::finalizing;
    engine->rendezvous.announce(Presence::finalized);
}

ncclComm_t add_communicator(std::shared_ptr<Communicator> communicator) { return table().add(std::move(communicator)); }

void release_communicator(ncclComm_t handle) {
    if (const auto communicator = table().find(handle); communicator && communicator->engine)
        communicator->engine->release();
}

void remove_communicator(ncclComm_t handle, Leave how) {
    const auto communicator = table().remove(handle);
    if (!communicator || !communicator->engine) return;
    const auto& engine = communicator->engine;
    engine->release();
    while (engine->running() > 0) pause();
    engine->rendezvous.announce(how == Leave::destroyed ? Presence::destroyed : Presence::aborted);
}

void expect_device_to_come_free(ncclComm_t handle) {
    const auto mine = table().find(handle);
    constexpr int patience = 2000;  // ms
    for (int waited = 0; mine; ++waited) {
        std::shared_ptr<Communicator> busy;
        for (const auto& other : table().all())
            if (other != mine && other->device == mine->device && other->engine && !other->engine->is_idle() &&
                !other->engine->is_released())
                busy = other;
        if (!busy) return;
        if (waited == patience)
            return gpu_double::report_misuse(
                fmt::format("NCCL: ncclCommAbort of one communicator ({}) while the kernel of another ({}) stays on "
                            "device {}: abort both in one group",
                            mine->describe(), busy->describe(), mine->device));
        pause();
    }
}

Call::Call(ncclComm_t handle, const char* function) : communicator_(table().find(handle)) {
    if (!communicator_) misuse("{} with a communicator that does not exist, or no longer", function);
    if (communicator_->is_in_call.exchange(true))
        misuse("{} while another thread is in a call with the same communicator ({})", function,
               communicator_->describe());
}

void set_last_error(const std::string& text) {
    const std::lock_guard lock(process_error().mutex);
    process_error().text = text;
}

ncclResult_t refuse(ncclResult_t result, const std::string& text) {
    set_last_error(text);
    return result;
}

const char* last_error(ncclComm_t handle) {
    static thread_local std::string text;
    const auto communicator = handle != nullptr ? table().find(handle) : nullptr;
    if (communicator && communicator->engine && communicator->engine->failure() != ncclSuccess) {
        text = communicator->engine->last_error();
    } else {
        const std::lock_guard lock(process_error().mutex);
        text = process_error().text;
    }
    return text.c_str();
}

}  // namespace lockstep::nccl_double
