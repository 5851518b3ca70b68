#include "base/error.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(Error, each_kind_carries_its_exit_code) {
    EXPECT_EQ(static_cast<int>(RuntimeError("x").code()), 1);
    EXPECT_EQ(static_cast<int>(LogicError("x").code()), 1);
    EXPECT_EQ(static_cast<int>(UsageError("x").code()), 2);
    EXPECT_EQ(static_cast<int>(InputError("x").code()), 3);
    EXPECT_EQ(static_cast<int>(ThresholdError("x").code()), 4);
    EXPECT_EQ(static_cast<int>(IncompleteError("x").code()), 5);
}

TEST(Error, one_catch_takes_them_all_and_keeps_the_message) {
    try {
        throw InputError("f:1:1: bad");
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "f:1:1: bad");
        EXPECT_EQ(error.code(), ExitCode::bad_input);
    }
    EXPECT_STREQ(LogicError("x").what(), "internal error: x");
}

}  // namespace
}  // namespace lockstep
