// Decisions of one-vs-one machines: a decision function for each pair of classes i < j,
//
//   f_ij(x) = Σ_{v of i} a_{j−1,v} K(x_v, x) + Σ_{v of j} a_{i,v} K(x_v, x) + b_ij,   positive for i,
//
// with the support vectors class by class, as LIBSVM has them. Kernel values are given; each class's share of
// a function is a small matrix product, and no table of pairs × support vectors is ever made.
#pragma once
#include <cstdint>

namespace pegasos {

struct PairMachine {
    std::int64_t classes, vectors;
    const double* coef;          // (classes − 1) × vectors
    const std::int64_t* starts;  // where each class's support vectors begin, and their number
    const double* bias;          // of the pairs (0, 1), (0, 2), …, (1, 2), …
    std::int64_t pairs() const { return classes * (classes - 1) / 2; }
};

// Rows that are decided about together: K[v * lanes + l] is K(x_v, x_l). Lanes are 1, 8 or 16; those from
// `count` on are not looked at.
inline constexpr int pair_lanes = 16;
struct PairRows {
    const double* K;
    int lanes, count;
};

// What all pairs say of each class c and row l, at [c * lanes + l]: how often it wins, and by how much in
// total. Scores of zero are won by the class of higher `rank`, or without ranks by the first.
struct PairTally {
    const std::int64_t* rank;
    double *wins, *sums;
};

struct PairTable {
    void (*tally)(const PairMachine&, const PairRows&, const PairTally&);
    // out[l * pairs + p] = f_p(x_l)
    void (*scores)(const PairMachine&, const PairRows&, double* out);
};
const PairTable& pair_table();

// --- blocks of rows: K[v * stride + r] is K(x_v, x_r) ----------------------------------------------------

// The class of every row: the one that wins most pairs, of several the one of least rank. Returns the first
// row with a score that is not finite, or −1.
template <class Real>
std::int64_t pair_winners(const PairMachine&, const Real* K, std::int64_t stride, std::int64_t rows,
                          const std::int64_t* rank, std::int64_t* winner, int threads);

// out[r * classes + c]: how many pairs class c wins, and a fraction below ½ that says by how much.
template <class Real>
void pair_decisions(const PairMachine&, const Real* K, std::int64_t stride, std::int64_t rows, double* out,
                    int threads);

// out[r * pairs + p] = f_p(x_r)
template <class Real>
void pair_scores(const PairMachine&, const Real* K, std::int64_t stride, std::int64_t rows, double* out,
                 int threads);

}  // namespace pegasos
