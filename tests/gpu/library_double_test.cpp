// The test doubles of cuBLASLt and cuDNN find what the libraries forbid, and fail when a test wants it.
#include <gmock/gmock.h>

#include "base/error.hpp"
#include "gpu/blas_descriptors.hpp"
#include "gpu/dnn_descriptors.hpp"
#include "gpu/parity.hpp"
#include "gpu/variable.hpp"

namespace lockstep::gpu::testing {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

// Each misuse in a process of its own: the double ends it with status 97, though the program itself says 0.
class LibraryMisuse : public ::testing::Test {
protected:
    LibraryMisuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
    static void expect(const std::function<void()>& misuse, const char* message) {
        EXPECT_EXIT(
            {
                try {
                    misuse();
                } catch (const Error&) {  // the call said so, too
                }
                std::exit(0);
            },
            ExitedWithCode(97), message);
    }
};

/// C = A B of n x n matrices in fp32, with all that the calls need.
struct Product {
    explicit Product(std::int64_t n = 96)
        : memory(slot({3, n, n}, normal_values(3 * n * n, 1))),
          description(make_product(CUBLAS_COMPUTE_32F, CUBLAS_OP_N, CUBLAS_OP_N, nullptr)),
          matrix(make_matrix(DType::fp32, {1, n, n, n})),
          preference(make_preference(1 << 20, 256, 256, 256)),
          stream(make_stream()) {
        a = static_cast<float*>(memory.operand().data);
        b = a + n * n;
        c = b + n * n;
        int count = 0;
        check_blas(cublasLtMatmulAlgoGetHeuristic(blas.handle(), description.get(), matrix.get(), matrix.get(),
                                                  matrix.get(), matrix.get(), preference.get(), 1, &proposal, &count),
                   "cublasLtMatmulAlgoGetHeuristic");
        used = stream.get();
        workspace = allocate_device(static_cast<std::int64_t>(proposal.workspaceSize), "a workspace");
    }
    void run() {
        const float one = 1, zero = 0;
        check_blas(
            cublasLtMatmul(blas.handle(), description.get(), &one, a, matrix.get(), b, matrix.get(), &zero, c,
                           matrix.get(), c, matrix.get(), &proposal.algo, workspace.get(), workspace_bytes(), used),
            "cublasLtMatmul");
        check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    }
    std::size_t workspace_bytes() const { return proposal.workspaceSize - missing; }

