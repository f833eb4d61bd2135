// Vector kernels, compiled once for each instruction set and chosen when the library is loaded.
//
// A "lane" is one output (one class of a one-vs-rest fit, say). The weights of L lanes are interleaved, W[j*L
// + l], so that one loaded feature serves all lanes; L is a multiple of 8 doubles, one cache line.
#pragma once
#include <cstdint>

#include "pegasos/simd/columns.hpp"

namespace pegasos::simd {

inline constexpr int lane_block = 8;

template <class T>
struct Kernels {
    double (*dot)(const T* x, const double* w, std::int64_t n);
    void (*axpy)(double c, const T* x, double* w, std::int64_t n);
    double (*squared_norm)(const T* x, std::int64_t n);
    // sums[0] += Σ x_p and sums[1] += Σ p x_p for n words of T's size, p = at, at + 1, … (core/digest.hpp)
    void (*digest)(const void* x, std::int64_t n, std::int64_t at, std::uint64_t* sums);
    // The same for four rows at once: the weights are loaded, and stored, once for all.
    void (*dot_four)(const T* const* x, const double* w, std::int64_t n, double* out);
    void (*axpy_four)(const double* c, const T* const* x, double* w, std::int64_t n);
    // ⟨w, x⟩ and w += c x for a sparse row, by gathering and scattering; null where that does not pay
    // (gathers()).
    double (*sparse_dot32)(const T* x, Bounded<std::int32_t> at, std::int64_t nnz, const double* w);
    double (*sparse_dot64)(const T* x, Bounded<std::int64_t> at, std::int64_t nnz, const double* w);
    void (*sparse_axpy32)(double c, const T* x, Bounded<std::int32_t> at, std::int64_t nnz, double* w);
    void (*sparse_axpy64)(double c, const T* x, Bounded<std::int64_t> at, std::int64_t nnz, double* w);
    // out[l] = Σ_j x[j] W[j*L + l]
    void (*dot_lanes)(const T* x, const double* W, std::int64_t n, int L, double* out);
    // W[j*L + l] += c[l] x[j]
    void (*axpy_lanes)(const double* c, const T* x, double* W, std::int64_t n, int L);
    // The same for sparse rows: feature at[k] has value x[k].
    void (*sparse_dot_lanes32)(const T* x, Masked<std::int32_t> at, std::int64_t nnz, const double* W, int L,
                               double* out);
    void (*sparse_dot_lanes64)(const T* x, Masked<std::int64_t> at, std::int64_t nnz, const double* W, int L,
                               double* out);
    void (*sparse_axpy_lanes32)(const double* c, const T* x, Masked<std::int32_t> at, std::int64_t nnz,
                                double* W, int L);
    void (*sparse_axpy_lanes64)(const double* c, const T* x, Masked<std::int64_t> at, std::int64_t nnz,
                                double* W, int L);
};

// M (N × N) += AᵀA on and above the diagonal, for A (rows × N); N is a multiple of lane_block.
using Syrk = void (*)(const double* A, std::int64_t rows, int N, double* M);
Syrk syrk();

// The table for the best instruction set of this machine.
template <class T>
const Kernels<T>& kernels();

// Its name: "baseline", "v3" (AVX2 + FMA) or "v4" (AVX-512).
const char* instruction_set();

// The environment variable PEGASOS_SIMD (baseline, avx2, avx512) asks for one that is not the best. Throws if it says
// something else, or names what this machine has not.
void check_wanted();

// Whether this machine gathers faster than it loads one by one: Intel's with AVX-512, but for those that had
// to be slowed down (Downfall, 2023).
bool gathers();

// Entries a sparse row must have for gathering to pay.
inline constexpr std::int64_t gather_from = 24;

}  // namespace pegasos::simd
