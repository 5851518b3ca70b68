#include "step/op.hpp"

namespace lockstep::step {

std::string_view to_string(Phase phase) {
    switch (phase) {
        case Phase::input: return "input";
        case Phase::forward: return "forward";
        case Phase::backward: return "backward";
        case Phase::gradient_sync: return "gradient_sync";
        case Phase::optimizer: return "optimizer";
    }
    return "?";
}

namespace {

struct ComputeName {
    std::string_view operator()(const Gemm&) const { return "gemm"; }
    std::string_view operator()(const Convolution&) const { return "convolution"; }
    std::string_view operator()(const Attention&) const { return "attention"; }
    std::string_view operator()(const Norm&) const { return "norm"; }
    std::string_view operator()(const Elementwise&) const { return "elementwise"; }
    std::string_view operator()(const ColumnSum&) const { return "column_sum"; }
    std::string_view operator()(const PositionSum&) const { return "position_sum"; }
    std::string_view operator()(const Embedding&) const { return "embedding"; }
    std::string_view operator()(const FirstToken&) const { return "first_token"; }
    std::string_view operator()(const SoftmaxLoss&) const { return "softmax_loss"; }
    std::string_view operator()(const Pool&) const { return "pool"; }
    std::string_view operator()(const Dropout&) const { return "dropout"; }
    std::string_view operator()(const OptimizerUpdate&) const { return "optimizer_update"; }
    std::string_view operator()(const Reorder&) const { return "reorder"; }
    std::string_view operator()(const Cast&) const { return "cast"; }
    std::string_view operator()(const Fill&) const { return "fill"; }
    std::string_view operator()(const FoundInf&) const { return "found_inf"; }
    std::string_view operator()(const BlockTranspose&) const { return "block_transpose"; }
    std::string_view operator()(const Slice&) const { return "slice"; }
    std::string_view operator()(const UpdateLossScale&) const { return "update_loss_scale"; }
    std::string_view operator()(const Route&) const { return "route"; }
    std::string_view operator()(const Dispatch&) const { return "dispatch"; }
    std::string_view operator()(const Combine&) const { return "combine"; }
};

std::string_view name_of(Copy::Kind kind) {
    switch (kind) {
        case Copy::Kind::bucket_in: return "bucket_in";
        case Copy::Kind::bucket_out: return "bucket_out";
        case Copy::Kind::input: return "input";
        case Copy::Kind::host_to_device: return "host_to_device";
        case Copy::Kind::device_to_host: return "device_to_host";
    }
    return "?";
}

struct KindName {
    std::string_view operator()(const Compute& compute) const { return std::visit(ComputeName{}, compute); }
    std::string_view operator()(const Collective& collective) const { return to_string(collective.kind); }
    std::string_view operator()(const P2PGroup&) const { return "p2p"; }
    std::string_view operator()(const Copy& copy) const { return name_of(copy.kind); }
    std::string_view operator()(const HostSync&) const { return "host_sync"; }
    std::string_view operator()(const StreamWait&) const { return "stream_wait"; }
};

}  // namespace

std::string_view kind_name(const Op& op) { return std::visit(KindName{}, op.kind); }

bool is_communication(const Op& op) {
    return std::holds_alternative<Collective>(op.kind) || std::holds_alternative<P2PGroup>(op.kind);
}

bool is_compute(const Op& op) { return std::holds_alternative<Compute>(op.kind); }

}  // namespace lockstep::step
