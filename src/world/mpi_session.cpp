#include <fmt/format.h>

#include <array>
#include <exception>
#include <string>

#include "base/error.hpp"
#include "world/mpi_world.hpp"

namespace lockstep::world {
namespace {

void check_world_size(const Launcher& launcher) {
    int size = 0;
    check(MPI_Comm_size(MPI_COMM_WORLD, &size));
    if (size == launcher.expected_size) return;
    MPI_Finalize();  // the world is the wrong one: no peer waits in it
    throw RuntimeError(fmt::format(
        "MPI sees a world of {} ranks but {} announced {} (the launcher and lockstep may use different MPI libraries); "
        "start with the launcher of {}",
        size, launcher.name.empty() ? "no launcher" : launcher.name, launcher.expected_size,
        MpiSession::library_version()));
}

}  // namespace

MpiSession::MpiSession(int& argc, char**& argv) : uncaught_at_start_(std::uncaught_exceptions()) {
    const Launcher launcher = detect_launcher();
    keep_large_blocks();
    int provided = MPI_THREAD_SINGLE;
    check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        throw RuntimeError(
            fmt::format("{} has no MPI_THREAD_MULTIPLE (the communication thread needs it); use a build that has it",
                        library_version()));
    }
    check_world_size(launcher);
}

MpiSession::~MpiSession() {
    if (std::uncaught_exceptions() > uncaught_at_start_) return;
    MPI_Finalize();
}

std::unique_ptr<World> MpiSession::world(std::size_t largest_call, SendMode mode) {
    if (largest_call == 0 || largest_call > default_largest_call)
        throw LogicError(fmt::format("largest_call of {} bytes", largest_call));
    return std::make_unique<MpiWorld>(Communicator::duplicate(MPI_COMM_WORLD), std::make_shared<const Bf16Operations>(),
                                      largest_call, mode);
}

std::string MpiSession::library_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    check(MPI_Get_library_version(text.data(), &length));
    const std::string version(text.data());
    return version.substr(0, version.find(','));  // Open MPI goes on with the packager, repository and dates
}

}  // namespace lockstep::world
