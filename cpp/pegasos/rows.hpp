// Borrowed views of the examples, one row each. Values float or double, sparse indices 32 or 64 bits, used
// where they lie; weights are double (but see margin_lanes.hpp). Every layout offers the same operations, so
// that no solver is written twice:
//
//   dot(i, w)               ⟨w, x_i⟩
//   axpy(i, c, w)           w += c x_i
//   dot_lanes, axpy_lanes   the same for L interleaved weight vectors (simd.hpp)
//   axpy_four, dot_four     the same for four rows at once, whose numbers are given (dot_four: dense rows)
//   squared_norm(i)         ‖x_i‖²
//   prefetch(i)             ask the cache for row i, to be visited a few steps from now
//   prefetch_weights(i, …)  and for the interleaved weights row i will need, too many for the nearest cache
//
// Indices are trusted here: passes.hpp checks them once, at the border.
//
// Prefetching is always inlined: GCC takes a function that only prefetches for one without effects, and drops
// the calls.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "pegasos/simd.hpp"

namespace pegasos {

using std::int64_t;

template <class T>
struct DenseRows {
    const T* data;
    int64_t rows, cols, stride;
    const simd::Kernels<T>* k = &simd::kernels<T>();

    using Value = T;
    static constexpr bool sparse = false;

    const T* row(int64_t i) const { return data + i * stride; }
    int64_t nnz() const { return rows * cols; }

    double dot(int64_t i, const double* w) const { return k->dot(row(i), w, cols); }
    void axpy(int64_t i, double c, double* w) const { k->axpy(c, row(i), w, cols); }
    double squared_norm(int64_t i) const { return k->squared_norm(row(i), cols); }
    void dot_four(const int64_t* i, const double* w, double* out) const {
        const T* const x[4] = {row(i[0]), row(i[1]), row(i[2]), row(i[3])};
        k->dot_four(x, w, cols, out);
    }
    void axpy_four(const int64_t* i, const double* c, double* w) const {
        const T* const x[4] = {row(i[0]), row(i[1]), row(i[2]), row(i[3])};
        k->axpy_four(c, x, w, cols);
    }
    void dot_lanes(int64_t i, const double* W, int L, double* out) const {
        k->dot_lanes(row(i), W, cols, L, out);
    }
    void axpy_lanes(int64_t i, const double* c, double* W, int L) const {
        k->axpy_lanes(c, row(i), W, cols, L);
    }
    [[gnu::always_inline]] void prefetch(int64_t i) const {
        const char* p = reinterpret_cast<const char*>(row(i));
        const int64_t bytes = cols * int64_t(sizeof(T));
        for (int64_t b = 0; b < bytes && b < 512; b += 64) __builtin_prefetch(p + b);
    }
    template <class Real>
    void prefetch_weights(int64_t, const Real*, int) const {}  // they are read in order
    // Calls f(column, value) for every stored entry of row i.
    template <class F>
    void each(int64_t i, F&& f) const {
        for (int64_t j = 0; j < cols; ++j) f(j, double(row(i)[j]));
    }
};

template <class T, class I>
struct CsrRows {
    const T* data;
    const I* indices;
    const I* indptr;
    int64_t rows, cols;
    const simd::Kernels<T>* k = &simd::kernels<T>();
    bool gathers = simd::gathers();

    using Value = T;
    static constexpr bool sparse = true;

    int64_t nnz() const { return int64_t(indptr[rows]); }

    double dot(int64_t i, const double* w) const {
        const int64_t end = indptr[i + 1];
        int64_t p = indptr[i];
        if (gathers && end - p >= simd::gather_from) {
            if constexpr (std::is_same_v<I, std::int32_t>)
                return k->sparse_dot32(data + p, indices + p, end - p, w);
            else
                return k->sparse_dot64(data + p, indices + p, end - p, w);
        }
        double a0 = 0, a1 = 0, a2 = 0, a3 = 0;
        for (; p + 4 <= end; p += 4) {
            a0 += double(data[p]) * w[indices[p]];
            a1 += double(data[p + 1]) * w[indices[p + 1]];
            a2 += double(data[p + 2]) * w[indices[p + 2]];
            a3 += double(data[p + 3]) * w[indices[p + 3]];
        }
        for (; p < end; ++p) a0 += double(data[p]) * w[indices[p]];
        return (a0 + a1) + (a2 + a3);
    }
    void axpy(int64_t i, double c, double* w) const {
        const int64_t end = indptr[i + 1];
        int64_t p = indptr[i];
        if (gathers && end - p >= simd::gather_from) {
            if constexpr (std::is_same_v<I, std::int32_t>)
                return k->sparse_axpy32(c, data + p, indices + p, end - p, w);
            else
                return k->sparse_axpy64(c, data + p, indices + p, end - p, w);
        }
        for (; p < end; ++p) w[indices[p]] += c * double(data[p]);
    }
    void axpy_four(const int64_t* i, const double* c, double* w) const {
        for (int r = 0; r < 4; ++r) axpy(i[r], c[r], w);
    }
    double squared_norm(int64_t i) const {
        return k->squared_norm(data + indptr[i], int64_t(indptr[i + 1] - indptr[i]));
    }
    void dot_lanes(int64_t i, const double* W, int L, double* out) const {
        const int64_t p = indptr[i], count = int64_t(indptr[i + 1]) - p;
        if constexpr (std::is_same_v<I, std::int32_t>)
            k->sparse_dot_lanes32(data + p, indices + p, count, W, L, out);
        else
            k->sparse_dot_lanes64(data + p, indices + p, count, W, L, out);
    }
    void axpy_lanes(int64_t i, const double* c, double* W, int L) const {
        const int64_t p = indptr[i], count = int64_t(indptr[i + 1]) - p;
        if constexpr (std::is_same_v<I, std::int32_t>)
            k->sparse_axpy_lanes32(c, data + p, indices + p, count, W, L);
        else
            k->sparse_axpy_lanes64(c, data + p, indices + p, count, W, L);
    }
    [[gnu::always_inline]] void prefetch(int64_t i) const {
        // The processor follows long rows by itself.
        const int64_t p = indptr[i], end = std::min<int64_t>(indptr[i + 1], p + 256);
        constexpr int64_t line_t = 64 / sizeof(T), line_i = 64 / sizeof(I);
        for (int64_t q = p; q < end; q += line_t) __builtin_prefetch(data + q);
        for (int64_t q = p; q < end; q += line_i) __builtin_prefetch(indices + q);
    }
    template <class Real>
    [[gnu::always_inline]] void prefetch_weights(int64_t i, const Real* W, int L) const {
        for (int64_t p = indptr[i]; p < int64_t(indptr[i + 1]); ++p)
            __builtin_prefetch(W + indices[p] * int64_t(L));
    }
    template <class F>
    void each(int64_t i, F&& f) const {
        for (int64_t p = indptr[i]; p < int64_t(indptr[i + 1]); ++p) f(int64_t(indices[p]), double(data[p]));
    }
};

using AnyRows =
    std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float, std::int32_t>,
                 CsrRows<float, std::int64_t>, CsrRows<double, std::int32_t>, CsrRows<double, std::int64_t>>;

}  // namespace pegasos
