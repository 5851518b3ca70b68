#include "contract/contract.hpp"

#include <gtest/gtest.h>

#include "step/dependencies.hpp"

namespace lockstep::contract {

std::vector<step::StepRecord> run_steps(step::Executor& executor, int steps) {
    std::vector<step::StepRecord> records;
    executor.enqueue(0);
    for (int k = 0; k < steps; ++k) {
        if (k + 1 < steps) executor.enqueue(k + 1);
        for (step::StepRecord& record : executor.collect()) records.push_back(std::move(record));
    }
    return records;
}

void expect_contract(const step::StepGraph& graph, const step::RankClass& rank_class,
                     const std::vector<step::StepRecord>& records) {
    step::DependencyTracker tracker(graph);
    std::vector<Nanoseconds> end_of_stream(graph.streams.size());
    std::vector<step::Span> all;
    std::int64_t step = 0;
    for (const step::StepRecord& record : records) {
        EXPECT_EQ(record.step, step++);
        std::size_t i = 0;
        step::for_each_op(graph, rank_class.program, [&](const step::OpInstance& instance) {
            ASSERT_LT(i, record.spans.size());
            const step::Span& span = record.spans[i++];
            SCOPED_TRACE(testing::Message() << "step " << record.step << ", op " << instance.op->name);
            EXPECT_EQ(span.op, instance.number);
            EXPECT_EQ(span.micro_batch, instance.micro_batch);
            EXPECT_EQ(span.stream, instance.op->stream.value);
            EXPECT_LE(span.ready, span.start);
            EXPECT_LE(span.start, span.end);
            EXPECT_LE(record.begin, span.ready);
            EXPECT_LE(span.end, record.end);
            Nanoseconds& stream_end = end_of_stream[instance.op->stream.index()];
            EXPECT_LE(stream_end, span.start);
            stream_end = span.end;
            for (std::int64_t earlier : tracker.next(instance, static_cast<std::int64_t>(all.size())))
                EXPECT_LE(all[static_cast<std::size_t>(earlier)].end, span.start);
            all.push_back(span);
        });
        EXPECT_EQ(i, record.spans.size());
    }
}

}  // namespace lockstep::contract
