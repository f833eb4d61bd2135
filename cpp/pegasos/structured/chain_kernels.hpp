// The loops over the labels of a chain's tokens, compiled once for each instruction set.
#pragma once
#include "pegasos/structured/chain.hpp"

namespace pegasos {

// What forward–backward needs of the transitions of a pass: exp(T − shift), and the same transposed, each labels × lanes.
template <class Real>
struct ExpTransitions {
    const Real *rows, *columns;
    double shift;
};

template <class Real>
struct ChainKernels {
    // out[t] = Σ_k v_k W[id_k]: tokens × lanes. Rows of W are `stride` numbers apart; where those are fewer than lanes,
    // what is read beyond a row ends up in lanes that are no labels.
    void (*score)(const Real* W, int stride, int lanes, const TokenAttributes& x, Real* out);

    // The best labelling of tokens with these scores, and its score, with `begin` and `end` added to the first and the
    // last token. `alpha` (tokens × lanes) is working space, and may be `scores` itself. `y` null: only the score.
    Real (*decode)(const Real* scores, const Real* T, const Real* begin, const Real* end, int labels,
                   int lanes, std::int64_t tokens, Real* alpha, Label* y);

    // eˣ of `count` numbers, a multiple of label_block, less `shift`.
    void (*exponentials)(const Real* x, std::int64_t count, Real shift, Real* out);

    // log Z; `scores` become the marginals of the labels. pairs[a][b] += weight · Σ_t p(y_{t-1} = a, y_t = b) / exp(T[a][b] − shift).
    // NaN where numbers are too small for sums of products; the scores are lost then.
    double (*forward_backward)(Real* scores, const ExpTransitions<Real>& T, const Reach<Real>& reach,
                               const Real* end, int labels, int lanes, std::int64_t tokens, Real* alpha,
                               Real weight, Real* pairs);

    // W[id_k] += v_k p[t], rows of W `labels` numbers apart and those of p `lanes`, for all attributes whose id leaves the
    // remainder `part` when divided by `parts`.
    void (*add)(Real* W, int labels, int lanes, const TokenAttributes& x, const Real* p, int part, int parts);
};
template <class Real>
const ChainKernels<Real>& chain_kernels();

}  // namespace pegasos
