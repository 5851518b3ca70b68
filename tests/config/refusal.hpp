// What an action says when it refuses its input.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace lockstep::config {

/// The message of the InputError that `action` throws; a test failure and "" when it throws none.
template <class Action>
std::string refusal(Action action) {
    try {
        action();
    } catch (const InputError& failure) { return failure.what(); }
    ADD_FAILURE() << "nothing was refused";
    return "";
}

}  // namespace lockstep::config
