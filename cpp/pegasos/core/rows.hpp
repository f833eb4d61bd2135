// Borrowed views of the examples, one row each. Values float or double, sparse indices 32 or 64 bits, used
// where they lie; weights are double (but see linear/margin_lanes.hpp). Every layout offers the same operations, so
// that no solver is written twice:
//
//   dot(i, w)               ⟨w, x_i⟩;  dot_bounded: for weights without the room of a WeightBuffer
//   axpy(i, c, w)           w += c x_i
//   dot_lanes, axpy_lanes   the same for L interleaved weight vectors (simd/kernels.hpp)
//   axpy_four, dot_four     the same for four rows at once, whose numbers are given (dot_four: dense rows)
//   squared_norm(i)         ‖x_i‖²
//   prefetch(i)             ask the cache for row i, to be visited a few steps from now
//   prefetch_place(i)       and, some steps earlier, for where row i begins
//   prefetch_weights(i, …)  and for the interleaved weights row i will need, too many for the nearest cache
//
// Indices are checked once, at the border (linear/passes.hpp), and kept inside the arrays ever after (simd/columns.hpp).
//
// Prefetching is always inlined: GCC takes a function that only prefetches for one without effects, and drops
// the calls.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <variant>

#include "pegasos/simd/columns.hpp"
#include "pegasos/simd/kernels.hpp"

namespace pegasos {

using std::int64_t;

// Where number k of an array lies, for prefetching: k may be wrong, and then the address means nothing, but computing
// it as a pointer would be undefined.
template <class T>
[[gnu::always_inline]] inline const void* place(const T* array, std::uint64_t k) {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(array) + k * sizeof(T));
}

template <class T>
struct DenseRows {
    const T* data;
    int64_t rows, cols, stride;
    const simd::Kernels<T>* k = &simd::kernels<T>();

    using Value = T;
    static constexpr bool sparse = false;

    const T* row(int64_t i) const { return data + i * stride; }
    int64_t nnz() const { return rows * cols; }

    int64_t room() const { return cols; }
    double dot(int64_t i, const double* w) const { return k->dot(row(i), w, cols); }
    double dot_bounded(int64_t i, const double* w) const { return dot(i, w); }
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
    void prefetch_place(int64_t) const {}
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
    int64_t rows, cols, stored;  // stored: the length of data and indices
    int bits = int(std::bit_width(std::uint64_t(cols - 1)));
    const simd::Kernels<T>* k = &simd::kernels<T>();
    bool gathers = simd::gathers();
    int64_t usual = rows > 0 ? std::clamp<int64_t>(nnz() / rows, 1, 256) : 0;  // entries of a row

    using Value = T;
    static constexpr bool sparse = true;

    // Where the entries of row i, or of the rows i … j − 1, begin and end.
    struct Extent {
        int64_t begin, end;
        int64_t count() const { return end - begin; }
    };
    Extent extent(int64_t i, int64_t j) const {
        // A branch that is always foreseen: nothing waits for the comparisons.
        const std::uint64_t begin = read_once(indptr + i), end = read_once(indptr + j);
        if (begin <= end && end <= std::uint64_t(stored)) [[likely]]
            return {int64_t(begin), int64_t(end)};
        return {0, 0};
    }
    Extent extent(int64_t i) const { return extent(i, i + 1); }
    // Columns of the entries from p on, for weights of `room` and of `cols` numbers.
    int64_t room() const { return int64_t(1) << bits; }
    Masked<I> masked(int64_t p) const { return {indices + p, bits}; }
    Bounded<I> bounded(int64_t p) const {
        return {indices + p, std::min(std::uint64_t(cols - 1), std::uint64_t(std::numeric_limits<I>::max()))};
    }
    int64_t nnz() const { return row_pointer(indptr + rows, stored); }