    BlasLt blas;
    DeviceTensor memory;
    ProductDescriptor description;
    MatrixDescriptor matrix;
    PreferenceDescriptor preference;
    Stream stream;
    cudaStream_t used = nullptr;
    cublasLtMatmulHeuristicResult_t proposal{};
    DeviceMemory workspace;
    float *a = nullptr, *b = nullptr, *c = nullptr;
    std::size_t missing = 0;
};

TEST(LibraryDouble, a_product_without_misuse_is_no_misuse) { Product().run(); }

TEST_F(LibraryMisuse, of_products) {
    expect(
        [] {
            Product p;
            alignas(256) static float host[96 * 96];
            p.a = host;
            p.run();
        },
        "A .36864 bytes. is not within");
    expect(
        [] {
            Product p;
            p.c += 128;
            p.run();
        },
        "D .36864 bytes. is not within");
    expect(
        [] {
            Product p;
            p.missing = 1;
            p.run();
        },
        "needs 36864 bytes of workspace, not 36863");
    expect(
        [] {
            Product p;
            p.b += 1;
            p.run();
        },
        "less aligned than the algorithm was told");
    expect(
        [] {
            Product p;
            p.matrix = make_matrix(DType::fp32, {1, 48, 48, 48});
            p.run();
        },
        "chosen for another problem");
    expect(
        [] {
            Product p;
            p.proposal.algo = {};
            p.run();
        },
        "not an algorithm of the heuristics");
    expect(
        [] {
            Product p;
            p.used = make_stream().get();  // destroyed at once
            p.run();
        },
        "no such stream");
    expect([] { make_matrix(DType::fp32, {1, 0, 3, 0}); }, "0 rows");
    expect(
        [] {
            const MatrixDescriptor matrix = make_matrix(DType::fp32, {1, 3, 3, 3});
            const std::int64_t batch = 2;  // must be of 32 bits
            check_blas(cublasLtMatrixLayoutSetAttribute(matrix.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                        sizeof batch),
                       "cublasLtMatrixLayoutSetAttribute");
        },
        "has 4 bytes, not 8");
    expect([] { cublasLtMatmulDescDestroy(make_product(CUBLAS_COMPUTE_32F, CUBLAS_OP_N, CUBLAS_OP_N, nullptr).get()); },
           "there is none such");
}

TEST_F(LibraryMisuse, of_handles_and_descriptors_that_are_left) {
    expect([] { make_matrix(DType::fp32, {1, 3, 3, 3}).release(); }, "1 matrix layouts of cuBLASLt were not destroyed");
    expect([] { (new BlasLt)->handle(); }, "1 handles of cuBLASLt were not destroyed");
    expect([] { make_image(DType::fp32, 1, 2, 3, 4).release(); }, "1 tensor descriptors of cuDNN were not destroyed");
    expect([] { (new Dnn)->handle(); }, "1 handles of cuDNN were not destroyed");
}

/// Batch norm of a small image, by all that the calls need.
struct Normed {
    void run() {
        const float one = 1, zero = 0;
        float* const floats = static_cast<float*>(memory.operand().data);
        float *const x = floats, *const y = floats + 96, *const row = floats + 192;
        check_dnn(cudnnBatchNormalizationForwardTrainingEx(
                      dnn.on(used), mode, CUDNN_BATCHNORM_OPS_BN, &one, &zero, image.get(), x, nullptr, nullptr,
                      image.get(), y, features.get(), row, row + 4, 0.1, nullptr, nullptr, 1e-5, row + 8, row + 12,
                      nullptr, workspace.get(), workspace_bytes, nullptr, 0),
                  "cudnnBatchNormalizationForwardTrainingEx");
        check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    }
    Dnn dnn;
    DeviceTensor memory{slot({208}, normal_values(208, 1))};
    TensorDescriptor image = make_image(DType::fp32, 2, 4, 3, 4), features = make_image(DType::fp32, 1, 4, 1, 1);
    cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
    Stream stream = make_stream();
    cudaStream_t used = stream.get();
    std::size_t workspace_bytes = 4096;
    DeviceMemory workspace = allocate_device(4096, "a workspace");
};

TEST(LibraryDouble, a_norm_without_misuse_is_no_misuse) { Normed().run(); }

TEST_F(LibraryMisuse, of_norms) {
    expect(
        [] {
            Normed n;
            n.workspace_bytes = 10;
            n.run();
        },
        "10 bytes of workspace, not 4096");
    expect(
        [] {
            Normed n;
            n.features = make_image(DType::fp32, 1, 5, 1, 1);
            n.run();
        },
        "one per feature");
    expect(
        [] {
            Normed n;
            n.image = make_image(DType::fp32, 9, 4, 3, 4);
            n.run();
        },
        "x .1728 bytes. is not within");
    expect(
        [] {
            Normed n;
            cudnnTensorDescriptor_t unset = nullptr;
            check_dnn(cudnnCreateTensorDescriptor(&unset), "cudnnCreateTensorDescriptor");
            n.image.reset(unset);
            n.run();
        },
        "not set");
    expect(
        [] {
            Normed n;
            n.used = make_stream().get();  // destroyed at once
            n.run();
        },
        "no such stream");
}

TEST(LibraryDouble, has_no_persistent_norm_of_fp32) {
    Normed n;
    n.mode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
    try {
        n.run();
        ADD_FAILURE();
    } catch (const RuntimeError& error) { EXPECT_THAT(error.what(), HasSubstr("CUDNN_STATUS_NOT_SUPPORTED")); }
}

TEST(LibraryDouble, fails_at_the_call_that_a_test_names) {
    const Variable fail("LOCKSTEP_DOUBLE_FAIL", "cublasLtMatmul:2:14,cudnnBatchNormalizationForwardTrainingEx:1");
    Product p;
    p.run();
    try {
        p.run();
        ADD_FAILURE();
    } catch (const RuntimeError& error) {
        EXPECT_THAT(error.what(), HasSubstr("cublasLtMatmul failed: 14"));
        EXPECT_THAT(error.what(), HasSubstr("library_double_test.cpp"));
    }
    try {
        Normed().run();
        ADD_FAILURE();
    } catch (const RuntimeError& error) {
        EXPECT_THAT(error.what(), HasSubstr("CUDNN_STATUS_EXECUTION_FAILED (as the test wants it)"));
    }
}

}  // namespace
}  // namespace lockstep::gpu::testing
