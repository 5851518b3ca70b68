#include "gpu_double/dnn/state.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::gpu_double {
namespace {

thread_local std::string last_error;

template <class Table>
void count(std::vector<std::string>& lines, const Table& table, const char* what) {
    if (const std::size_t left = table.all().size(); left > 0)
        lines.push_back(fmt::format("{} {} of cuDNN were not destroyed", left, what));
}

std::vector<std::string> leaks() {
    std::vector<std::string> lines;
    count(lines, dnn().handles, "handles");
    count(lines, dnn().images, "tensor descriptors");
    return lines;
}

}  // namespace

DnnState& dnn() {
    static DnnState& state = *[] {
        add_leak_check(leaks);
        return new DnnState;
    }();
    return state;
}

std::optional<Element> element_of(cudnnDataType_t type) {
    if (type == CUDNN_DATA_FLOAT) return Element::fp32;
    if (type == CUDNN_DATA_HALF) return Element::fp16;
    if (type == CUDNN_DATA_BFLOAT16) return Element::bf16;
    return std::nullopt;
}

cudnnStatus_t dnn_error(cudnnStatus_t status, const std::string& text) {
    last_error = text;
    return status;
}

cudnnStatus_t dnn_misuse(const std::string& text) {
    report_misuse(text);
    return dnn_error(CUDNN_STATUS_BAD_PARAM, text);
}

}  // namespace lockstep::gpu_double

extern "C" void cudnnGetLastErrorString(char* message, std::size_t most) {
    if (most == 0) return;
    const std::size_t length = std::min(most - 1, lockstep::gpu_double::last_error.size());
    std::copy_n(lockstep::gpu_double::last_error.data(), length, message);
    message[length] = '\0';
}
