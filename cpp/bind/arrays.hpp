// NumPy arrays as pointers and back. Arguments are never converted: a wrong dtype or layout is an error, not
// a copy.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

namespace pegasos::bind {

template <class T>
using Vector = nb::ndarray<const T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutVector = nb::ndarray<double, nb::numpy, nb::ndim<1>, nb::c_contig>;
using OutMatrix = nb::ndarray<double, nb::numpy, nb::ndim<2>, nb::c_contig>;

inline OutVector new_vector(std::int64_t n) {
    double* p = new double[std::max<std::int64_t>(n, 1)]();
    return OutVector(p, {std::size_t(n)},
                     nb::capsule(p, [](void* q) noexcept { delete[] static_cast<double*>(q); }));
}
inline OutMatrix new_matrix(std::int64_t rows, std::int64_t cols) {
    double* p = new double[std::max<std::int64_t>(rows * cols, 1)]();
    return OutMatrix(p, {std::size_t(rows), std::size_t(cols)},
                     nb::capsule(p, [](void* q) noexcept { delete[] static_cast<double*>(q); }));
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

void register_kernel_steps(nb::module_&);
void register_kernels(nb::module_&);
void register_lasvm(nb::module_&);
void register_losses(nb::module_&);
void register_passes(nb::module_&);
void register_solvers(nb::module_&);
void register_svmlight(nb::module_&);

}  // namespace pegasos::bind
