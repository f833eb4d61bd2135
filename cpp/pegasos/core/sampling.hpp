// The order in which an epoch visits the rows; a function of (seed, epoch) alone, so that a resumed run
// continues it. It is drawn from all rows at once: rows that lie together in a file are often alike (in
// class, time, source), and visited together they would pull the weights their way together.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "pegasos/core/memory.hpp"
#include "pegasos/core/rng.hpp"

namespace pegasos {

struct Sampling {
    // iid: m independent draws. permutation: uniform, a new one each epoch; fixed: one for all. streams: a new one that
    // keeps a few neighbours of short rows near each other; chunked: one that stays in a part of the file for a while.
    // subset: independent batches, each a uniform subset (core/batches.hpp). given: the rows
    // as they lie, which were put into the order of the visits beforehand.
    enum Scheme { iid, fixed, permutation, streams, chunked, subset, given };

    // Implicit, so that a scheme is a sampling.
    Sampling(Scheme s, std::int64_t rows = 1) : scheme(s), chunk(rows) {}

    Scheme scheme;
    std::int64_t chunk;  // rows of a chunk, of streams and chunked: see shuffle_chunks
};
inline bool operator==(const Sampling& sampling, Sampling::Scheme scheme) {
    return sampling.scheme == scheme;
}

// Rows of a chunk of streams, where there are m rows with nnz entries: one, unless rows are short and too many
// for the caches. An epoch that fetched those from memory one at a time, each with its target and other
// numbers, would take twice as long.
inline std::int64_t few_rows(std::int64_t m, std::int64_t nnz) {
    const bool apart = nnz <= (1 << 22) || nnz >= 40 * m;
    return apart ? 1 : std::clamp<std::int64_t>(256 * m / nnz, 1, 16);
}

// Rows of a chunk on disk that holds about 2¹⁶ entries (half a megabyte or so); nnz entries in m rows.
inline std::int64_t chunk_rows(std::int64_t m, std::int64_t nnz) {
    return std::max<std::int64_t>(
        1, std::int64_t(double(m) * (1 << 16) / double(std::max<std::int64_t>({1, m, nnz}))));
}

inline void fisher_yates(std::int64_t* list, std::int64_t count, Rng& rng) {
    for (std::int64_t i = count - 1; i > 0; --i) std::swap(list[i], list[rng.below(i + 1)]);
}

// Shuffles v, ascending rows, so that an epoch has to do with a part of the data at a time. Chunks are so
// many consecutive rows; the rows of up to `together` chunks at a time are shuffled among themselves. Those
// are taken from all over the file, one at random from each of `together` equal parts, so that every time is
// much like the whole file, be it sorted by class or by anything else.
inline void shuffle_chunks(std::vector<std::int64_t>& v, std::int64_t rows, std::int64_t together, Rng& rng) {
    std::vector<std::int64_t> begin;  // of each chunk in v
    for (std::size_t at = 0; at < v.size();) {
        begin.push_back(std::int64_t(at));
        const std::int64_t end = (v[at] / rows + 1) * rows;
        while (at < v.size() && v[at] < end) ++at;
    }
    const std::int64_t chunks = std::int64_t(begin.size()), times = (chunks + together - 1) / together;
    begin.push_back(std::int64_t(v.size()));
    // When each chunk is visited. Parts that are a chunk short give nothing at one time, drawn at random.
    std::vector<std::int64_t> when(std::size_t(chunks), 0), times_of_part(std::size_t(times), 0);
    for (std::int64_t part = 0; part < together; ++part) {
        const std::int64_t first = chunks * part / together, last = chunks * (part + 1) / together;
        std::iota(times_of_part.begin(), times_of_part.end(), 0);
        fisher_yates(times_of_part.data(), times, rng);
        std::copy_n(times_of_part.begin(), last - first, when.begin() + first);
    }
    // Chunks are read in order and sorted by time; those of a time are then shuffled.
    const LaneBuffer<std::int64_t> from(v.begin(), v.end());
    std::vector<std::int64_t> end(std::size_t(times), 0);
    for (std::int64_t k = 0; k < chunks; ++k) end[when[k]] += begin[k + 1] - begin[k];
    std::exclusive_scan(end.begin(), end.end(), end.begin(), std::int64_t(0));
    for (std::int64_t k = 0; k < chunks; ++k)
        for (std::int64_t at = begin[k]; at < begin[k + 1]; ++at) v[end[when[k]]++] = from[at];
    for (std::int64_t time = 0, first = 0; time < times; first = end[time++])
        fisher_yates(v.data() + first, end[time] - first, rng);
}

// Puts ascending rows into the order in which an epoch visits each of them once.
inline void reorder(std::vector<std::int64_t>& rows, const Sampling& sampling, std::uint64_t seed,
                    std::int64_t epoch) {
    Rng rng(seed, sampling == Sampling::fixed ? 0 : std::uint64_t(epoch));
    const bool from_disk = sampling == Sampling::chunked;
    if (from_disk || (sampling == Sampling::streams && sampling.chunk > 1))
        return shuffle_chunks(rows, sampling.chunk, from_disk ? 256 : 1024, rng);
    fisher_yates(rows.data(), std::int64_t(rows.size()), rng);
}

// Fills `order` with `count` independent draws from {0, …, m − 1}.
inline void draw_rows(std::vector<std::int64_t>& order, std::int64_t m, std::int64_t count,
                      std::uint64_t seed, std::int64_t epoch) {
    Rng rng(seed, std::uint64_t(epoch));
    order.resize(std::size_t(count));
    for (auto& i : order) i = rng.below(m);
}

// Fills `order` with the rows of one epoch over {0, …, m − 1}.
inline void epoch_order(std::vector<std::int64_t>& order, std::int64_t m, const Sampling& sampling,
                        std::uint64_t seed, std::int64_t epoch) {
    if (sampling == Sampling::iid) return draw_rows(order, m, m, seed, epoch);
    order.resize(m);
    std::iota(order.begin(), order.end(), 0);
    if (!(sampling == Sampling::given)) reorder(order, sampling, seed, epoch);
}

}  // namespace pegasos
