#include "machine/calibration.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/shipped.hpp"

namespace lockstep::machine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Calibration read(const std::string& text, std::vector<std::string>& errors, const Calibration& base = {}) {
    config::Diagnostics diagnostics;
    const Calibration c = read_calibration(config::parse_text(text, "cal.yaml"), diagnostics, base);
    errors = diagnostics.errors();
    return c;
}

TEST(Calibration, constant_is_a_value_or_a_value_with_its_source) {
    std::vector<std::string> errors;
    const Calibration c =
        read("source: a test\ngemm: {value: 0.7, source: a paper}\nper_hop: 5 us\nlink: 1.06\n", errors);
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_DOUBLE_EQ(c.gemm, 0.7);
    EXPECT_DOUBLE_EQ(c.per_hop.value, 5e-6);
    EXPECT_DOUBLE_EQ(c.link, 1.06);  // reduction in the switches beats the rings
    EXPECT_DOUBLE_EQ(c.memory, Calibration{}.memory);
    EXPECT_THAT(c.constant_sources, ElementsAre("gemm: a paper"));
}

TEST(Calibration, override_of_a_constant_drops_its_old_source) {
    std::vector<std::string> errors;
    Calibration base;
    base.gemm = 0.9;
    base.memory = 0.9;
    base.constant_sources = {"gemm: old", "memory: kept"};
    const Calibration c = read("source: mine\ngemm: 0.5\n", errors, base);
    EXPECT_DOUBLE_EQ(c.gemm, 0.5);
    EXPECT_DOUBLE_EQ(c.memory, 0.9);
    EXPECT_THAT(c.constant_sources, ElementsAre("memory: kept"));
}

TEST(Calibration, shares_outside_their_range_and_a_missing_source_are_refused) {
    std::vector<std::string> errors;
    read("source: s\ngemm: 1.2\n", errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("cal.yaml:2:7: gemm: ")));
    read("source: s\nmemory: 0\n", errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("must be above 0")));
    read("gemm: 0.5\n", errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("'source' is missing")));
    read("source: s\ngemm: {value: 0.5}\n", errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("'source' is missing")));
    read("source: s\nper_hop: 5\n", errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("per_hop")));
    read("source: s\ngem: 0.5\n", errors);
    EXPECT_THAT(errors, ElementsAre(HasSubstr("did you mean 'gemm'")));
}

TEST(Calibration, machine_file_can_replace_some_constants_of_its_device) {
    const auto data = test::shipped_data();
    const auto with = [&](const std::string& calibration) {
        config::Diagnostics diagnostics;
        const Machine m = load_machine(
            data, config::parse_text("title: T\ndevice: a100-sxm4-40gb\nvertices: {gpu: 1}\n" + calibration, "m.yaml"),
            diagnostics);
        EXPECT_THAT(diagnostics.errors(), IsEmpty());
        return m.calibration;
    };
    const Calibration plain = with("");
    const Calibration changed = with("calibration: {link: 0.5, source: my cluster}\n");
    EXPECT_DOUBLE_EQ(changed.link, 0.5);
    EXPECT_DOUBLE_EQ(changed.gemm, plain.gemm);
    EXPECT_THAT(changed.source, HasSubstr("my cluster; the rest: A100"));
    EXPECT_DOUBLE_EQ(with("calibration: v100\n").gemm, load_machine(data, "dgx-1v-16gb").calibration.gemm);
}

}  // namespace
}  // namespace lockstep::machine
