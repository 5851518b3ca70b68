// What no plan of a shape can beat, in closed form: time and memory floors that discard plans unsimulated.
#pragma once

#include "plan/plan.hpp"
#include "search/subject.hpp"

namespace lockstep::search {

/// Floors of a subject's plans. A stage of a pipeline has its share of blocks or more, so that the means over ranks
/// stand for the stage that has most.
class Bounds {
public:
    /// Throws InputError when the device has no peak for the precision's products.
    explicit Bounds(const Subject& subject);

    /// Flops of the products (causal attention's half; the forward pass once more with full recomputation) over the
    /// ranks' peaks at the calibrated efficiency, times 1 + (pp - 1) / (passes vpp): the pipeline's bubble (Narayanan
    /// et al. 2021).
    Seconds time(const plan::Plan& plan) const;

    /// Parameters, gradients, optimizer states and master weights over the ranks that split and, by ZeRO's stage,
    /// share them (Rajbhandari et al. 2020).
    Bytes memory(const plan::Plan& plan) const;

private:
    Flops forward_per_sample_;
    FlopRate reached_;
    double parameters_ = 0;
    bool has_experts_ = false;
    Bytes weight_, gradient_, state_;  ///< of a parameter
};

}  // namespace lockstep::search
