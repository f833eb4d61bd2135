// The loops of kernel/pair_votes.hpp over a few rows, compiled with PEGASOS_ISA set to the name of the instruction
// set this copy is for.
#include "pegasos/kernel/pair_votes.hpp"
#include "pegasos/simd/vectors.hpp"

namespace pegasos {
namespace {

using simd::B;
using simd::load;
using simd::store;
using simd::Vec;
using std::int64_t;

// Classes whose pairs with as many others are looked at together: enough to read the coefficients in long
// stretches, few enough for their shares to stay in a near cache.
constexpr int tile_of_one = 64;
template <int lanes>
inline constexpr int tile_of = lanes == 8 ? 32 : 16;

// The number of the pair (i, j), minus j.
int64_t before(int64_t i, int64_t classes) { return i * (2 * classes - i - 1) / 2 - i - 1; }

// --- several rows: they lie side by side -----------------------------------------------------------------

// out[q][·] = Σ_v coef[q * width + v] K[v][·], of `together` functions.
template <int lanes, int together>
void shares_of(const double* coef, int64_t width, const double* K, int64_t n, double* out) {
    constexpr int V = lanes / B;
    Vec sum[together][V] = {};
    for (int64_t v = 0; v < n; ++v)
        for (int u = 0; u < V; ++u) {
            const Vec k = load(K + v * lanes + u * B);
#pragma GCC unroll 4
            for (int q = 0; q < together; ++q) sum[q][u] += coef[q * width + v] * k;
        }
    for (int q = 0; q < together; ++q)
        for (int u = 0; u < V; ++u) store(out + q * lanes + u * B, sum[q][u]);
}

// The shares of one class's n support vectors in `count` functions.
template <int lanes>
void shares(const double* coef, int64_t width, const double* K, int64_t n, int64_t count, double* out) {
    int64_t q = 0;
    for (; q + 4 <= count; q += 4) shares_of<lanes, 4>(coef + q * width, width, K, n, out + q * lanes);
    for (; q < count; ++q) shares_of<lanes, 1>(coef + q * width, width, K, n, out + q * lanes);
}

// Calls f(i, j, p, scores) for every pair p = (i, j), each class's pairs in increasing order.
template <int lanes, class F>
void each_pair(const PairMachine& m, const double* K, F&& f) {
    constexpr int tile = tile_of<lanes>, V = lanes / B;
    alignas(64) double of_first[tile][tile][lanes], of_second[tile][tile][lanes];
    const int64_t k = m.classes;
    const auto size = [&](int64_t c) { return m.starts[c + 1] - m.starts[c]; };
    for (int64_t i0 = 0; i0 < k; i0 += tile)
        for (int64_t j0 = i0; j0 < k; j0 += tile) {
            const int64_t i1 = i0 + tile < k ? i0 + tile : k, j1 = j0 + tile < k ? j0 + tile : k;
            for (int64_t i = i0; i < i1; ++i) {
                const int64_t from = j0 > i ? j0 : i + 1;
                if (from < j1)
                    shares<lanes>(m.coef + (from - 1) * m.vectors + m.starts[i], m.vectors,
                                  K + m.starts[i] * lanes, size(i), j1 - from, of_first[i - i0][from - j0]);
            }
            for (int64_t j = j0; j < j1; ++j) {
                const int64_t end = i1 < j ? i1 : j;
                if (i0 < end)
                    shares<lanes>(m.coef + i0 * m.vectors + m.starts[j], m.vectors, K + m.starts[j] * lanes,
                                  size(j), end - i0, of_second[j - j0][0]);
            }
            for (int64_t i = i0; i < i1; ++i)
                for (int64_t j = j0 > i ? j0 : i + 1; j < j1; ++j) {
                    const int64_t p = before(i, k) + j;
                    Vec score[V];
                    for (int u = 0; u < V; ++u)
                        score[u] = (load(of_first[i - i0][j - j0] + u * B) +
                                    load(of_second[j - j0][i - i0] + u * B)) +
                                   m.bias[p];
                    f(i, j, p, score);
                }
        }
}

// One where a score is won by the first class of its pair.
Vec won(Vec score, Vec at_zero) {
    const Vec zero{};
    const Vec above = score > zero ? zero + 1.0 : zero;
    return score == zero ? at_zero : above;
}

template <int lanes>
void tally_of(const PairMachine& m, const PairRows& x, const PairTally& t) {
    each_pair<lanes>(m, x.K, [&](int64_t i, int64_t j, int64_t, const Vec* score) {
        const Vec at_zero = Vec{} + (!t.rank || t.rank[i] > t.rank[j] ? 1.0 : 0.0);
        for (int u = 0; u < lanes / B; ++u) {
            const int64_t of_i = i * lanes + u * B, of_j = j * lanes + u * B;
            const Vec first = won(score[u], at_zero);
            store(t.wins + of_i, load(t.wins + of_i) + first);
            store(t.wins + of_j, load(t.wins + of_j) + (1.0 - first));
            store(t.sums + of_i, load(t.sums + of_i) + score[u]);
            store(t.sums + of_j, load(t.sums + of_j) - score[u]);
        }
    });
}

template <int lanes>
void scores_of(const PairMachine& m, const PairRows& x, double* out) {
    const int64_t pairs = m.pairs();
    each_pair<lanes>(m, x.K, [&](int64_t, int64_t, int64_t p, const Vec* score) {
        for (int l = 0; l < x.count; ++l) out[l * pairs + p] = score[l / B][l % B];
    });
}

// --- one row: the pairs of a class lie side by side ------------------------------------------------------

// out[(c − first) * step] = Σ coef[v] K[v] over the support vectors v of class c, for first ≤ c < last. Those
// of the line of coefficients that comes soon are fetched meanwhile.
void class_sums(const double* coef, const double* K, const int64_t* starts, int64_t first, int64_t last,
                double* out, int64_t step, int64_t width) {
    for (int64_t v = starts[first]; v < starts[last]; v += B) __builtin_prefetch(coef + 4 * width + v);
    for (int64_t c = first; c < last; ++c, out += step) {
        int64_t v = starts[c];
        const int64_t end = starts[c + 1];
        double total = 0;
        if (end - v >= B) {
            Vec sum{};
            for (; v + B <= end; v += B) sum += load(coef + v) * load(K + v);
            total = simd::sum(sum);
        }
        for (; v < end; ++v) total += coef[v] * K[v];
        *out = total;
    }
}

// Calls f(i, j, p, n, scores) for the pairs p = (i, j), (i, j + 1), … of all classes i, n ≤ 8 at a time; what
// follows the first n scores is zero.
template <class F>
void each_stretch(const PairMachine& m, const double* K, F&& f) {
    constexpr int tile = tile_of_one;
    alignas(64) double of_first[tile][tile + B], of_second[tile][tile + B];
    const int64_t k = m.classes;
    for (int64_t i0 = 0; i0 < k; i0 += tile)
        for (int64_t j0 = i0; j0 < k; j0 += tile) {
            const int64_t i1 = i0 + tile < k ? i0 + tile : k, j1 = j0 + tile < k ? j0 + tile : k;
            for (int64_t j = j0 > 0 ? j0 : 1; j < j1; ++j)
                class_sums(m.coef + (j - 1) * m.vectors, K, m.starts, i0, i1 < j ? i1 : j,
                           &of_first[0][j - j0], tile + B, m.vectors);
            for (int64_t i = i0; i < i1 && i + 1 < k; ++i) {
                const int64_t from = j0 > i ? j0 : i + 1;
                class_sums(m.coef + i * m.vectors, K, m.starts, from, j1, &of_second[i - i0][from - j0], 1,
                           m.vectors);
            }
            for (int64_t i = i0; i < i1; ++i)
                for (int64_t j = j0 > i ? j0 : i + 1; j < j1; j += B) {
                    const int n = int(j1 - j < B ? j1 - j : B);
                    const double *first = &of_first[i - i0][j - j0], *second = &of_second[i - i0][j - j0];
                    const double* bias = m.bias + before(i, k) + j;
                    Vec score{};
                    if (n == B)
                        score = (load(first) + load(second)) + load(bias);
                    else
                        for (int u = 0; u < n; ++u) score[u] = (first[u] + second[u]) + bias[u];
                    f(i, j, before(i, k) + j, n, score);
                }
        }
}

void tally_of_one(const PairMachine& m, const PairRows& x, const PairTally& t) {
    each_stretch(m, x.K, [&](int64_t i, int64_t j, int64_t, int n, Vec score) {
        Vec at_zero = Vec{} + 1.0;
        if (t.rank)
            for (int u = 0; u < n; ++u) at_zero[u] = t.rank[i] > t.rank[j + u] ? 1.0 : 0.0;
        const Vec first = won(score, at_zero);
        if (n == B) {
            t.wins[i] += simd::sum(first);
            t.sums[i] += simd::sum(score);
            store(t.wins + j, load(t.wins + j) + (1.0 - first));
            store(t.sums + j, load(t.sums + j) - score);
            return;
        }
        for (int u = 0; u < n; ++u) {
            t.wins[i] += first[u];
            t.sums[i] += score[u];
            t.wins[j + u] += 1.0 - first[u];
            t.sums[j + u] -= score[u];
        }
    });
}

void scores_of_one(const PairMachine& m, const PairRows& x, double* out) {
    each_stretch(m, x.K, [&](int64_t, int64_t, int64_t p, int n, Vec score) {
        for (int u = 0; u < n; ++u) out[p + u] = score[u];
    });
}

}  // namespace

extern const PairTable PEGASOS_TABLE(pairs);
const PairTable PEGASOS_TABLE(pairs) = {
    [](const PairMachine& m, const PairRows& x, const PairTally& t) {
        for (int64_t at = 0; at < m.classes * x.lanes; ++at) t.wins[at] = t.sums[at] = 0;
        (x.lanes == 1 ? tally_of_one : x.lanes == 8 ? tally_of<8> : tally_of<16>)(m, x, t);
    },
    [](const PairMachine& m, const PairRows& x, double* out) {
        (x.lanes == 1 ? scores_of_one : x.lanes == 8 ? scores_of<8> : scores_of<16>)(m, x, out);
    },
};

}  // namespace pegasos
