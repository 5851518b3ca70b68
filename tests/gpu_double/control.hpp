// What tests tell the doubles, by environment variables. They are read anew when they change, so that a test can set
// them within its process; counts of calls start there.
//
//   CUDA_VISIBLE_DEVICES               as CUDA reads it: ordinals or UUIDs
//   LOCKSTEP_DOUBLE_DRIVER=none|12020  no driver, or one of that version (13000)
//   LOCKSTEP_DOUBLE_DEVICES=n          GPUs of the host (1)
//   LOCKSTEP_DOUBLE_NAME=text          of a GPU, after "test double of " (NVIDIA H100 80GB HBM3)
//   LOCKSTEP_DOUBLE_MIG=1              what programs see is a MIG instance
//   LOCKSTEP_DOUBLE_MEMORY=bytes       of each GPU (4 GiB)
//   LOCKSTEP_DOUBLE_NUMA=0,1           NUMA node of each GPU (-1: not told)
//   LOCKSTEP_DOUBLE_THROTTLE=bits      why clocks are low, as NVML numbers the reasons (0)
//   LOCKSTEP_DOUBLE_DELAY=microseconds each piece of work waits up to so long first: shows missing waits
//   LOCKSTEP_DOUBLE_FAIL=function:n[:code][@rank],...  the n-th call from now on fails
//   LOCKSTEP_DOUBLE_HANG=function:n[@rank],...  the work of the n-th call never completes; of a function that enqueues
//                                      no work the call never returns
//   LOCKSTEP_DOUBLE_NCCL_RESIDENT=1    one NCCL kernel at a time per device: finds launch orders that can hang
//   LOCKSTEP_DOUBLE_NCCL_QUIET=1       peers that abort or die are not told of, as over NVLink: ranks just wait
//   LOCKSTEP_DOUBLE_MISUSE=abort       ends the process at the first misuse, for a debugger
//   LOCKSTEP_DOUBLE_CALLS=file         what is called and launched, a line each (coverage.py)
//   LOCKSTEP_DOUBLE_EXIT=always|never  reports leaks and misuse at exit, with status 97 (if the status is 0)
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::gpu_double {

enum class ExitCheck { unless_failed, always, never };

struct Controls {
    int driver = 13000;  ///< as cudaDriverGetVersion tells it; 0: none
    int devices = 1;
    std::string name = "NVIDIA H100 80GB HBM3";
    bool mig = false;
    std::size_t memory = std::size_t{4} << 30;
    std::vector<int> numa;
    unsigned long long throttle = 0;
    std::chrono::microseconds delay{0};
    bool abort_on_misuse = false;
    ExitCheck exit_check = ExitCheck::unless_failed;
    std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES
    std::string fail, hang;
};
std::shared_ptr<const Controls> controls();

/// What becomes of a call.
struct Fate {
    bool fails = false;
    std::optional<int> code;  ///< that the test asks for, of the function's own kind; none: the double chooses
    bool hangs = false;       ///< its work never completes
    int code_or(int fallback) const { return code.value_or(fallback); }
};
/// Every function of a double calls this first, once, with its own name: "ncclAllReduce".
Fate double_call(const char* function);

/// One line on stderr: "test double: misuse: TEXT". The process then ends with status 97, whatever it does later.
void report_misuse(const std::string& text);

/// Called at exit; adds lines such as "2 streams". For doubles with handles of their own. The function must stay.
void add_leak_check(std::vector<std::string> (*leaks)());

}  // namespace lockstep::gpu_double
