// Which algorithms the double has for a product, and what they are made of. An algorithm remembers the problem and the
// alignments it was chosen for: it must not run another.
#include <fmt/format.h>

#include <cstring>

#include "gpu_double/blas/state.hpp"

namespace lockstep::gpu_double {
namespace {

/// First one that splits k and adds up the parts in the workspace, then one that needs none.
std::vector<Algorithm> algorithms_for(const Problem& p, const Preference& limits) {
    const Algorithm plain{21, 15, 4, 1, 0, p.fingerprint(), limits.first, limits.second, limits.result, algorithm_mark};
    Algorithm split = plain;
    split.id = 66;
    split.tile = 20;
    split.stages = 36;
    split.split_k = 2;
    split.workspace = static_cast<std::uint64_t>(p.m() * p.n() * p.result.batch) * sizeof(float);
    if (p.k() >= 64 && split.workspace <= limits.workspace) return {split, plain};
    return {plain};
}

template <class T>
cublasStatus_t tell(T value, void* buffer, std::size_t bytes, std::size_t* written) {
    if (buffer == nullptr || bytes != sizeof(T))
        return blas_misuse("cublasLtMatmulAlgoConfigGetAttribute: the buffer has not the attribute's size");
    std::memcpy(buffer, &value, sizeof value);
    if (written != nullptr) *written = sizeof value;
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace lockstep::gpu_double

using namespace lockstep::gpu_double;

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t first, cublasLtMatrixLayout_t second,
                                              cublasLtMatrixLayout_t before, cublasLtMatrixLayout_t result,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
    constexpr const char* function = "cublasLtMatmulAlgoGetHeuristic";
    return blas_call(function, [&](bool) {
        const auto limits = blas().preferences.find(preference);
        if (!blas().handles.find(handle) || !limits || requested < 1)
            return blas_misuse(fmt::format("{}: no such handle or preference, or no results wanted", function));
        const auto problem = find_problem(function, product, first, second, before, result);
        if (!problem) return CUBLAS_STATUS_INVALID_VALUE;
        *returned = 0;
        if (!is_supported(*problem)) return CUBLAS_STATUS_NOT_SUPPORTED;
        for (const Algorithm& algorithm : algorithms_for(*problem, *limits)) {
            if (*returned == requested) break;
            cublasLtMatmulHeuristicResult_t& one = results[(*returned)++];
            one = {};
            std::memcpy(&one.algo, &algorithm, sizeof algorithm);
            one.workspaceSize = algorithm.workspace;
            one.state = CUBLAS_STATUS_SUCCESS;
            one.wavesCount = 1;
        }
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* buffer,
                                                    std::size_t bytes, std::size_t* written) {
    return blas_call("cublasLtMatmulAlgoConfigGetAttribute", [&](bool) {
        const auto a = read_algorithm(algorithm);
        if (!a) return blas_misuse("cublasLtMatmulAlgoConfigGetAttribute: not an algorithm of the heuristics");
        switch (attribute) {
            case CUBLASLT_ALGO_CONFIG_ID: return tell(a->id, buffer, bytes, written);
            case CUBLASLT_ALGO_CONFIG_TILE_ID: return tell(a->tile, buffer, bytes, written);
            case CUBLASLT_ALGO_CONFIG_STAGES_ID: return tell(a->stages, buffer, bytes, written);
            case CUBLASLT_ALGO_CONFIG_SPLITK_NUM: return tell(a->split_k, buffer, bytes, written);
            default: return blas_misuse("cublasLtMatmulAlgoConfigGetAttribute: attribute unknown to the double");
        }
    });
}
}
