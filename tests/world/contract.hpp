// The fixture of the tests that every World must pass: the body of a test runs on every rank.
#pragma once

#include <gtest/gtest.h>

#include <ostream>

#include "world/forms.hpp"

namespace lockstep::world {

/// How gtest prints the parameter of a failed test.
inline void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

class WorldContract : public testing::TestWithParam<Form> {
protected:
    static void on_every_rank(const RankBody& body) { GetParam().run(body); }
};

inline std::string form_name(const testing::TestParamInfo<Form>& info) { return info.param.name; }

}  // namespace lockstep::world
