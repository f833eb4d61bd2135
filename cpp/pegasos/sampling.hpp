// The order in which an epoch visits the rows; a function of (seed, epoch) alone, so that a resumed run
// continues it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "pegasos/rng.hpp"

namespace pegasos {

struct Sampling {
    enum Scheme { iid, fixed, permutation, chunked };

    // Implicit, so that a scheme is a sampling.
    Sampling(Scheme s, std::int64_t rows = 0, bool near = false) : scheme(s), chunk(rows), local(near) {}

    Scheme scheme;
    std::int64_t chunk;  // rows of a chunk, for `chunked` alone
    bool local;          // neighbours may be visited close together: see shuffle and neighbours_alike
};
inline bool operator==(const Sampling& sampling, Sampling::Scheme scheme) {
    return sampling.scheme == scheme;
}

// Rows of a chunk that holds about 2¹⁹ entries (some megabytes, whatever their type); nnz entries in m rows.
inline std::int64_t chunk_rows(std::int64_t m, std::int64_t nnz) {
    return std::max<std::int64_t>(
        1, std::int64_t(double(m) * (1 << 19) / double(std::max<std::int64_t>({1, m, nnz}))));
}

template <class T>
void fisher_yates(std::vector<T>& list, Rng& rng) {
    for (std::int64_t i = std::int64_t(list.size()) - 1; i > 0; --i)
        std::swap(list[i], list[rng.below(i + 1)]);
}

inline constexpr std::int64_t whole_shuffle = 1024;

// Shuffles v. Short lists, and those that are not `local`: Fisher–Yates. Others keep neighbours in memory
// close together in time, which is worth a quarter to a half of an epoch's duration: blocks of consecutive
// entries are put in random order, and eight blocks at a time are dealt out in turn, each from a random place
// in it. Eight far-apart streams are what the processor's own prefetching follows.
inline void shuffle(std::vector<std::int64_t>& v, Rng rng, bool local) {
    const std::int64_t n = std::int64_t(v.size()), streams = 8;
    const std::int64_t block = n > 65536 ? 256 : 32;  // longer streams from memory than from the caches
    if (!local || n <= whole_shuffle) return fisher_yates(v, rng);
    std::vector<std::int64_t> blocks((n + block - 1) / block);
    std::iota(blocks.begin(), blocks.end(), 0);
    fisher_yates(blocks, rng);
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

// Whether rows next to each other are alike, as far as the distance(i, j) of their targets tells: in a file
// sorted by class, say, or a series. Visited close together they would pull the weights their way together,
// which costs more epochs than streams save time.
template <class Distance>
bool neighbours_alike(std::int64_t m, Distance&& distance) {
    if (m <= whole_shuffle) return false;
    const std::int64_t pairs = std::min<std::int64_t>(m - 1, 8192);
    Rng rng(0);
    double near = 0, far = 0;
    for (std::int64_t k = 0; k < pairs; ++k) {
        const std::int64_t i = (m - 1) * k / pairs;
        near += distance(i, i + 1);
        far += distance(i, rng.below(m));
    }
    return near < 0.8 * far;
}

// Shuffles v, ascending rows of data on disk, so that an epoch reads long stretches of it and then is done
// with them. Chunks of consecutive rows are put in random order; the rows of eight chunks at a time, which
// keeps the mix even for files sorted by class, are shuffled among themselves.
inline void shuffle_chunks(std::vector<std::int64_t>& v, std::int64_t rows, Rng rng, bool local) {
    const std::size_t together = 8;
    using Span = std::pair<std::size_t, std::size_t>;
    std::vector<Span> chunks;
    for (std::size_t first = 0, last; first < v.size(); first = last) {
        const std::int64_t chunk = v[first] / rows;
        for (last = first + 1; last < v.size() && v[last] / rows == chunk; ++last) {
        }
        chunks.push_back({first, last});
    }
    fisher_yates(chunks, rng);
    std::vector<std::int64_t> out, some;
    out.reserve(v.size());
    for (std::size_t c = 0; c < chunks.size(); c += together) {
        some.clear();
        for (std::size_t k = c; k < std::min(chunks.size(), c + together); ++k)
            some.insert(some.end(), v.begin() + std::ptrdiff_t(chunks[k].first),
                        v.begin() + std::ptrdiff_t(chunks[k].second));
        shuffle(some, Rng(rng.next()), local);
        out.insert(out.end(), some.begin(), some.end());
    }
    v.swap(out);
}

// Whether an epoch over that many rows jumps about in memory, so that rows should be asked for in advance. An
// epoch that follows streams is slowed down by a tenth if they are.
inline bool jumps(const Sampling& sampling, std::int64_t rows) {
    return !sampling.local || rows <= whole_shuffle || sampling == Sampling::iid ||
           sampling == Sampling::chunked;
}

// Puts ascending rows into the order in which an epoch visits each of them once.
inline void reorder(std::vector<std::int64_t>& rows, const Sampling& sampling, std::uint64_t seed,
                    std::int64_t epoch) {
    const Rng rng(seed, sampling == Sampling::fixed ? 0 : std::uint64_t(epoch));
    if (sampling == Sampling::chunked) return shuffle_chunks(rows, sampling.chunk, rng, sampling.local);
    shuffle(rows, rng, sampling.local);
}

// Fills `order` with the rows of one epoch over {0, …, m − 1}.
inline void epoch_order(std::vector<std::int64_t>& order, std::int64_t m, const Sampling& sampling,
                        std::uint64_t seed, std::int64_t epoch) {
    order.resize(m);
    if (sampling == Sampling::iid) {
        Rng rng(seed, epoch);
        for (auto& i : order) i = rng.below(m);
        return;
    }
    std::iota(order.begin(), order.end(), 0);
    reorder(order, sampling, seed, epoch);
}

}  // namespace pegasos
