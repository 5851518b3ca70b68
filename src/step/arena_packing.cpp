#include "step/arena_packing.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace lockstep::step {

namespace {

/// Looks at neighbours after which no other packing is tried.
constexpr std::int64_t most_looks = 16'000'000;
/// Rounds without a smaller packing after which there are no more.
constexpr int patience = 40;

using Order = std::vector<std::size_t>;  // tenants, the first to be placed first

/// A tenant that has its place.
struct Placed {
    std::int64_t offset = 0, end = 0;
    std::int32_t begin = 0, last = 0;  // of its whole life
    bool has_breaks = false;           // in its life
    const Life* life = nullptr;
};

bool meet(const Placed& x, const Placed& y) {
    if (x.begin > y.last || y.begin > x.last) return false;
    return !(x.has_breaks || y.has_breaks) || overlap(*x.life, *y.life);
}

/// What comes first.
enum class Rule { largest, largest_for_longest, longest, earliest };

Order order_by(Rule rule, const std::vector<Tenant>& tenants) {
    struct Weight {
        double first = 0, second = 0;
        auto operator<=>(const Weight&) const = default;
    };
    const auto weigh = [&](const Tenant& tenant) -> Weight {
        double length = 0;
        for (const Life::Interval& interval : tenant.life.intervals) length += interval.end - interval.begin + 1;
        const auto bytes = static_cast<double>(tenant.bytes);
        switch (rule) {
            // Of equal ones the longest life first: the others fit into more gaps.
            case Rule::largest: return {bytes, length};
            case Rule::largest_for_longest: return {bytes * length, bytes};
            case Rule::longest: return {length, bytes};
            case Rule::earliest: return {-static_cast<double>(tenant.life.intervals.front().begin), bytes};
        }
        return {};
    };
    std::vector<Weight> weight;
    weight.reserve(tenants.size());
    for (const Tenant& tenant : tenants) weight.push_back(weigh(tenant));
    Order order(tenants.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return weight[x] > weight[y]; });
    return order;
}

class Packer {
public:
    Packer(const std::vector<Tenant>& tenants, std::int64_t enough) : tenants_(tenants), enough_(enough) {
        best_.bytes = std::numeric_limits<std::int64_t>::max();
        last_.offset.resize(tenants.size());
        placed_.reserve(tenants.size());
    }
    void try_rules() {
        for (const Rule rule : {Rule::largest, Rule::largest_for_longest, Rule::longest, Rule::earliest})
            if (!is_done()) place(order_by(rule, tenants_));
    }
    /// From the best order on.
    void improve(int rounds) {
        if (rounds == 0 || is_done()) return;
        const std::int64_t least = live_bytes(tenants_);
        const auto count = static_cast<std::int64_t>(tenants_.size());
        Order order = best_order_;
        last_ = best_;
        std::vector<std::int64_t> rank(tenants_.size());  // the highest is placed first
        for (std::size_t k = 0; k < order.size(); ++k) rank[order[k]] = count - static_cast<std::int64_t>(k);
        int idle = 0;
        for (int round = 0; round < rounds && idle < patience && !is_done(); ++round) {
            for (std::size_t i = 0; i < tenants_.size(); ++i)
                if (last_.offset[i] + tenants_[i].bytes > least) rank[i] += std::max<std::int64_t>(1, count * 3 / 10);
            std::stable_sort(order.begin(), order.end(),
                             [&](std::size_t x, std::size_t y) { return rank[x] > rank[y]; });
            idle = place(order) ? 0 : idle + 1;
        }
    }
    Packing take() { return std::move(best_); }

private:
    bool is_done() const { return best_.bytes <= enough_ || looks_ > most_looks; }

    /// True when none before is as small.
    bool place(const Order& order) {
        placed_.clear();
        last_.bytes = 0;
        for (const std::size_t i : order) {
            const Life& life = tenants_[i].life;
            Placed mine{0,
                        tenants_[i].bytes,
                        life.intervals.front().begin,
                        life.intervals.back().end,
                        life.intervals.size() > 1,
                        &life};
            settle(mine);
            last_.offset[i] = mine.offset;
            last_.bytes = std::max(last_.bytes, mine.end);
        }
        if (last_.bytes >= best_.bytes) return false;
        best_ = last_;
        best_order_ = order;
        return true;
    }
    /// At the lowest offset that is free.
    void settle(Placed& mine) {
        for (const Placed& other : placed_) {
            ++looks_;
            if (other.offset >= mine.end) break;
            if (other.end <= mine.offset || !meet(mine, other)) continue;
            mine.end += other.end - mine.offset;
            mine.offset = other.end;
        }
        placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), mine,
                                        [](const Placed& x, const Placed& y) { return x.offset < y.offset; }),
                       mine);
    }

    const std::vector<Tenant>& tenants_;
    std::int64_t enough_;
    std::vector<Placed> placed_;  // by offset
    Packing last_, best_;
    Order best_order_;
    std::int64_t looks_ = 0;
};

}  // namespace

std::int64_t live_bytes(const std::vector<Tenant>& tenants) {
    std::map<std::int32_t, std::int64_t> change;
    for (const Tenant& tenant : tenants)
        for (const Life::Interval& interval : tenant.life.intervals) {
            change[interval.begin] += tenant.bytes;
            change[interval.end + 1] -= tenant.bytes;
        }
    std::int64_t live = 0, most = 0;
    for (const auto& [position, bytes] : change) most = std::max(most, live += bytes);
    return most;
}

Packing pack(const std::vector<Tenant>& tenants, std::int64_t enough, int rounds) {
    if (tenants.empty()) return {};
    Packer packer(tenants, enough);
    packer.try_rules();
    packer.improve(rounds);
    return packer.take();
}

}  // namespace lockstep::step
