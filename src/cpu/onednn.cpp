#include "cpu/onednn.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cpu/isa.hpp"

namespace lockstep::cpu {

using dnnl::memory;

memory::data_type data_type(DType dtype) {
    switch (dtype) {
        case DType::fp32: return memory::data_type::f32;
        case DType::bf16: return memory::data_type::bf16;
        case DType::int32: return memory::data_type::s32;
        case DType::uint8: return memory::data_type::u8;
        default: throw LogicError(fmt::format("oneDNN has no elements of type {} on CPUs", to_string(dtype)));
    }
}

memory::desc activation_desc(const Operand& operand, const memory::dims& dims) {
    const auto type = data_type(operand.dtype);
    switch (operand.order) {
        case Order::row_major: return {dims, type, memory::format_tag::abcd};
        case Order::channels_last: return {dims, type, memory::format_tag::acdb};
        case Order::blocked8: return {dims, type, memory::format_tag::aBcd8b};
        case Order::packed: break;
    }
    throw LogicError("an activation can't be packed");
}

memory::desc plain_desc(DType dtype, const memory::dims& dims) {
    const auto tag = dims.size() == 5 ? memory::format_tag::abcde : memory::format_tag::abcd;
    return {dims, data_type(dtype), tag};
}

dnnl::primitive_attr user_scratchpad() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

void Prepared::collect_arguments() {
    raw_.clear();
    for (const auto& [slot, operand] : arguments_) raw_.push_back({slot, operand.get()});
}

void Prepared::bind_scratch(std::byte* scratch) {
    for (auto& [piece, offset] : pieces_) piece.set_data_handle(scratch + offset);
}

void Prepared::run(const dnnl::stream& stream) const {
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(raw_.size()), raw_.data());
    if (status != dnnl_success)
        throw RuntimeError(fmt::format("a oneDNN primitive failed (status {})", static_cast<int>(status)));
}

void throw_onednn(const std::string& what, const dnnl::error& error) {
    const std::string reason =
        error.status == dnnl_unimplemented
            ? fmt::format("oneDNN {} has no implementation for {}", library_version(), isa_name())
            : fmt::format("oneDNN: {}", error.what());
    throw RuntimeError(fmt::format("{} can't run on this CPU ({}); try --set precision=fp32", what, reason));
}

}  // namespace lockstep::cpu
