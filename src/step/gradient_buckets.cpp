#include "step/gradient_buckets.hpp"

#include <fmt/format.h>

#include "step/assembly.hpp"

namespace lockstep::step {

std::vector<std::vector<std::size_t>> assign_buckets(const std::vector<Bytes>& sizes, Bytes first, Bytes limit) {
    std::vector<std::vector<std::size_t>> buckets;
    Bytes filled;
    bool is_open = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (!is_open) buckets.emplace_back();
        buckets.back().push_back(i);
        filled += sizes[i];
        is_open = filled < (buckets.size() == 1 ? first : limit);
        if (!is_open) filled = Bytes{};
    }
    return buckets;
}

namespace {

DType gradient_dtype(const Assembly& a) { return a.input.precision == Precision::bf16 ? DType::bf16 : DType::fp32; }
DType wire_dtype(const Assembly& a) { return a.input.framework.wire_dtype.value_or(gradient_dtype(a)); }
bool is_view(const Assembly& a) { return a.input.framework.bucket_storage == plan::BucketStorage::view; }
/// Gradients that live in the bucket and travel as they are need no copies.
bool has_copies(const Assembly& a) { return !is_view(a) || wire_dtype(a) != gradient_dtype(a); }

/// Frameworks keep their buckets from step to step.
TensorId add_flat(Assembly& a, std::string name, std::int64_t elements, DType dtype, Role role) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = {elements};
    tensor.dtype = dtype;
    tensor.role = role;
    tensor.lifetime = Lifetime::carried;
    return a.graph.add(std::move(tensor));
}

void make_storage(Assembly& a, GradientBucket& bucket, std::size_t index) {
    if (is_view(a))
        bucket.gradients =
            add_flat(a, fmt::format("bucket{}.gradients", index), bucket.elements, gradient_dtype(a), Role::gradient);
    bucket.storage =
        has_copies(a) ? add_flat(a, fmt::format("bucket{}", index), bucket.elements, wire_dtype(a), Role::communication)
                      : bucket.gradients;
    if (is_view(a)) return;
    for (std::size_t slot = 0; slot < bucket.parameters.size(); ++slot) {
        const Tensor parameter = a.graph.tensor(a.parameters[bucket.parameters[slot].index()].parameter);
        bucket.parts.push_back(a.graph.add_view(fmt::format("bucket{}[{}]", index, parameter.name), bucket.storage,
                                                bucket.first_element[slot], parameter.shape, parameter.layout));
    }
}

void copy(Assembly& a, std::string name, Copy::Kind kind, TensorId from, TensorId to, double factor) {
    Op& op = a.graph.add_op(std::move(name), Copy{kind, a.graph.tensor(to).elements(), factor, Seconds{}}, {from},
                            {{to, Access::overwrite}}, model::LayerId{});
    op.phase = Phase::gradient_sync;
    op.is_last_micro_batch_only = true;
}

void copy_in(Assembly& a, std::size_t index, std::size_t slot) {
    const GradientBucket& bucket = a.buckets.buckets[index];
    const model::ParameterId id = bucket.parameters[slot];
    copy(a, fmt::format("{}.bucket_in", a.parameter(id).name), Copy::Kind::bucket_in, a.parameters[id.index()].gradient,
         bucket.parts[slot], 1.0 / a.input.plan.mesh.dp);
}

void launch(Assembly& a, std::size_t index) {
    const GradientBucket& bucket = a.buckets.buckets[index];
    if (is_view(a) && has_copies(a))
        copy(a, fmt::format("bucket{}.bucket_in", index), Copy::Kind::bucket_in, bucket.gradients, bucket.storage,
             1.0 / a.input.plan.mesh.dp);
    const Collective all_reduce{CollectiveKind::all_reduce, a.buckets.communicator,
                                has_copies(a) ? Reduction::sum : Reduction::average, bucket.elements, wire_dtype(a)};
    Op& op = a.graph.add_op_on(a.buckets.stream, fmt::format("bucket{}.all_reduce", index), all_reduce,
                               {bucket.storage}, {{bucket.storage, Access::update}});
    op.phase = Phase::gradient_sync;
    op.is_last_micro_batch_only = true;
}

}  // namespace

