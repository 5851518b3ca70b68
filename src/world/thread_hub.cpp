#include "world/thread_hub.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/error.hpp"

namespace lockstep::world {

std::string CollectiveCall::describe() const {
    static constexpr const char* names[] = {"barrier",    "broadcast",      "gather",    "all_gather",
                                            "all_reduce", "reduce_scatter", "all_to_all"};
    return fmt::format("{} of {} bytes (root {}, type {}, op {})", names[static_cast<int>(kind)], bytes, root,
                       static_cast<int>(type), static_cast<int>(op));
}

Hub::Hub(std::shared_ptr<Program> program, std::vector<int> members)
    : program_(std::move(program)), members_(std::move(members)), calls_(members_.size()) {}

Hub::Collective& Hub::open_collective(std::uint64_t sequence, const CollectiveCall& call) {
    const auto [found, is_new] = collectives_.try_emplace(sequence);
    Collective& collective = found->second;
    if (!is_new) return collective;
    collective.call = call;
    collective.buffers = std::make_shared<CollectiveBuffers>();
    collective.buffers->in.resize(members_.size());
    collective.buffers->out.resize(members_.size());
    collective.operation = std::make_shared<Operation>();
    collective.operation->name = call.describe();
    collective.operation->missing = members_;
    collective.operation->move = [call, buffers = collective.buffers] { move_collective(call, *buffers); };
    return collective;
}

std::unique_ptr<Request> Hub::join(int rank, const CollectiveCall& call, std::span<const std::byte> in,
                                   std::span<std::byte> out) {
    std::unique_lock lock(program_->mutex);
    program_->throw_if_failed(members_[rank]);
    const std::uint64_t sequence = calls_[rank]++;
    Collective& collective = open_collective(sequence, call);
    if (collective.call != call)
        throw LogicError(fmt::format("rank {} calls {} where another rank calls {}", rank, call.describe(),
                                     collective.call.describe()));
    collective.buffers->in[rank] = in;
    collective.buffers->out[rank] = out;
    auto operation = collective.operation;
    operation->arrive(members_[rank]);
    if (operation->state == Operation::State::ready) {
        collectives_.erase(sequence);
        program_->changed.notify_all();
    }
    return std::make_unique<ThreadRequest>(program_, members_[rank], std::vector{std::move(operation)});
}

void Hub::connect(const Message& message, int rank) {
    if (message.source.size() != message.target.size()) {
        const auto why = fmt::format("{}: {} bytes are sent but {} expected", message.operation->name,
                                     message.source.size(), message.target.size());
        program_->fail(why);  // parts of this exchange posted before are without a request from now on
        throw LogicError(why);
    }
    message.operation->move = [source = message.source, target = message.target] {
        if (!source.empty()) std::memmove(target.data(), source.data(), source.size());
    };
    message.operation->arrive(rank);
}

std::shared_ptr<Operation> Hub::post_send(int rank, const Send& send) {
    Mailbox& box = mailboxes_[{rank, send.to, send.tag}];
    if (!box.receives.empty()) {
        Message message = box.receives.front();
        message.source = send.data;
        connect(message, members_[rank]);
        box.receives.pop_front();
        return message.operation;
    }
    auto operation = std::make_shared<Operation>();
    operation->name = fmt::format("the message from rank {} to rank {} with tag {}", rank, send.to, send.tag);
    operation->missing = {members_[send.to]};
    box.sends.push_back({send.data, {}, operation});
    return operation;
}

std::shared_ptr<Operation> Hub::post_receive(int rank, const Receive& receive) {
    Mailbox& box = mailboxes_[{receive.from, rank, receive.tag}];
    if (!box.sends.empty()) {
        Message message = box.sends.front();
        message.target = receive.data;
        connect(message, members_[rank]);
        box.sends.pop_front();
        return message.operation;
    }
    auto operation = std::make_shared<Operation>();
    operation->name = fmt::format("the message from rank {} to rank {} with tag {}", receive.from, rank, receive.tag);
    operation->missing = {members_[receive.from]};
    box.receives.push_back({{}, receive.data, operation});
    return operation;
}

std::unique_ptr<Request> Hub::post(int rank, std::span<const Send> sends, std::span<const Receive> receives) {
    std::unique_lock lock(program_->mutex);
    program_->throw_if_failed(members_[rank]);
    std::vector<std::shared_ptr<Operation>> operations;
    operations.reserve(sends.size() + receives.size());
    for (const auto& receive : receives) operations.push_back(post_receive(rank, receive));
    for (const auto& send : sends) operations.push_back(post_send(rank, send));
    program_->changed.notify_all();
    return std::make_unique<ThreadRequest>(program_, members_[rank], std::move(operations));
}

std::shared_ptr<Hub> Hub::child(int rank, int colour, const std::vector<int>& members) {
    std::unique_lock lock(program_->mutex);
    const auto key = std::pair{calls_[rank], colour};
    Child& child = children_[key];
    if (!child.hub) {
        std::vector<int> ids;
        for (const int member : members) ids.push_back(members_[member]);
        child.hub = std::make_shared<Hub>(program_, std::move(ids));
    }
    auto hub = child.hub;
    if (++child.taken == members.size()) children_.erase(key);
    return hub;
}

}  // namespace lockstep::world
