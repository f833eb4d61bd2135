// A digest of borrowed rows, by which a later pass can tell whether they are still what was checked.
//
// Of every array, taken as unsigned words x_p modulo 2³² or 2⁶⁴:  Σ x_p  and  Σ p x_p. The second sees
// numbers that change places. Both are sums over the entries, so that any cut of the rows gives the same
// digest, and both take additions only: over stretches that a pass has in the cache anyway they cost next to
// nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pegasos/core/rows.hpp"

namespace pegasos {

struct Digest {
    std::uint64_t values[2] = {}, columns[2] = {}, pointers[2] = {};

    void operator+=(const Digest& other) {
        for (int k = 0; k < 2; ++k) {
            values[k] += other.values[k];
            columns[k] += other.columns[k];
            pointers[k] += other.pointers[k];
        }
    }
};

// Adds the sums of n numbers, the first of which is number `at` of its array.
template <class T>
void digest_numbers(const T* x, int64_t n, int64_t at, std::uint64_t* sums) {
    using Alike = std::conditional_t<sizeof(T) == 4, float, double>;
    simd::kernels<Alike>().digest(x, n, at, sums);
}

// Adds the rows first … last − 1.
template <class T>
void digest_rows(const DenseRows<T>& rows, int64_t first, int64_t last, Digest& digest) {
    if (rows.stride == rows.cols)
        return digest_numbers(rows.row(first), (last - first) * rows.cols, first * rows.cols, digest.values);
    for (int64_t i = first; i < last; ++i)
        digest_numbers(rows.row(i), rows.cols, i * rows.cols, digest.values);
}
template <class T, class I>
void digest_rows(const CsrRows<T, I>& rows, int64_t first, int64_t last, Digest& digest) {
    const auto all = rows.extent(first, last);
    digest_numbers(rows.data + all.begin, all.count(), all.begin, digest.values);
    digest_numbers(rows.indices + all.begin, all.count(), all.begin, digest.columns);
    digest_numbers(rows.indptr + first + 1, last - first, first + 1, digest.pointers);
}

// Whether two digests of these rows are equal: sums modulo 2³² may have been added up differently.
inline bool same_sums(const std::uint64_t* a, const std::uint64_t* b, std::size_t size) {
    const std::uint64_t bits = size == 4 ? UINT32_MAX : UINT64_MAX;
    return (((a[0] ^ b[0]) | (a[1] ^ b[1])) & bits) == 0;
}
template <class T>
bool same_digest(const DenseRows<T>&, const Digest& a, const Digest& b) {
    return same_sums(a.values, b.values, sizeof(T));
}
template <class T, class I>
bool same_digest(const CsrRows<T, I>&, const Digest& a, const Digest& b) {
    return same_sums(a.values, b.values, sizeof(T)) && same_sums(a.columns, b.columns, sizeof(I)) &&
           same_sums(a.pointers, b.pointers, sizeof(I));
}

}  // namespace pegasos