void make_buckets(Assembly& a) {
    GradientBuckets& all = a.buckets;
    all.bucket_of.assign(a.parameters.size(), -1);
    if (a.input.plan.mesh.dp == 1) return;
    all.communicator = a.graph.add_communicator({"dp", {plan::Axis::dp}, a.input.plan.mesh.dp});
    all.stream = a.graph.add_stream({Stream::Lane::communication, all.communicator, "dp"});

    std::vector<model::ParameterId> order;
    std::vector<Bytes> sizes;
    for (std::size_t i = a.parameters.size(); i-- > 0;) {
        const model::ParameterId id{static_cast<std::int32_t>(i)};
        if (!a.parameter(id).trainable) continue;
        order.push_back(id);
        sizes.push_back(static_cast<double>(a.parameter(id).elements()) * size_of(gradient_dtype(a)));
    }
    for (const auto& members : assign_buckets(sizes, a.input.plan.first_bucket, a.input.plan.bucket)) {
        GradientBucket bucket;
        for (const std::size_t i : members) {
            all.bucket_of[order[i].index()] = static_cast<std::int32_t>(all.buckets.size());
            bucket.parameters.push_back(order[i]);
            bucket.first_element.push_back(bucket.elements);
            bucket.elements += a.parameter(order[i]).elements();
        }
        bucket.missing = bucket.parameters.size();
        make_storage(a, bucket, all.buckets.size());
        all.buckets.push_back(std::move(bucket));
    }
}

TensorId bucket_view(Assembly& a, model::ParameterId id, std::string name) {
    const std::int32_t index = a.buckets.bucket_of[id.index()];
    if (index < 0 || !is_view(a)) return TensorId{};
    const GradientBucket& bucket = a.buckets.buckets[static_cast<std::size_t>(index)];
    for (std::size_t slot = 0; slot < bucket.parameters.size(); ++slot)
        if (bucket.parameters[slot] == id)
            return a.graph.add_view(std::move(name), bucket.gradients, bucket.first_element[slot],
                                    a.parameter(id).shape, Layout::row_major);
    return TensorId{};
}

void gradient_is_ready(Assembly& a, model::ParameterId id) {
    GradientBuckets& all = a.buckets;
    const std::int32_t index = all.bucket_of[id.index()];
    if (index < 0) return;
    GradientBucket& bucket = all.buckets[static_cast<std::size_t>(index)];
    --bucket.missing;
    if (!a.input.plan.overlap) return;
    if (!is_view(a))
        for (std::size_t slot = 0; slot < bucket.parameters.size(); ++slot)
            if (bucket.parameters[slot] == id) copy_in(a, static_cast<std::size_t>(index), slot);
    // In order, as all ranks must agree on it: a bucket that is complete early waits for those before it.
    while (all.launched < all.buckets.size() && all.buckets[all.launched].missing == 0) launch(a, all.launched++);
}

void finish_buckets(Assembly& a) {
    GradientBuckets& all = a.buckets;
    for (; all.launched < all.buckets.size(); ++all.launched) {
        if (!is_view(a))
            for (std::size_t slot = 0; slot < all.buckets[all.launched].parameters.size(); ++slot)
                copy_in(a, all.launched, slot);
        launch(a, all.launched);
    }
    if (!has_copies(a)) return;
    for (std::size_t index = 0; index < all.buckets.size(); ++index) {
        const GradientBucket& bucket = all.buckets[index];
        if (is_view(a)) {
            copy(a, fmt::format("bucket{}.bucket_out", index), Copy::Kind::bucket_out, bucket.storage, bucket.gradients,
                 1);
            continue;
        }
        for (std::size_t slot = 0; slot < bucket.parameters.size(); ++slot) {
            const model::ParameterId id = bucket.parameters[slot];
            copy(a, fmt::format("{}.bucket_out", a.parameter(id).name), Copy::Kind::bucket_out, bucket.parts[slot],
                 a.parameters[id.index()].gradient, 1);
        }
    }
}

}  // namespace lockstep::step
