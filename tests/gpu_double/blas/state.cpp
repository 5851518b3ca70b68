#include "gpu_double/blas/state.hpp"

#include <fmt/format.h>

#include <cstring>

namespace lockstep::gpu_double {
namespace {

template <class Table>
void count(std::vector<std::string>& lines, const Table& table, const char* what) {
    if (const std::size_t left = table.all().size(); left > 0)
        lines.push_back(fmt::format("{} {} of cuBLASLt were not destroyed", left, what));
}

std::vector<std::string> leaks() {
    std::vector<std::string> lines;
    count(lines, blas().handles, "handles");
    count(lines, blas().matrices, "matrix layouts");
    count(lines, blas().products, "product descriptors");
    count(lines, blas().preferences, "preferences");
    return lines;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    return (hash ^ value) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
}
std::uint64_t mix(std::uint64_t hash, const Matrix& m) {
    for (const std::uint64_t value : {std::uint64_t{m.type}, m.rows, m.columns, static_cast<std::uint64_t>(m.ld),
                                      static_cast<std::uint64_t>(m.stride), static_cast<std::uint64_t>(m.batch)})
        hash = mix(hash, value);
    return hash;
}

struct Factor {
    std::uint64_t rows, columns;
};
Factor factor_of(const Matrix& m, std::int32_t operation) {
    return operation == CUBLAS_OP_N ? Factor{m.rows, m.columns} : Factor{m.columns, m.rows};
}

}  // namespace

BlasState& blas() {
    static BlasState& state = *[] {
        add_leak_check(leaks);
        return new BlasState;
    }();
    return state;
}

cublasStatus_t blas_misuse(const std::string& text) {
    report_misuse(text);
    return CUBLAS_STATUS_INVALID_VALUE;
}

std::optional<Element> Matrix::element() const {
    if (type == CUDA_R_32F) return Element::fp32;
    if (type == CUDA_R_16F) return Element::fp16;
    if (type == CUDA_R_16BF) return Element::bf16;
    return std::nullopt;
}

std::int64_t Matrix::extent() const {
    return (batch - 1) * stride + (static_cast<std::int64_t>(columns) - 1) * ld + static_cast<std::int64_t>(rows);
}

std::int64_t Problem::k() const { return static_cast<std::int64_t>(factor_of(first, product.first).columns); }

std::uint64_t Problem::fingerprint() const {
    std::uint64_t hash = mix(mix(mix(mix(1, first), second), before), result);
    for (const auto value : {static_cast<std::uint64_t>(product.compute), static_cast<std::uint64_t>(product.first),
                             static_cast<std::uint64_t>(product.second), std::uint64_t{product.epilogue}})
        hash = mix(hash, value);
    return hash;
}

std::optional<Problem> find_problem(const char* function, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t first,
                                    cublasLtMatrixLayout_t second, cublasLtMatrixLayout_t before,
                                    cublasLtMatrixLayout_t result) {
    const auto p = blas().products.find(product);
    const auto a = blas().matrices.find(first), b = blas().matrices.find(second), c = blas().matrices.find(before),
               d = blas().matrices.find(result);
    if (!p || !a || !b || !c || !d) {
        report_misuse(fmt::format("{}: a descriptor is none (destroyed?)", function));
        return std::nullopt;
    }
    const Problem problem{*p, *a, *b, *c, *d};
    const Factor left = factor_of(*a, p->first), right = factor_of(*b, p->second);
    if (left.rows != d->rows || right.columns != d->columns || left.columns != right.rows || c->rows != d->rows ||
        c->columns != d->columns) {
        report_misuse(fmt::format("{}: factors of {} x {} and {} x {} don't give {} x {}", function, left.rows,
                                  left.columns, right.rows, right.columns, d->rows, d->columns));
        return std::nullopt;
    }
    if (a->batch != d->batch || b->batch != d->batch || c->batch != d->batch) {
        report_misuse(
            fmt::format("{}: batches of {}, {}, {} and {} matrices", function, a->batch, b->batch, c->batch, d->batch));
        return std::nullopt;
    }
    return problem;
}

bool is_supported(const Problem& p) {
    const auto in = p.first.element(), out = p.result.element();
    if (!in || !out || p.second.element() != in || p.before.element() != out) return false;
    if (*out != *in && *out != Element::fp32) return false;
    if (p.product.scale != CUDA_R_32F) return false;
    if (p.product.compute == CUBLAS_COMPUTE_32F_FAST_TF32) return *in == Element::fp32;
    return p.product.compute == CUBLAS_COMPUTE_32F;
}

std::optional<Algorithm> read_algorithm(const cublasLtMatmulAlgo_t* algorithm) {
    Algorithm a;
    std::memcpy(static_cast<void*>(&a), algorithm, sizeof a);
    return a.mark == algorithm_mark ? std::optional(a) : std::nullopt;
}

}  // namespace lockstep::gpu_double
