// Pooling beside the CPU's.
#include "gpu/parity.hpp"

namespace lockstep::gpu::testing {
namespace {

using Kind = model::Pool::Kind;
using step::Layout;
using step::Pass;
using step::Pool;

/// n, channels, height, width, kernel, stride, padding
const Pool shapes[] = {
    {Kind::max, 2, 8, 8, 8, 2, 2, 0},   // halves
    {Kind::max, 2, 5, 9, 7, 3, 2, 1},   // overlaps, padded: as ResNet begins
    {Kind::max, 1, 16, 7, 7, 7, 7, 0},  // one pixel is left
    {Kind::max, 1, 3, 10, 6, 2, 3, 0},  // pixels that no window holds
    {Kind::max, 3, 4, 5, 5, 3, 1, 1},   // every window overlaps all around
    {Kind::max, 1, 3, 6, 6, 3, 2, 0},   // the last column is left out
};

Slot image(const Pool& p, Values values, DType dtype, Layout layout) {
    return slot({p.n, p.channels, p.height, p.width}, std::move(values), dtype, layout);
}
Slot pooled(const Pool& p, Values values, DType dtype, Layout layout) {
    return slot({p.n, p.channels, p.out_height(), p.out_width()}, std::move(values), dtype, layout);
}

Case forward(Pool p, Kind kind, DType dtype, Layout layout) {
    p.kind = kind;
    p.pass = Pass::forward;
    Case c;
    c.op = p;
    c.in = {image(p, normal_values(p.n * p.channels * p.height * p.width, 1), dtype, layout)};
    c.out = {pooled(p, {}, dtype, layout)};
    if (kind == Kind::max) c.out.push_back(pooled(p, {}, DType::int32, layout));
    return c;
}
Case backward(Pool p, Kind kind, DType dtype, Layout layout) {
    p.kind = kind;
    const Results kept = run_on_cpu(forward(p, kind, dtype, layout));
    p.pass = Pass::backward_data;
    Case c;
    c.op = p;
    c.in = {pooled(p, normal_values(p.n * p.channels * p.out_height() * p.out_width(), 2), dtype, layout)};
    if (kind == Kind::max) c.in.push_back(pooled(p, kept[0][1], DType::int32, layout));
    c.out = {image(p, {}, dtype, layout)};
    c.tolerance = 4;
    return c;
}

TEST(GpuPool, takes_the_largest_or_the_mean_of_each_window) {
    for (const Pool& p : shapes)
        for (const Kind kind : {Kind::max, Kind::average})
            for (const DType dtype : float_types)
                for (const Layout layout : {Layout::channels_last, Layout::row_major})
                    expect_parity(forward(p, kind, dtype, layout));
}

TEST(GpuPool, sends_gradients_back_to_the_places_they_came_from) {
    for (const Pool& p : shapes)
        for (const Kind kind : {Kind::max, Kind::average})
            for (const DType dtype : float_types)
                for (const Layout layout : {Layout::channels_last, Layout::row_major})
                    expect_parity(backward(p, kind, dtype, layout));
}

TEST(GpuPool, keeps_the_first_of_equal_elements) {
    Case c = forward(shapes[1], Kind::max, DType::fp32, Layout::channels_last);
    for (float& value : c.in[0].values) value = std::round(value);  // many are equal
    expect_parity(c);
}

TEST(GpuPool, keeps_no_places_where_nobody_wants_them) {
    Case c = forward(shapes[1], Kind::max, DType::bf16, Layout::channels_last);
    c.out.pop_back();
    expect_parity(c);
}

}  // namespace
}  // namespace lockstep::gpu::testing
