// The Moreau envelope of a piecewise linear loss around a dual point u0, with width δ > 0:
//
//   ψ(z) = max_u −ℓ*(−u) − zu − (δ/2)(u − u0)²,   ψ′(z) = −u(z)
//
// It is smooth, at most δ(u − u0)²/2 below ℓ, and its slopes u are always dual feasible. The losses it is for
// share the form of core/losses.hpp's Piecewise, ℓ(z) = max over lo ≤ u ≤ hi of (y − z)u − ε|u|, so that u(z) is u0 + (y − z)/δ, pulled towards 0 by ε/δ and clipped. ψ″ is 1/δ where u lies inside a piece
// on which that is linear, and 0 where u sits in a corner.
#pragma once
#include <cstdint>

#include "pegasos/core/losses.hpp"

namespace pegasos {

template <class Loss>
concept PiecewiseLinear = requires(const Loss& l) { l.piecewise(); };

// The rows of a problem: scores, targets, weights h and centres u0.
struct EnvelopeRows {
    std::int64_t count;
    const double *z, *y, *h, *u0;
    double delta;
};

struct EnvelopeSums {
    double loss = 0, conjugate = 0;  // Σ h ℓ(z) and Σ h (−ℓ*(−u)), both without smoothing
};

// Compiled once for each instruction set, as the kernels of simd/kernels.hpp are.
struct EnvelopeKernels {
    // u = u(z) and curvature = hψ″(z) of every row.
    EnvelopeSums (*look)(const Piecewise&, const EnvelopeRows&, double* u, double* curvature);
    // Σ h u(z + t dz) dz: minus the slope of Σ hψ along dz.
    double (*slope)(const Piecewise&, const EnvelopeRows&, const double* dz, double t);
};
const EnvelopeKernels& envelope();

}  // namespace pegasos
