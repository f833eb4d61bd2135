// NumPy arrays as pointers and back. Arguments are never converted: a wrong dtype or layout is an error, not
// a copy.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pegasos/core/memory.hpp"

namespace nb = nanobind;

namespace pegasos::bind {

template <class T>
using Vector = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableVector = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableMatrix = nb::ndarray<T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Index = Vector<std::int64_t>;  // numbers of rows
using OutVector = nb::ndarray<double, nb::numpy, nb::ndim<1>, nb::c_contig>;
using OutMatrix = nb::ndarray<double, nb::numpy, nb::ndim<2>, nb::c_contig>;

inline nb::capsule owner(double* p) {
    return nb::capsule(p, [](void* q) noexcept { release(q); });
}
inline OutVector new_vector(std::int64_t n) {
    double* p = static_cast<double*>(allocate(std::size_t(n) * sizeof(double)));
    std::fill_n(p, n, 0.0);
    return OutVector(p, {std::size_t(n)}, owner(p));
}
inline OutVector copied(const std::vector<double>& v) {
    OutVector out = new_vector(std::int64_t(v.size()));
    std::copy(v.begin(), v.end(), out.data());
    return out;
}
// For what writes every entry.
inline OutMatrix raw_matrix(std::int64_t rows, std::int64_t cols) {
    double* p = static_cast<double*>(allocate(std::size_t(rows) * std::size_t(cols) * sizeof(double)));
    return OutMatrix(p, {std::size_t(rows), std::size_t(cols)}, owner(p));
}
inline OutMatrix new_matrix(std::int64_t rows, std::int64_t cols) {
    OutMatrix A = raw_matrix(rows, cols);
    std::fill_n(A.data(), rows * cols, 0.0);
    return A;
}

template <class A>
void check_length(const A& a, std::int64_t expected, const char* name) {
    if (std::int64_t(a.shape(0)) != expected)
        throw std::invalid_argument(std::string(name) + " has length " + std::to_string(a.shape(0)) +
                                    ", not " + std::to_string(expected));
}
template <class A>
void check_shape(const A& a, std::int64_t rows, std::int64_t cols, const char* name) {
    check_length(a, rows, name);
    if (std::int64_t(a.shape(1)) != cols)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(a.shape(1)) +
                                    " columns, not " + std::to_string(cols));
}

// What a word means, of those that are known; another word is an error, not some default.
template <class T>
T meaning(const char* what, const std::string& word, std::initializer_list<std::pair<const char*, T>> known) {
    std::string names;
    for (const auto& [name, value] : known) {
        if (word == name) return value;
        names += (names.empty() ? "" : ", ") + std::string(name);
    }
    throw std::invalid_argument(std::string(what) + " '" + word + "' is none of " + names);
}

void register_chain(nb::module_&);
void register_kernel_steps(nb::module_&);
void register_kernels(nb::module_&);
void register_lasvm(nb::module_&);
void register_losses(nb::module_&);
void register_pairs(nb::module_&);
void register_passes(nb::module_&);
void register_second_order(nb::module_&);
void register_sequences(nb::module_&);
void register_solvers(nb::module_&);
void register_svmlight(nb::module_&);

}  // namespace pegasos::bind
