// The order in which an epoch visits the rows; a function of (seed, epoch) alone, so that a resumed run continues it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "pegasos/rng.hpp"

namespace pegasos {

enum class Sampling { iid, fixed, permutation };

// Shuffles v. Up to `whole` entries: Fisher–Yates. Longer lists are shuffled so that neighbours in memory are visited
// close together in time: blocks of 128 consecutive entries are put in random order, and each run of 8 blocks is then
// shuffled whole. Eight far-apart blocks at a time keep the mix even for files sorted by class.
inline void shuffle(std::vector<std::int64_t>& v, Rng rng, std::int64_t whole = 4096) {
    const auto fisher_yates = [&rng](auto first, std::int64_t n) {
        for (std::int64_t i = n - 1; i > 0; --i) std::swap(first[i], first[rng.below(i + 1)]);
    };
    const std::int64_t n = std::int64_t(v.size()), block = 128, mixed = 8 * block;
    if (n <= whole) return fisher_yates(v.begin(), n);
    std::vector<std::int64_t> blocks((n + block - 1) / block);
    std::iota(blocks.begin(), blocks.end(), 0);
    fisher_yates(blocks.begin(), std::int64_t(blocks.size()));
    std::vector<std::int64_t> out;
    out.reserve(v.size());
    for (const std::int64_t b : blocks)
        out.insert(out.end(), v.begin() + b * block, v.begin() + std::min(n, (b + 1) * block));
    for (std::int64_t first = 0; first < n; first += mixed)
        fisher_yates(out.begin() + first, std::min(mixed, n - first));
    v.swap(out);
}

// Fills `order` with the rows of one epoch over {0, …, m − 1}.
inline void epoch_order(std::vector<std::int64_t>& order, std::int64_t m, Sampling sampling, std::uint64_t seed,
                        std::int64_t epoch) {
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
