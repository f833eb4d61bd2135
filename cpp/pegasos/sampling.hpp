// The order in which an epoch visits the rows; a function of (seed, epoch) alone, so that a resumed run
// continues it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "pegasos/rng.hpp"

namespace pegasos {

enum class Sampling { iid, fixed, permutation };

// Shuffles v. Up to `whole` entries: Fisher–Yates. Longer lists keep neighbours in memory close together in
// time, which is worth half of an epoch's duration: blocks of 256 consecutive entries are put in random
// order, and eight blocks at a time are dealt out in turn, each from a random place in it. Eight far-apart
// streams are what the processor's own prefetching follows, and keep the mix even for files sorted by class.
inline void shuffle(std::vector<std::int64_t>& v, Rng rng, std::int64_t whole = 65536) {
    const auto fisher_yates = [&rng](auto& list) {
        for (std::int64_t i = std::int64_t(list.size()) - 1; i > 0; --i)
            std::swap(list[i], list[rng.below(i + 1)]);
    };
    const std::int64_t n = std::int64_t(v.size()), block = 256, streams = 8;
    if (n <= whole) return fisher_yates(v);
    std::vector<std::int64_t> blocks((n + block - 1) / block);
    std::iota(blocks.begin(), blocks.end(), 0);
    fisher_yates(blocks);
    std::vector<std::int64_t> out;
    out.reserve(v.size());
    for (std::size_t first = 0; first < blocks.size(); first += streams) {
        const std::size_t last = std::min(blocks.size(), first + streams);
        std::int64_t turn[streams];
        for (std::size_t b = first; b < last; ++b) turn[b - first] = rng.below(block);
        for (std::int64_t k = 0; k < block; ++k)
            for (std::size_t b = first; b < last; ++b) {
                const std::int64_t at = blocks[b] * block + (turn[b - first] + k) % block;
                if (at < n) out.push_back(v[at]);
            }
    }
    v.swap(out);
}

// Fills `order` with the rows of one epoch over {0, …, m − 1}.
inline void epoch_order(std::vector<std::int64_t>& order, std::int64_t m, Sampling sampling,
                        std::uint64_t seed, std::int64_t epoch) {
    order.resize(m);
    if (sampling == Sampling::iid) {
        Rng rng(seed, epoch);
        for (auto& i : order) i = rng.below(m);
        return;
    }
    std::iota(order.begin(), order.end(), 0);
    shuffle(order, Rng(seed, sampling == Sampling::fixed ? 0 : epoch));
}

}  // namespace pegasos
