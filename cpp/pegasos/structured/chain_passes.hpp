// Whole passes over a corpus at fixed weights: best labellings, losses, sums over all labellings. Sequences are shared
// among threads; what comes out does not depend on how many there are.
#pragma once
#include "pegasos/structured/chain.hpp"
#include "pegasos/structured/chain_kernels.hpp"

namespace pegasos {

// Working space for one sequence of at most so many tokens.
template <class Real>
struct ChainSpace {
    ChainSpace(const Chain& chain, std::int64_t tokens)
        : scores(std::size_t(tokens * chain.shape.lanes)),
          alpha(std::size_t(tokens * (chain.shape.lanes + 1) + 2 * chain.shape.lanes)),
          begin(chain.reach.begin(), chain.reach.end()),
          end(chain.end.begin(), chain.end.end()),
          reach{begin.data(), chain.reach_count, chain.reach_back} {}
    ChainSpace(const ChainSpace&) = delete;
    ChainSpace& operator=(const ChainSpace&) = delete;

    LaneBuffer<Real> scores, alpha, begin, end;  // the first row of begin is what sequences may begin with
    Reach<Real> reach;
};

// Labellings of some sequences, one after the other.
struct PlaneList {
    const std::int64_t* rows;    // the sequence of each
    const std::int64_t* starts;  // where each begins in labels
    const Label* labels;
    std::int64_t count;
};

// Adds scale · cost[gold_t] to the scores of every token: what is right gets nothing.
template <class Real>
void add_costs(const Chain& chain, std::int64_t i, Real scale, Real* scores) {
    const int P = chain.shape.lanes;
    const Label* gold = chain.gold(i);
    for (std::int64_t t = 0; t < chain.length(i); ++t) {
        const double* cost = chain.cost.data() + std::int64_t(gold[t]) * P;
        for (int l = 0; l < P; ++l) scores[t * P + l] += scale * Real(cost[l]);
    }
}

// The score of a labelling whose tokens have these scores.
template <class Real>
double path_score(const Chain& chain, const Real* scores, const Real* T, std::int64_t tokens,
                  const Label* y) {
    const int P = chain.shape.lanes;
    double sum = 0.0;
    for (std::int64_t t = 0; t < tokens; ++t) {
        sum += double(scores[t * P + y[t]]);
        if (t > 0) sum += double(T[std::int64_t(y[t - 1]) * P + y[t]]);
    }
    return sum;
}

// Σ_t cost[gold_t][y_t]
double hamming_cost(const Chain& chain, std::int64_t i, const Label* y);

// The best labelling of each sequence. The number of the first sequence for which none is allowed; −1: there is none
// such.
std::int64_t best_labellings(const Chain&, const double* W, int threads, Label* y);

// max_y [cost(gold, y) + ⟨W, φ(y) − φ(gold)⟩] of each sequence and, if `cut` is not null, the labelling it is reached at.
void hinge_losses(const Chain&, const double* W, int threads, double* losses, Label* cut);

// Σ_p share_p ψ_p, added to W; and the cost of each plane.
void add_planes(const Chain&, const PlaneList&, const double* share, double* W);
void plane_costs(const Chain&, const PlaneList&, double* cost);

// ⟨W, ψ⟩ of labellings of the whole corpus (count × tokens), each sequence times its weight.
void labelling_products(const Chain&, const double* W, const double* weight, const Label* labellings,
                        std::int64_t count, int threads, double* out);

// log Z − ⟨W, φ(gold)⟩ of each sequence, and G += Σ_i weight_i (E φ − φ(gold)).
void log_losses(const Chain&, const double* W, const double* weight, int threads, double* losses, double* G);

// p(y_t = l) for all tokens and labels (tokens × labels). Returns as best_labellings does.
std::int64_t marginals(const Chain&, const double* W, int threads, double* out);

// Transitions as forward_backward wants them; `rows` and `columns` have room for labels × lanes.
template <class Real>
ExpTransitions<Real> exp_transitions(const Chain& chain, const Real* T, Real* rows, Real* columns) {
    const int L = chain.shape.labels, P = chain.shape.lanes;
    Real shift = Real(forbidden);
    for (int a = 0; a < L; ++a)
        for (int b = 0; b < L; ++b) shift = std::max(shift, T[a * P + b]);
    if (!(double(shift) > no_path)) shift = 0;  // no transition is allowed: sequences of one token remain
    chain_kernels<Real>().exponentials(T, std::int64_t(L) * P, shift, rows);
    for (int a = 0; a < L; ++a) {
        for (int b = L; b < P; ++b) rows[a * P + b] = columns[a * P + b] = 0;
        for (int b = 0; b < L; ++b) columns[a * P + b] = rows[b * P + a];
    }
    return {rows, columns, double(shift)};
}

// forward_backward by logarithms, for what sums of products are too small for: slow, and for any weights. `pairs` are
// probabilities here, added as they are.
template <class Real>
double log_forward_backward(const Chain& chain, Real* scores, const Real* T, std::int64_t tokens,
                            double weight, double* pairs);

}  // namespace pegasos
