#include "world/mpi_handles.hpp"

#include <fmt/format.h>

#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "world/number.hpp"

namespace lockstep::world {
namespace {

bool is_finalized() {
    int finalized = 0;
    return MPI_Finalized(&finalized) != MPI_SUCCESS || finalized != 0;
}

// MPI knows the operation only by the function's address: one function each.
template <Reduce op>
void reduce_bf16(void* from, void* into, int* count, MPI_Datatype*) {
    const std::size_t bytes = static_cast<std::size_t>(*count) * size_of(Number::bf16);
    accumulate({static_cast<std::byte*>(into), bytes}, {static_cast<const std::byte*>(from), bytes}, Number::bf16, op);
}

}  // namespace

void check(int code, std::source_location where) {
    if (code == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
    throw RuntimeError(fmt::format("MPI failed with code {} ({}) in {} at {}:{}; the peers or the network may be gone",
                                   code, std::string_view(text.data(), static_cast<std::size_t>(length)),
                                   where.function_name(), where.file_name(), where.line()));
}

Communicator::Communicator(MPI_Comm comm) : comm_(comm), uncaught_at_start_(std::uncaught_exceptions()) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

Communicator::Communicator(Communicator&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)), uncaught_at_start_(other.uncaught_at_start_) {}

Communicator::~Communicator() {
    if (comm_ == MPI_COMM_NULL || std::uncaught_exceptions() > uncaught_at_start_ || is_finalized()) return;
    MPI_Comm_free(&comm_);
}

Communicator Communicator::duplicate(MPI_Comm of) {
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_dup(of, &comm));
    return Communicator(comm);
}

Communicator Communicator::split(MPI_Comm of, int colour, int key) {
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_split(of, colour, key, &comm));
    return Communicator(comm);
}

Communicator Communicator::on_this_host(MPI_Comm of) {
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_split_type(of, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    return Communicator(comm);
}

int Communicator::rank() const {
    int rank = 0;
    check(MPI_Comm_rank(comm_, &rank));
    return rank;
}

int Communicator::size() const {
    int size = 0;
    check(MPI_Comm_size(comm_, &size));
    return size;
}

Bf16Operations::Bf16Operations() {
    constexpr int commutative = 1;
    check(MPI_Op_create(reduce_bf16<Reduce::sum>, commutative, &operations_[static_cast<std::size_t>(Reduce::sum)]));
    check(MPI_Op_create(reduce_bf16<Reduce::max>, commutative, &operations_[static_cast<std::size_t>(Reduce::max)]));
    check(MPI_Op_create(reduce_bf16<Reduce::min>, commutative, &operations_[static_cast<std::size_t>(Reduce::min)]));
}

Bf16Operations::~Bf16Operations() {
    if (is_finalized()) return;
    for (auto& op : operations_) MPI_Op_free(&op);
}

MPI_Datatype datatype(Number type) {
    switch (type) {
        case Number::f32: return MPI_FLOAT;
        case Number::f64: return MPI_DOUBLE;
        case Number::bf16: return MPI_UINT16_T;
        case Number::i32: return MPI_INT32_T;
        case Number::i64: return MPI_INT64_T;
    }
    throw LogicError("unknown number type");
}

MPI_Op operation(Number type, Reduce op, const Bf16Operations& bf16) {
    if (type == Number::bf16) return bf16.get(op);
    switch (op) {
        case Reduce::sum: return MPI_SUM;
        case Reduce::max: return MPI_MAX;
        case Reduce::min: return MPI_MIN;
    }
    throw LogicError("unknown reduction");
}

}  // namespace lockstep::world
