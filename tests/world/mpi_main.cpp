// The contract under mpirun: every process is a rank, and all run the same list of tests. Ends with the same status on
// every rank.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.hpp"
#include "world/agree.hpp"
#include "world/forms.hpp"

namespace lockstep::world {
namespace {

// The session outlives the tests; they reach it through the forms, which gtest builds from argc and argv alone.
MpiSession*& session() {
    static MpiSession* current = nullptr;
    return current;
}

TEST(MpiWorld, a_message_shorter_than_expected_is_an_error) {
    const auto w = session()->world();
    const std::vector<int> shorter(1);
    std::vector<int> room(2);
    const Send out{bytes_of(shorter), w->rank(), 0};
    const Receive in{bytes_of(room), w->rank(), 0};
    EXPECT_THROW(w->exchange({&out, 1}, {&in, 1}), RuntimeError);
}

TEST(MpiWorld, largest_call_has_limits) {
    EXPECT_THROW(session()->world(0), LogicError);
    EXPECT_THROW(session()->world(MpiSession::default_largest_call + 1), LogicError);
}

TEST(MpiWorld, the_library_names_itself) { EXPECT_THAT(MpiSession::library_version(), testing::HasSubstr("MPI")); }

}  // namespace

std::vector<Form> forms() {
    // The second form cuts every transfer above 1000 bytes, the way a full-sized world cuts those above a GiB.
    constexpr auto large = MpiSession::default_largest_call;
    return {
        {"mpi", [](const RankBody& body) { body(*session()->world()); }, SendMode::standard},
        {"mpi_cut", [](const RankBody& body) { body(*session()->world(1000)); }, SendMode::standard},
        {"mpi_synchronous", [](const RankBody& body) { body(*session()->world(large, SendMode::synchronous)); }},
        {"mpi_halves", [](const RankBody& body) { on_halves(body)(*session()->world(large, SendMode::synchronous)); }}};
}

}  // namespace lockstep::world

int main(int argc, char** argv) {
    using namespace lockstep::world;
    testing::InitGoogleMock(&argc, argv);
    try {
        MpiSession mpi(argc, argv);
        session() = &mpi;
        const auto all = mpi.world();
        if (all->rank() != 0) {
            auto& listeners = testing::UnitTest::GetInstance()->listeners();
            delete listeners.Release(listeners.default_result_printer());
            struct Failures final : testing::EmptyTestEventListener {
                explicit Failures(int rank) : rank_(rank) {}
                void OnTestPartResult(const testing::TestPartResult& result) override {
                    if (!result.failed()) return;
                    fmt::print(stderr, "rank {}: {}:{}: {}\n", rank_, result.file_name() ? result.file_name() : "?",
                               result.line_number(), result.message());
                }
                int rank_;
            };
            listeners.Append(new Failures(all->rank()));
        }
        const bool failed = RUN_ALL_TESTS() != 0;
        return count_true(*all, failed) > 0 ? 1 : 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
