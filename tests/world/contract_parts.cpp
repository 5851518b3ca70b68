// Collectives on parts, blocking and started: reduce-scatter, all-gather, all-to-all; operations of several worlds in
// flight together; when a send completes.
#include <bit>
#include <cstdint>
#include <memory>

#include "base/error.hpp"
#include "world/contract.hpp"

namespace lockstep::world {
namespace {

void poll(Request& request) {
    while (!request.test()) {}
}

enum class Way { blocking, started };
constexpr Way ways[] = {Way::blocking, Way::started};

std::uint16_t bf16_of(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }
float f32_of(float value) { return value; }

void reduce_scatter(World& w, std::span<const std::byte> send, std::span<std::byte> receive, Number type, Reduce op,
                    Way way) {
    if (way == Way::blocking) return w.reduce_scatter(send, receive, type, op);
    poll(*w.start_reduce_scatter(send, receive, type, op));
}

void all_gather(World& w, std::span<const std::byte> send, std::span<std::byte> receive, Way way) {
    if (way == Way::blocking) return w.all_gather(send, receive);
    poll(*w.start_all_gather(send, receive));
}

// Element i of part p of rank r is r + 2 p + i % 3: small integers, exact in bf16. Summed over r: n(n-1)/2 + n (2 p + i
// % 3); the largest: n-1 + 2 p + i % 3.
template <class T>
std::vector<T> contribution(const World& w, std::size_t part, T (*make)(float)) {
    std::vector<T> all;
    all.reserve(part * w.size());
    for (int p = 0; p < w.size(); ++p)
        for (std::size_t i = 0; i < part; ++i)
            all.push_back(make(static_cast<float>(w.rank() + 2 * p + static_cast<int>(i % 3))));
    return all;
}

template <class T>
void expect_reduced(const World& w, std::span<const T> part, Reduce op, T (*make)(float)) {
    const int n = w.size();
    for (std::size_t i = 0; i < part.size(); ++i) {
        const int own = 2 * w.rank() + static_cast<int>(i % 3);
        const int expected = op == Reduce::sum ? n * (n - 1) / 2 + n * own : n - 1 + own;
        ASSERT_EQ(part[i], make(static_cast<float>(expected))) << "element " << i << " of rank " << w.rank();
    }
}

template <class T>
void reduce_scatter_everything(World& w, std::size_t part, Number type, T (*make)(float)) {
    for (const Way way : ways)
        for (const Reduce op : {Reduce::sum, Reduce::max}) {
            auto send = contribution(w, part, make);
            const auto before = send;
            std::vector<T> receive(part);
            reduce_scatter(w, bytes_of(std::as_const(send)), bytes_of(receive), type, op, way);
            expect_reduced<T>(w, receive, op, make);
            ASSERT_EQ(send, before) << "the send buffer is read only";
            const auto own = std::span{send}.subspan(w.rank() * part, part);
            reduce_scatter(w, bytes_of(std::as_const(send)), std::as_writable_bytes(own), type, op, way);
            expect_reduced<T>(w, own, op, make);
        }
}

TEST_P(WorldContract, reduce_scatter_sums_and_finds_the_largest_in_place_too) {
    on_every_rank([](World& w) {
        for (const std::size_t part : {1, 7, 3001}) {
            reduce_scatter_everything(w, part, Number::f32, f32_of);
            reduce_scatter_everything(w, part, Number::bf16, bf16_of);
        }
    });
}

TEST_P(WorldContract, reduce_scatter_of_large_parts_sums_every_element) {
    on_every_rank([](World& w) {
        constexpr std::size_t part = 2'300'007;  // floats: more bytes than a ring has in flight
        auto send = contribution(w, part, f32_of);
        std::vector<float> receive(part);
        poll(*w.start_reduce_scatter(bytes_of(send), bytes_of(receive), Number::f32, Reduce::sum));
        expect_reduced<float>(w, receive, Reduce::sum, f32_of);
    });
}

TEST_P(WorldContract, all_gather_collects_parts_of_every_size_in_place_too) {
    on_every_rank([](World& w) {
        for (const Way way : ways)
            for (const std::size_t part : {1, 700, 40'001, 2'300'007}) {
                const std::vector<int> mine(part, 5 + w.rank());
                std::vector<int> all(part * w.size(), -1), in_place = all;
                std::copy(mine.begin(), mine.end(), in_place.begin() + static_cast<std::ptrdiff_t>(part) * w.rank());
                all_gather(w, bytes_of(mine), bytes_of(all), way);
                const std::size_t bytes = part * sizeof(int);
                all_gather(w, bytes_of(std::as_const(in_place)).subspan(w.rank() * bytes, bytes), bytes_of(in_place),
                           way);
                for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], 5 + static_cast<int>(i / part));
                ASSERT_EQ(in_place, all);
            }
    });
}

// Rank r sends (r + 2 p) % 5 times `scale` numbers r * 100 + p to rank p: some parts are empty, and no two rows equal.
void all_to_all_v_uneven(World& w, std::size_t scale, Way way) {
    const auto count = [scale](int from, int to) { return static_cast<std::size_t>((from + 2 * to) % 5) * scale; };
    std::vector<int> send, expected;
    std::vector<std::size_t> send_bytes, receive_bytes;
    for (int peer = 0; peer < w.size(); ++peer) {
        send.insert(send.end(), count(w.rank(), peer), 100 * w.rank() + peer);
        expected.insert(expected.end(), count(peer, w.rank()), 100 * peer + w.rank());
        send_bytes.push_back(count(w.rank(), peer) * sizeof(int));
        receive_bytes.push_back(count(peer, w.rank()) * sizeof(int));
    }
    std::vector<int> receive(expected.size(), -1);
    if (way == Way::blocking) {
        w.all_to_all_v(bytes_of(send), send_bytes, bytes_of(receive), receive_bytes);
    } else {
        const auto request = w.start_all_to_all_v(bytes_of(send), send_bytes, bytes_of(receive), receive_bytes);
        send_bytes.assign(send_bytes.size(), 0);  // the lengths are not needed any more
        receive_bytes.clear();
        poll(*request);
    }
    EXPECT_EQ(receive, expected);
}

TEST_P(WorldContract, all_to_all_v_transposes_uneven_and_empty_parts) {
    on_every_rank([](World& w) {
        for (const Way way : ways)
            for (const std::size_t scale : {1, 300, 50'000}) all_to_all_v_uneven(w, scale, way);
    });
}

TEST_P(WorldContract, all_to_all_v_refuses_lengths_that_dont_fit_the_buffers) {
    on_every_rank([](World& w) {
        const std::vector<int> send(w.size());
        std::vector<int> receive(w.size());
        std::vector<std::size_t> right(w.size(), sizeof(int)), too_long = right,
                                                               too_few(right.begin() + 1, right.end());
        too_long[0] += 1;
        EXPECT_THROW(w.all_to_all_v(bytes_of(send), too_long, bytes_of(receive), right), LogicError);
        EXPECT_THROW(w.all_to_all_v(bytes_of(send), right, bytes_of(receive), too_long), LogicError);
        EXPECT_THROW(w.start_all_to_all_v(bytes_of(send), too_few, bytes_of(receive), right), LogicError);
        w.barrier();
    });
}

TEST_P(WorldContract, operations_of_several_worlds_progress_together) {
    on_every_rank([](World& w) {
        // As a plan of dp x tp ranks has it: pairs of neighbours, the ranks of equal parity, and all.
        const auto pair = w.split(w.rank() / 2, w.rank()), parity = w.split(w.rank() % 2, -w.rank());
        World* const worlds[] = {pair.get(), parity.get(), &w};
        constexpr std::size_t part = 60'001;
        std::vector<std::vector<float>> sends, sums, gathered, reduced;
        std::vector<std::unique_ptr<Request>> requests;
        for (World* world : worlds) {
            sends.push_back(contribution(*world, part, f32_of));
            sums.push_back(std::vector<float>(part, static_cast<float>(world->rank() + 1)));
            gathered.emplace_back(part * world->size());
            reduced.emplace_back(part);
        }
        // Ranks start the worlds in different orders, the operations of each world in one.
        for (std::size_t k = 0; k < 3; ++k) {
            const std::size_t i = (k + w.rank()) % 3;
            requests.push_back(worlds[i]->start_reduce_scatter(bytes_of(std::as_const(sends[i])), bytes_of(reduced[i]),
                                                               Number::f32, Reduce::sum));
            requests.push_back(worlds[i]->start_all_gather(
                bytes_of(std::as_const(sends[i])).first(part * sizeof(float)), bytes_of(gathered[i])));
            requests.push_back(worlds[i]->start_all_reduce(bytes_of(sums[i]), Number::f32, Reduce::sum));
        }
        for (std::size_t left = requests.size(); left > 0;)
            left -= static_cast<std::size_t>(std::erase_if(requests, [](const auto& r) { return r->test(); }));
        for (std::size_t i = 0; i < 3; ++i) {
            const int n = worlds[i]->size();
            expect_reduced<float>(*worlds[i], reduced[i], Reduce::sum, f32_of);
            EXPECT_EQ(sums[i], std::vector<float>(part, static_cast<float>(n * (n + 1) / 2)));
            for (std::size_t k = 0; k < gathered[i].size(); ++k)
                ASSERT_EQ(gathered[i][k], static_cast<float>(k / part + k % part % 3));  // part 0 of each rank
        }
    });
}

TEST_P(WorldContract, a_synchronous_send_completes_only_when_its_receive_is_posted) {
    if (GetParam().sends == SendMode::standard) GTEST_SKIP() << "this world may buffer small messages";
    on_every_rank([](World& w) {
        const int right = (w.rank() + 1) % w.size(), left = (w.rank() + w.size() - 1) % w.size();
        const std::vector<int> send{w.rank()};
        std::vector<int> receive{-1};
        const Send out{bytes_of(send), right, 0};
        const Receive in{bytes_of(receive), left, 0};
        const auto sending = w.start_exchange({&out, 1}, {});
        for (int i = 0; i < 100; ++i) EXPECT_FALSE(sending->test());
        w.barrier();  // no receive was posted before
        const auto receiving = w.start_exchange({}, {&in, 1});
        poll(*receiving);
        poll(*sending);
        EXPECT_EQ(receive[0], left);
    });
}

}  // namespace
}  // namespace lockstep::world
