// A few threads that share out numbered pieces of work.
#pragma once

#include <cstddef>
#include <functional>

namespace lockstep::search {

/// Calls work(i) once for each i below `count`, on `threads` threads (at least 1), in no particular order; none after
/// `is_stopped` says so. An exception of a call ends the others' work and is thrown here. Returns whether all were
/// called.
bool share_out(std::size_t count, int threads, const std::function<bool()>& is_stopped,
               const std::function<void(std::size_t)>& work);

}  // namespace lockstep::search
