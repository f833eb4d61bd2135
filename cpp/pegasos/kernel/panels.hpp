// Kernel values K(a, x), many at once: the loops, compiled once for each instruction set.
//
//   linear     ⟨a, x⟩                     rbf         exp(−γ‖a − x‖²)
//   poly       (γ⟨a, x⟩ + c)^d            laplacian   exp(−γ‖a − x‖₁)
//   sigmoid    tanh(γ⟨a, x⟩ + c)          chi2        exp(−γ Σ_k (a_k − x_k)²/(a_k + x_k))
//
// A "panel" holds the values of a group of rows a, one a lane, against a stretch of rows x. The group's rows
// lie interleaved, packed[k * lanes + l], so that one entry of x, loaded once, meets all lanes: as fast for
// each stored entry of a sparse x as a matrix product is for each entry of a dense one. What x lacks costs
// nothing, because every kernel here is a function of a sum over the stored entries of x alone and of a norm
// of a:
//
//   ‖a − x‖²      = ‖a‖² + ‖x‖² − 2 Σ a_k x_k
//   ‖a − x‖₁      = ‖a‖₁ + Σ (|a_k − x_k| − |a_k|)
//   χ²(a, x)      = ‖a‖₁ + Σ ((a_k − x_k)²/(a_k + x_k) − a_k)      for a, x ≥ 0
//
// Every value is computed by itself, in one order: it does not depend on the group, the stretch or the
// threads. K(a, x) = K(x, a) to the last bit wherever the sum is an inner product, because what one of the
// two lacks adds nothing to it; laplacian and chi2 of sparse rows may differ there.
#pragma once
#include <cstdint>

#include "pegasos/simd/columns.hpp"

namespace pegasos {

enum class KernelKind { linear, poly, sigmoid, rbf, laplacian, chi2 };

struct Kernel {
    KernelKind kind;
    double gamma, coef0;
    std::int64_t degree;
};

// A group of lanes fills one cache line for dense rows x. For sparse ones it fills two: an entry of x and its
// column, once loaded, then serve twice as many lanes.
template <class Real>
inline constexpr int kernel_lanes = int(64 / sizeof(Real));
template <class Real>
inline constexpr int most_lanes = 2 * kernel_lanes<Real>;

template <class Value>
struct DensePanelRows {
    static constexpr int lines = 1;
    const Value* data;
    std::int64_t stride, cols;
};
template <class Value, class Index>
struct SparsePanelRows {
    static constexpr int lines = 2;
    const Value* data;
    const Index* indptr;
    Bounded<Index> columns;  // of all entries
    std::int64_t stored;     // … and their number

    [[gnu::always_inline]] std::int64_t pointer(std::int64_t i) const {
        return row_pointer(indptr + i, stored);
    }
};

// Rows x whose sums are held before the kernel function is applied to them.
inline constexpr int kernel_tile = 64;

// out[l][c] = K(lane l, x_r) for r = index[first + c] (or first + c without an index), c < count; lanes
// without a destination are left out. Within each tile, sparse rows are taken in the order given.
template <class Real>
struct PanelJob {
    const Kernel* kernel;
    const std::int64_t* index;
    std::int64_t first, count;
    const std::uint8_t* order;
    const Real *packed, *lane_norms, *row_norms;
    Real* const* out;
};

// value[l] += Σ_r coef[r] K(lane l, x_r) and pull[k * lanes + l] += Σ_r coef[r] K(lane l, x_r) x_rk over the
// rows r = first + c, c < count, for kernels of inner products.
template <class Real>
struct PullJob {
    const Kernel* kernel;
    std::int64_t first, count;
    const Real *packed, *lane_norms, *row_norms;
    const double* coef;
    double* value;
    Real* pull;
};

template <class Real, class Rows>
struct PanelEntry {
    void (*panel)(const Rows&, const PanelJob<Real>&);
    void (*pull)(const Rows&, const PullJob<Real>&);
};

// What the inner loop of SMO did on a working set, see smo_block and box_block.
struct BlockResult {
    std::int64_t steps;
    double first, last;  // the largest violation before and after
    bool indefinite;     // whether two rows showed that the kernel is not positive semi-definite
};

// A working set of k variables: maximise Σ g δ − ½ δᵀKδ with lo ≤ a + δ ≤ hi and, with a free bias, Σδ = 0,
// two variables at a time. K (k × stride) and all arrays are padded to a multiple of eight. g and a are kept
// up to date.
template <class Real>
struct BlockProblem {
    std::int64_t k, stride;
    const Real* K;
    const double *diagonal, *lo, *hi;
    double *g, *a, *up, *low;  // up, low: room for k numbers each
    double relative, absolute;
    std::int64_t max_steps;
};

template <class Real>
struct VectorEntry {
    // F[j] += Σ_r coef[r] rows[r][j] for j < n.
    void (*add)(const Real* const* rows, const double* coef, int count, double* F, std::int64_t n);
    // WSS2 (Fan, Chen & Lin 2005) until the violation is at most max(absolute, relative × the first one).
    BlockResult (*smo_block)(const BlockProblem<Real>&);
    // The same without Σδ = 0 (Steinwart, Hush & Scovel 2011): the variable that violates most, and the one
    // that gains most beside it. A violation is what one variable gains, to first order, for a unit's move.
    BlockResult (*box_block)(const BlockProblem<Real>&);
};

struct KernelTable : PanelEntry<float, DensePanelRows<float>>,
                     PanelEntry<float, SparsePanelRows<float, std::int32_t>>,
                     PanelEntry<float, SparsePanelRows<float, std::int64_t>>,
                     PanelEntry<double, DensePanelRows<float>>,
                     PanelEntry<double, DensePanelRows<double>>,
                     PanelEntry<double, SparsePanelRows<float, std::int32_t>>,
                     PanelEntry<double, SparsePanelRows<float, std::int64_t>>,
                     PanelEntry<double, SparsePanelRows<double, std::int32_t>>,
                     PanelEntry<double, SparsePanelRows<double, std::int64_t>>,
                     VectorEntry<float>,
                     VectorEntry<double> {};

const KernelTable& kernel_table();

}  // namespace pegasos
