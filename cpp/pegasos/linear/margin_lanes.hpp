// One visit of SDCA for a margin loss and eight or sixteen classes of a one-vs-rest fit side by side, in
// single precision: sixteen floats are one cache line, and all that happens to a row is a few vector
// instructions.
//
//   ℓ(z) = max of a (1 − yz) − (bend/2) a²  over  0 ≤ a ≤ most,   u = ya
//
// is what the losses it is for have in common (core/losses.hpp, MarginShape). Sums over rows are double.
// linear/sdca.hpp drives it; solvers/linear/dual_ascent.py says where it is exact enough.
#pragma once
#include <cstdint>

#include "pegasos/core/losses.hpp"
#include "pegasos/core/rows.hpp"

namespace pegasos {

// What a visit is given and what it leaves; pointers lead to as many numbers as there are lanes.
struct MarginVisit {
    MarginShape shape;
    float* W;                    // interleaved weights, with the constant feature's at the end
    float* bias;                 // … which are here
    float* u;                    // the row's dual variables
    float* mean;                 // … and their mean over the epoch, of which
    float rest;                  // this share is still to come
    const float* offset;         // added to its scores
    const float* used;           // 1 in the lanes that are classes, 0 in those that only pad
    double *value, *gap;         // sums of weighted losses and Fenchel gaps
    int own;                     // the lane of the row's class, if it is here
    float c, share, q, feature;  // weight, share in w(u), curvature q = share (‖x‖² + feature²)
    float slack;                 // scores may move by this much
    float *moved, *open;  // sums of the squared slopes of variables between their bounds, and their number
    bool settled;         // result: nothing changed, nor would it if scores moved that much
};

// For L = 8 and 16 lanes; of dense rows, and of sparse ones, whose feature at[k] has value x[k].
template <class T>
struct MarginKernels {
    void (*dense[2])(const T* x, std::int64_t n, MarginVisit&);
    void (*sparse32[2])(const T* x, Masked<std::int32_t> at, std::int64_t nnz, MarginVisit&);
    void (*sparse64[2])(const T* x, Masked<std::int64_t> at, std::int64_t nnz, MarginVisit&);
};

// Adds the squares of `rows` × L weights, each lane for itself.
using SquareLanes = void (*)(const float* W, std::int64_t rows, int L, double* squares);

// The tables for the best instruction set of this machine.
template <class T>
const MarginKernels<T>& margin_kernels();
SquareLanes square_lanes();

template <class T>
void visit_margins(const DenseRows<T>& rows, std::int64_t i, int L, MarginVisit& visit) {
    margin_kernels<T>().dense[L > 8](rows.row(i), rows.cols, visit);
}
template <class T, class I>
void visit_margins(const CsrRows<T, I>& rows, std::int64_t i, int L, MarginVisit& visit) {
    const auto row = rows.extent(i);
    const T* x = rows.data + row.begin;
    if constexpr (std::is_same_v<I, std::int32_t>)
        margin_kernels<T>().sparse32[L > 8](x, rows.masked(row.begin), row.count(), visit);
    else
        margin_kernels<T>().sparse64[L > 8](x, rows.masked(row.begin), row.count(), visit);
}

}  // namespace pegasos