    double dot(int64_t i, const double* w) const { return dot(i, w, masked(0)); }
    double dot_bounded(int64_t i, const double* w) const { return dot(i, w, bounded(0)); }
    template <class At>
    double dot(int64_t i, const double* w, At at) const {
        const auto [begin, end] = extent(i);
        if (gathers && end - begin >= simd::gather_from) {
            if constexpr (std::is_same_v<I, std::int32_t>)
                return k->sparse_dot32(data + begin, bounded(begin), end - begin, w);
            else
                return k->sparse_dot64(data + begin, bounded(begin), end - begin, w);
        }
        int64_t p = begin;
        double a0 = 0, a1 = 0, a2 = 0, a3 = 0;
        for (; p + 4 <= end; p += 4) {
            a0 += double(data[p]) * w[at[p]];
            a1 += double(data[p + 1]) * w[at[p + 1]];
            a2 += double(data[p + 2]) * w[at[p + 2]];
            a3 += double(data[p + 3]) * w[at[p + 3]];
        }
        for (; p < end; ++p) a0 += double(data[p]) * w[at[p]];
        return (a0 + a1) + (a2 + a3);
    }
    void axpy(int64_t i, double c, double* w) const {
        const auto [begin, end] = extent(i);
        if (gathers && end - begin >= simd::gather_from) {
            if constexpr (std::is_same_v<I, std::int32_t>)
                return k->sparse_axpy32(c, data + begin, bounded(begin), end - begin, w);
            else
                return k->sparse_axpy64(c, data + begin, bounded(begin), end - begin, w);
        }
        const auto at = masked(0);
        for (int64_t p = begin; p < end; ++p) w[at[p]] += c * double(data[p]);
    }
    void axpy_four(const int64_t* i, const double* c, double* w) const {
        for (int r = 0; r < 4; ++r) axpy(i[r], c[r], w);
    }
    double squared_norm(int64_t i) const {
        const Extent row = extent(i);
        return k->squared_norm(data + row.begin, row.count());
    }
    void dot_lanes(int64_t i, const double* W, int L, double* out) const {
        const Extent row = extent(i);
        if constexpr (std::is_same_v<I, std::int32_t>)
            k->sparse_dot_lanes32(data + row.begin, masked(row.begin), row.count(), W, L, out);
        else
            k->sparse_dot_lanes64(data + row.begin, masked(row.begin), row.count(), W, L, out);
    }
    void axpy_lanes(int64_t i, const double* c, double* W, int L) const {
        const Extent row = extent(i);
        if constexpr (std::is_same_v<I, std::int32_t>)
            k->sparse_axpy_lanes32(c, data + row.begin, masked(row.begin), row.count(), W, L);
        else
            k->sparse_axpy_lanes64(c, data + row.begin, masked(row.begin), row.count(), W, L);
    }
    [[gnu::always_inline]] void prefetch(int64_t i) const {
        // As much of every row, or the processor would guess wrong where the loop ends. It follows longer
        // rows by itself. Prefetching reaches nothing it must not: no check is due.
        const auto p = std::uint64_t(indptr[i]);
        constexpr std::uint64_t line_t = 64 / sizeof(T), line_i = 64 / sizeof(I);
        for (std::uint64_t q = 0; q < std::uint64_t(usual); q += line_t)
            __builtin_prefetch(place(data, p + q));
        for (std::uint64_t q = 0; q < std::uint64_t(usual); q += line_i)
            __builtin_prefetch(place(indices, p + q));
    }
    [[gnu::always_inline]] void prefetch_place(int64_t i) const { __builtin_prefetch(indptr + i); }
    template <class Real>
    [[gnu::always_inline]] void prefetch_weights(int64_t i, const Real* W, int L) const {
        const auto [begin, end] = extent(i);
        for (int64_t p = begin; p < end; ++p)
            __builtin_prefetch(place(W, std::uint64_t(indices[p]) * std::uint64_t(L)));
    }
    template <class F>
    void each(int64_t i, F&& f) const {
        const auto [begin, end] = extent(i);
        const auto at = bounded(0);
        for (int64_t p = begin; p < end; ++p) f(at[p], double(data[p]));
    }
};

using AnyRows =
    std::variant<DenseRows<float>, DenseRows<double>, CsrRows<float, std::int32_t>,
                 CsrRows<float, std::int64_t>, CsrRows<double, std::int32_t>, CsrRows<double, std::int64_t>>;

}  // namespace pegasos
