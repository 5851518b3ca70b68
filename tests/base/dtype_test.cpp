#include "base/dtype.hpp"

#include <gtest/gtest.h>

#include "base/shape.hpp"

namespace lockstep {
namespace {

TEST(DType, sizes_are_bits_over_eight) {
    EXPECT_EQ(size_of(DType::fp64), 8_B);
    EXPECT_EQ(size_of(DType::fp32), 4_B);
    EXPECT_EQ(size_of(DType::bf16), 2_B);
    EXPECT_EQ(size_of(DType::fp16), 2_B);
    EXPECT_EQ(size_of(DType::fp8), 1_B);
    EXPECT_EQ(size_of(DType::int64), 8_B);
}

TEST(Precision, every_name_is_parsed_back) {
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::fp16_amp, Precision::bf16, Precision::fp8})
        EXPECT_EQ(parse_precision(to_string(precision)), precision);
    for (const MathType type : {MathType::fp64, MathType::fp32, MathType::tf32, MathType::fp16, MathType::bf16,
                                MathType::fp8, MathType::int8, MathType::fp4})
        EXPECT_EQ(parse_math_type(to_string(type)), type);
    EXPECT_EQ(parse_precision("fp16"), std::nullopt);
    EXPECT_EQ(parse_math_type("FP32"), std::nullopt);
}

TEST(Precision, tf32_multiplies_in_tf32_but_stores_fp32) {
    EXPECT_EQ(activation_dtype(Precision::tf32), DType::fp32);
    EXPECT_EQ(math_type(Precision::tf32), MathType::tf32);
    EXPECT_EQ(activation_dtype(Precision::fp16_amp), DType::fp16);
    EXPECT_EQ(activation_dtype(Precision::fp8), DType::bf16);
    EXPECT_EQ(math_type(Precision::fp8), MathType::fp8);
}

TEST(Shape, elements_is_the_product_of_the_extents) {
    EXPECT_EQ((Shape{64, 3, 224, 224}).elements(), 9'633'792);
    EXPECT_EQ(Shape{}.elements(), 1);
    EXPECT_EQ((Shape{4, 0, 2}).elements(), 0);
    EXPECT_EQ(to_string(Shape{64, 3}), "[64, 3]");
}

}  // namespace
}  // namespace lockstep
