// The serial steps of kernel Pegasos and kernel SDCA, on a block of rows.
//
//   min_w (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, φ(x_i)⟩),   w = Σ_i coef_i φ(x_i),   ⟨φ(a), φ(x)⟩ = K(a, x)
//
// Given: the next rows of an epoch's order, their scores Σ_j coef_j K(x_j, x_i), and their part of the kernel
// matrix. Result: what is to be added to their coefficients. Inside the block the algorithm runs row by row
// on the block's own scores; all other scores are brought up to date by the caller, with the kernel rows of
// what has changed. The decisions are those of the serial algorithms (Shalev-Shwartz, Singer, Srebro & Cotter
// 2011, section 4; Hsieh et al. 2008), while kernel values are computed as fast as a matrix product.
//
// A constant feature of value B adds B² to every kernel value: it is kept as a sum of coefficients, and K is
// left alone.
#pragma once
#include <cstdint>

#include "pegasos/core/losses.hpp"

namespace pegasos {

template <class Real>
struct KernelBlock {
    std::int64_t count, stride;
    const Real* K;             // count × stride; null: one mini-batch, whose scores stay as they are
    const std::int64_t* rows;  // their numbers; one may come twice
    double* score;             // of each place in the block, without the constant feature
    double* change;            // out: of each place's coefficient
};

// Where Pegasos is, all in doubles so that it is saved and restored as one array. Python's Progress
// (solvers/kernel/pegasos.py) has the same names in the same order.
struct PegasosProgress {
    double visits;               // rows visited
    double steps;                // mini-batches
    double total;                // Σ of all coefficients
    double pi;                   // what projections have shrunk the past by
    double norm;                 // ‖v‖², for projections
    double bias;                 // learnt by sub-gradients
    double carried;              // Σ of the scales of all iterates, for averages
    double draws, next0, next1;  // random iterates: draws made, and the next steps to keep
    double folded;               // what all else that is unscaled is to be multiplied by: a vanishing π
    double passed;               // Σ of the scales of all iterates, in units of what was there at the start
    double bias_sum;             // Σ of their biases
};
inline constexpr int progress_size = sizeof(PegasosProgress) / sizeof(double);

// Everything is kept unscaled, as for linear Pegasos: w = v π/(λΩ), v = Σ_i c_i U_i φ(x_i), Ω = t0 + rows
// visited, so that at t = 1 (Ω = 0) every score is 0 and the hinge loss is violated.
struct KernelPegasos {
    const double *y, *c;  // targets; weights with mean 1
    double* U;            // sums of slopes, in units of 1/π
    double *lag, *sum;    // for averages, else null: Σ_t w_t is sum + carried·U − lag, in the units of U
    double* random[2];    // two random iterates, in the units of U times the scale, else null
    std::int64_t rows;    // length of all these
    double lam, t0, radius, feature;
    std::int64_t batch_size;
    bool subgradient;  // whether b is learnt
    double bias_rate;  // by steps of bias_rate/√t
    std::uint64_t seed;
};
template <class Real>
void pegasos_steps(const AnyLoss&, const KernelPegasos&, const KernelBlock<Real>&, PegasosProgress&);

// Each visit maximises the dual over one u_i; coef_i = unit c_i u_i, unit = 1/(λM). z = score + B² sum +
// offset.
struct KernelSdca {
    const double *y, *c;
    double* u;
    double unit, feature, offset;
};
// Returns the new sum of coefficients.
template <class Real>
double sdca_steps(const AnyLoss&, const KernelSdca&, const KernelBlock<Real>&, double sum);

}  // namespace pegasos
