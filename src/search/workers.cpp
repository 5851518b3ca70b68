#include "search/workers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep::search {

bool share_out(std::size_t count, int threads, const std::function<bool()>& is_stopped,
               const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0}, done{0};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto run = [&] {
        for (std::size_t i = next++; i < count && !is_stopped(); i = next++) {
            try {
                work(i);
                ++done;
            } catch (...) {
                next = count;
                const std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
            }
        }
    };
    {
        std::vector<std::jthread> others;
        const auto wanted = std::min(static_cast<std::size_t>(std::max(1, threads)), std::max<std::size_t>(1, count));
        for (std::size_t t = 1; t < wanted; ++t) others.emplace_back(run);
        run();
    }
    if (failure) std::rethrow_exception(failure);
    return done == count;
}

}  // namespace lockstep::search
