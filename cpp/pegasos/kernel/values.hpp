// Kernel matrices over whole sets of rows: blocks, rows that are added up as they are made, scores.
#pragma once
#include <cstdint>
#include <vector>

#include "pegasos/core/rows.hpp"
#include "pegasos/kernel/panels.hpp"

namespace pegasos {

// Rows with what a kernel needs to know of each: the squared or the absolute norm, or nothing.
struct KernelRows {
    AnyRows view;
    Kernel kernel;
    std::vector<double> norms;
    std::vector<float> norms_single;
    KernelRows(const AnyRows&, const Kernel&, int threads);
    std::int64_t rows() const;
    std::int64_t cols() const;
    bool single() const;  // whether the values are float, as single precision needs them
};

// K(x_i, x_i) of every row.
void kernel_diagonal(const KernelRows&, double* out);

// out[p * stride + q] = K(x_a[p], x_b[q]). Of a block with a = b, which is symmetric, half is copied.
template <class Real>
void kernel_block(const KernelRows&, const std::int64_t* a, std::int64_t count_a, const std::int64_t* b,
                  std::int64_t count_b, Real* out, std::int64_t stride, int threads);

// Computes the rows missing[p] of the kernel matrix into fill[p], then F += Σ_r coef[r] rows[r].
template <class Real>
void kernel_fill_add(const KernelRows&, const std::int64_t* missing, Real* const* fill,
                     std::int64_t count_missing, const Real* const* rows, const double* coef,
                     std::int64_t count, double* F, int threads);

// F += Σ_r coef[r] rows[r] for rows of n numbers that are there already.
template <class Real>
void add_rows(const Real* const* rows, const double* coef, std::int64_t count, double* F, std::int64_t n,
              int threads);

// out[o * m + j] = Σ_i coef[o * count + i] K(a_i, x_index[j]) for `outputs` sets of coefficients, kernel
// values in precision Real, sums in double; a_i are the rows of `a` that a_index names, or all.
template <class Real>
void kernel_scores(const KernelRows& a, const std::int64_t* a_index, std::int64_t count, const double* coef,
                   std::int64_t outputs, const KernelRows& x, const std::int64_t* x_index, std::int64_t m,
                   double* out, int threads);

// out[i * stride + j] = K(a_i, x_j) for all rows of both.
template <class Real>
void kernel_cross(const KernelRows& a, const KernelRows& x, Real* out, std::int64_t stride, int threads);

// value[p] = Σ_i coef[i] K(a_i, z_p) and pull[p * cols + k] = Σ_i coef[i] K(a_i, z_p) a_ik for the rows z_p
// of z, with kernels of inner products in precision Real. Sums are cut alike whatever the number of threads.
template <class Real>
void kernel_pull(const KernelRows& a, const double* coef, const KernelRows& z, double* value, double* pull,
                 int threads);

}  // namespace pegasos
