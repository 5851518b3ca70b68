#include "drive/memory_fit.hpp"

#include <fmt/format.h>

namespace lockstep::drive {

std::int64_t largest_micro_batch(const MemoryOfMicroBatch& memory, Bytes capacity, std::int64_t most) {
    auto fits = [&](std::int64_t micro_batch) { return memory(micro_batch).total <= capacity; };
    if (!fits(1)) return 0;
    std::int64_t good = 1;
    while (good < most && fits(2 * good)) good *= 2;
    std::int64_t bad = 2 * good;
    while (bad - good > 1) {
        const std::int64_t middle = good + (bad - good) / 2;
        (fits(middle) ? good : bad) = middle;
    }
    return good;
}

std::string why_too_large(const step::MemoryUse& use, Bytes capacity, const std::string& device,
                          const MemoryOfMicroBatch& memory) {
    if (capacity.value <= 0 || use.total <= capacity) return "";
    constexpr double gib = 1073741824;
    auto in_gib = [](Bytes bytes) { return fmt::format("{:.1f}", bytes.value / gib); };
    std::string text = fmt::format(
        "does not fit: needs {} GiB a rank (parameters {}, gradients {}, optimizer {}, activations {}, workspace {}), "
        "{} "
        "has {} GiB; ",
        in_gib(use.total), in_gib(use.parameters), in_gib(use.gradients), in_gib(use.optimizer),
        in_gib(use.activations), in_gib(use.workspace), device, in_gib(capacity));
    if (!memory) return text + "use fewer bytes";
    const std::int64_t largest = largest_micro_batch(memory, capacity);
    if (largest > 0) return text + fmt::format("the largest micro-batch that fits is {}", largest);
    return text +
           "not even a micro-batch of 1 fits: split the model further (plan.tp, plan.pp, plan.zero) or use "
           "plan.recompute=full";
}

}  // namespace lockstep::drive
