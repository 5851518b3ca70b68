#include "world/thread_operation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace lockstep::world {

void Program::fail(const std::string& why) {
    if (!failure) failure = why;
    changed.notify_all();
}

void Program::throw_if_failed(int rank) {
    if (!failure) return;
    told[rank] = true;
    throw RuntimeError(fmt::format("rank {} can't go on ({})", rank, *failure));
}

void Operation::arrive(int rank) {
    std::erase(missing, rank);
    if (missing.empty()) state = State::ready;
}

ThreadRequest::ThreadRequest(std::shared_ptr<Program> program, int rank,
                             std::vector<std::shared_ptr<Operation>> operations)
    : program_(std::move(program)), rank_(rank), operations_(std::move(operations)) {}

ThreadRequest::~ThreadRequest() {
    std::unique_lock lock(program_->mutex);
    if (is_done()) return;
    program_->fail(fmt::format("rank {} gave up an operation in flight", rank_));
    const auto is_running = [](const auto& o) { return o->state == Operation::State::running; };
    program_->changed.wait(lock, [&] { return std::none_of(operations_.begin(), operations_.end(), is_running); });
}

bool ThreadRequest::is_done() const {
    return std::all_of(operations_.begin(), operations_.end(),
                       [](const auto& o) { return o->state == Operation::State::done; });
}

bool ThreadRequest::run_one_ready(std::unique_lock<std::mutex>& lock) {
    const auto ready = std::find_if(operations_.begin(), operations_.end(),
                                    [](const auto& o) { return o->state == Operation::State::ready; });
    if (ready == operations_.end()) return false;
    Operation& operation = **ready;
    operation.state = Operation::State::running;
    lock.unlock();
    operation.move();
    lock.lock();
    operation.state = Operation::State::done;
    program_->changed.notify_all();
    return true;
}

void ThreadRequest::throw_if_stuck() {
    for (const auto& operation : operations_)
        for (const int rank : operation->missing)
            if (program_->ended[rank])
                program_->fail(fmt::format("rank {} ended without its part in {}", rank, operation->name));
    program_->throw_if_failed(rank_);
}

bool ThreadRequest::test() {
    std::unique_lock lock(program_->mutex);
    while (!is_done()) {
        throw_if_stuck();
        if (!run_one_ready(lock)) return false;
    }
    return true;
}

void ThreadRequest::wait() {
    std::unique_lock lock(program_->mutex);
    while (!is_done()) {
        throw_if_stuck();
        if (!run_one_ready(lock)) program_->changed.wait(lock);
    }
}

}  // namespace lockstep::world
