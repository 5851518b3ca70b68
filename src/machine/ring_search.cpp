#include "machine/ring_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace lockstep::machine {

namespace {

using Cycle = std::vector<int>;

/// Steps of the search before it settles for the best so far: about 10 ms, whatever the clock says.
constexpr long step_limit = 300'000;

/// Looks for as many undirected cycles as the least connected vertex allows.
class CycleSearch {
public:
    explicit CycleSearch(const LinkCounts& links) : left_(links), n_(static_cast<int>(links.size())) {
        int bound = std::numeric_limits<int>::max();
        for (const auto& row : links) bound = std::min(bound, std::accumulate(row.begin(), row.end(), 0));
        bound_ = static_cast<std::size_t>(bound / 2);
    }

    std::vector<Cycle> run() {
        next_cycle();
        return best_;
    }

private:
    bool is_over() const { return best_.size() == bound_ || steps_ >= step_limit; }

    /// Starts one more cycle on what is left.
    void next_cycle() {
        if (taken_.size() > best_.size()) best_ = taken_;
        if (is_over() || taken_.size() + free_cycles() <= best_.size()) return;
        Cycle path{0};
        std::vector<bool> is_visited(static_cast<std::size_t>(n_), false);
        is_visited[0] = true;
        extend(path, is_visited);
    }

    /// Cycles that the links left at the poorest vertex could still carry.
    std::size_t free_cycles() const {
        int least = std::numeric_limits<int>::max();
        for (const auto& row : left_) least = std::min(least, std::accumulate(row.begin(), row.end(), 0));
        return static_cast<std::size_t>(least / 2);
    }

    void extend(Cycle& path, std::vector<bool>& is_visited) {
        if (is_over()) return;
        ++steps_;
        const int at = path.back();
        if (static_cast<int>(path.size()) == n_) {
            if (left(at, 0) > 0 && path[1] < at) take(path);  // each cycle in one of its two directions only
            return;
        }
        for (const int next : by_links_left(at)) {
            if (is_visited[static_cast<std::size_t>(next)]) continue;
            is_visited[static_cast<std::size_t>(next)] = true;
            use(at, next, 1);
            path.push_back(next);
            extend(path, is_visited);
            path.pop_back();
            use(at, next, -1);
            is_visited[static_cast<std::size_t>(next)] = false;
            if (is_over()) return;
        }
    }

    void take(const Cycle& path) {
        use(path.back(), 0, 1);
        taken_.push_back(path);
        next_cycle();
        taken_.pop_back();
        use(path.back(), 0, -1);
    }

    /// Neighbours with the most links left first: double links must be used twice.
    std::vector<int> by_links_left(int at) const {
        std::vector<int> neighbours;
        for (int v = 0; v < n_; ++v)
            if (left(at, v) > 0) neighbours.push_back(v);
        std::ranges::stable_sort(neighbours, [&](int a, int b) { return left(at, a) > left(at, b); });
        return neighbours;
    }

    int left(int a, int b) const { return left_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }
    void use(int a, int b, int count) {
        left_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] -= count;
        left_[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] -= count;
    }

    LinkCounts left_;
    int n_;
    std::size_t bound_ = 0;
    long steps_ = 0;
    std::vector<Cycle> taken_, best_;
};

}  // namespace

std::vector<std::vector<int>> find_directed_rings(const LinkCounts& links) {
    if (links.size() < 2) return {};
    if (links.size() == 2) return std::vector<Cycle>(static_cast<std::size_t>(links[0][1]), Cycle{0, 1});
    std::vector<Cycle> rings;
    for (const Cycle& cycle : CycleSearch(links).run()) {
        rings.push_back(cycle);
        Cycle reversed = cycle;
        std::reverse(reversed.begin() + 1, reversed.end());
        rings.push_back(std::move(reversed));
    }
    return rings;
}

}  // namespace lockstep::machine
