// The loops of box_path.hpp, in whose notation they are written.
#pragma once
#include <cstdint>

namespace pegasos {

// One box for each of so many rows, and two directions: the best so far, and the one being made.
struct BoxRows {
    std::int64_t count;
    const double *h, *s, *p, *score;
    double *a, *t, *z, *v;
    double *over_a, *over_t, *over_az, *over_tv, *inverse;  // 1/a, 1/t, 1/(az), 1/(tv), Θ⁻¹
    double *cl, *cu, *da, *next_cl, *next_cu, *next_da;
};

// Compiled once for each instruction set, as the kernels of simd.hpp are. Sums over rows are added to what is
// there.
struct BoxKernels {
    // Σ az + tv: all complementarities.
    double (*products)(const BoxRows&);
    // The same after a step of that length along the direction being made.
    double (*products_after)(const BoxRows&, double step);
    // d += Θ⁻¹. Starts a step: all of its divisions are done here, and the direction aims at products of
    // zero.
    void (*begin)(const BoxRows&, double* d);
    // q += s(a + Θ⁻¹r)
    void (*right_side)(const BoxRows&, double* q);
    // Δa for the change of the scores.
    void (*complete)(const BoxRows&, const double* d_score);
    // The largest share of a, t, z or v that the direction being made takes away; NaN if it is not finite.
    double (*largest_share)(const BoxRows&);
    // Mehrotra: products of `target`, allowing for what the direction being made has left out.
    void (*correct)(const BoxRows&, double target);
    // Gondzio: pull products which end far from `target`, after a step of length `reach` along the best
    // direction, towards it.
    void (*centre)(const BoxRows&, double target, double reach);
    // A step along the best direction.
    void (*move)(const BoxRows&, double step);
    // Σ h (p − s score)₊
    double (*loss)(const BoxRows&);
};
const BoxKernels& box_kernels();

}  // namespace pegasos
