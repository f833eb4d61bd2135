// Kernel rows, blocks and scores, and the working set of SMO.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <optional>
#include <tuple>

#include "objects.hpp"
#include "pegasos/kernel/layout.hpp"
#include "pegasos/kernel/values.hpp"

namespace pegasos::bind {
namespace {

struct KernelRowsObject {
    KernelRows rows;
    RowsObject owner;
};

Kernel kernel_of(const std::string& name, double gamma, double coef0, std::int64_t degree) {
    const auto kind = meaning<KernelKind>("kernel", name,
                                          {{"linear", KernelKind::linear},
                                           {"poly", KernelKind::poly},
                                           {"sigmoid", KernelKind::sigmoid},
                                           {"rbf", KernelKind::rbf},
                                           {"laplacian", KernelKind::laplacian},
                                           {"chi2", KernelKind::chi2}});
    if (degree < 0) throw std::invalid_argument("degree must be at least 0");
    return {kind, gamma, coef0, degree};
}

void check_index(const Index& index, std::int64_t bound, const char* what) {
    for (std::size_t p = 0; p < index.shape(0); ++p)
        if (index.data()[p] < 0 || index.data()[p] >= bound) throw std::out_of_range(what);
}

template <class Real>
void block(const KernelRowsObject& x, Index a, Index b, MutableMatrix<Real> out, int threads) {
    check_index(a, x.rows.rows(), "row index");
    check_index(b, x.rows.rows(), "row index");
    if (out.shape(0) < a.shape(0) || out.shape(1) < b.shape(0))
        throw std::invalid_argument("out is too small for the block");
    nb::gil_scoped_release release;
    kernel_block<Real>(x.rows, a.data(), std::int64_t(a.shape(0)), b.data(), std::int64_t(b.shape(0)),
                       out.data(), std::int64_t(out.shape(1)), threads);
}

template <class Real>
std::vector<Real*> slot_pointers(const Index& slots, Real* base, std::int64_t capacity, std::int64_t width) {
    check_index(slots, capacity, "slot index");
    std::vector<Real*> p(slots.shape(0));
    for (std::size_t r = 0; r < p.size(); ++r) p[r] = base + slots.data()[r] * width;
    return p;
}

template <class Real>
void fill_add(const KernelRowsObject& x, MutableMatrix<Real> store, Index missing, Index missing_slots,
              Index slots, Vector<double> coef, MutableVector<double> F, int threads) {
    const std::int64_t m = x.rows.rows(), count = std::int64_t(slots.shape(0));
    check_shape(store, std::int64_t(store.shape(0)), m, "store");
    check_index(missing, m, "row index");
    check_length(missing_slots, std::int64_t(missing.shape(0)), "missing_slots");
    check_length(coef, count, "coef");
    check_length(F, m, "F");
    const auto fill = slot_pointers(missing_slots, store.data(), std::int64_t(store.shape(0)), m);
    const auto rows = slot_pointers(slots, store.data(), std::int64_t(store.shape(0)), m);
    nb::gil_scoped_release release;
    kernel_fill_add<Real>(x.rows, missing.data(), fill.data(), std::int64_t(fill.size()), rows.data(),
                          coef.data(), count, F.data(), threads);
}

OutMatrix scores(const KernelRowsObject& a, std::optional<Index> a_index, Matrix<double> coef,
                 const KernelRowsObject& x, std::optional<Index> x_index, int threads, bool single) {
    if (a.rows.cols() != x.rows.cols()) throw std::invalid_argument("rows of different widths");
    if (a_index) check_index(*a_index, a.rows.rows(), "row index");
    if (x_index) check_index(*x_index, x.rows.rows(), "row index");
    const std::int64_t count = a_index ? std::int64_t(a_index->shape(0)) : a.rows.rows();
    const std::int64_t n = x_index ? std::int64_t(x_index->shape(0)) : x.rows.rows();
    const std::int64_t outputs = std::int64_t(coef.shape(0));
    check_shape(coef, outputs, count, "coef");
    OutMatrix out = new_matrix(outputs, n);
    nb::gil_scoped_release release;
    (single ? kernel_scores<float>
            : kernel_scores<double>)(a.rows, a_index ? a_index->data() : nullptr, count, coef.data(), outputs,
                                     x.rows, x_index ? x_index->data() : nullptr, n, out.data(), threads);
    return out;
}

template <class Real>
void cross(const KernelRowsObject& a, const KernelRowsObject& x, MutableMatrix<Real> out, int threads) {
    if (a.rows.cols() != x.rows.cols()) throw std::invalid_argument("rows of different widths");
    if (std::int64_t(out.shape(0)) < a.rows.rows() || std::int64_t(out.shape(1)) < x.rows.rows())
        throw std::invalid_argument("out is too small for the values");
    nb::gil_scoped_release release;
    kernel_cross<Real>(a.rows, x.rows, out.data(), std::int64_t(out.shape(1)), threads);
}

std::tuple<OutVector, OutMatrix> pull(const KernelRowsObject& a, Vector<double> coef,
                                      const KernelRowsObject& z, int threads, bool single) {
    if (a.rows.cols() != z.rows.cols()) throw std::invalid_argument("rows of different widths");
    check_length(coef, a.rows.rows(), "coef");
    OutVector value = new_vector(z.rows.rows());
    OutMatrix towards = new_matrix(z.rows.rows(), z.rows.cols());
    {
        nb::gil_scoped_release release;
        (single ? kernel_pull<float> : kernel_pull<double>)(a.rows, coef.data(), z.rows, value.data(),
                                                            towards.data(), threads);
    }
    return {std::move(value), std::move(towards)};
}

template <class Real>
void add_slots(Matrix<Real> store, Index slots, Vector<double> coef, MutableVector<double> F, int threads) {
    const std::int64_t n = std::int64_t(store.shape(1)), count = std::int64_t(slots.shape(0));
    check_length(coef, count, "coef");
    check_length(F, n, "F");
    const auto rows = slot_pointers(slots, store.data(), std::int64_t(store.shape(0)), n);
    nb::gil_scoped_release release;
    add_rows<Real>(rows.data(), coef.data(), count, F.data(), n, threads);
}

void nonzeros(const RowsObject& x, MutableVector<std::int64_t> of_row, MutableVector<std::int64_t> of_column,
              int threads) {
    check_length(of_row, x.rows(), "of_row");
    check_length(of_column, x.cols(), "of_column");
    nb::gil_scoped_release release;
    count_nonzeros(x.view, of_row.data(), of_column.data(), threads);
}

template <class Value>
void renumbered(const RowsObject& x, Vector<std::int32_t> rank, Index indptr,
                MutableVector<std::int32_t> indices, MutableVector<Value> data, int threads) {
    check_length(rank, x.cols(), "rank");
    check_length(indptr, x.rows() + 1, "indptr");
    check_length(indices, indptr.data()[x.rows()], "indices");
    check_length(data, indptr.data()[x.rows()], "data");
    nb::gil_scoped_release release;
    renumber<Value>(x.view, rank.data(), indptr.data(), indices.data(), data.data(), threads);
}

template <class Real>
std::tuple<std::int64_t, double, double, bool> solve_block(Matrix<Real> K, Vector<double> diagonal,
                                                           MutableVector<double> g, MutableVector<double> a,
                                                           Vector<double> lo, Vector<double> hi,
                                                           std::int64_t k, double relative, double absolute,
                                                           std::int64_t max_steps, bool free_bias) {
    const std::int64_t stride = std::int64_t(K.shape(1));
    if (k < 1 || k > std::int64_t(K.shape(0)) || stride % 8 || k > stride)
        throw std::invalid_argument("K must have k rows, padded to a multiple of eight columns");
    check_length(diagonal, stride, "diagonal");
    check_length(g, stride, "g");
    check_length(a, stride, "a");
    check_length(lo, stride, "lo");
    check_length(hi, stride, "hi");
    std::vector<double> up(std::size_t(stride), 0.0), low(std::size_t(stride), 0.0);
    BlockResult r;
    {
        nb::gil_scoped_release release;
        const VectorEntry<Real>& table = kernel_table();
        r = (free_bias ? table.smo_block : table.box_block)({k, stride, K.data(), diagonal.data(), lo.data(),
                                                             hi.data(), g.data(), a.data(), up.data(),
                                                             low.data(), relative, absolute, max_steps});
    }
    return {r.steps, r.first, r.last, r.indefinite};
}

}  // namespace

void register_kernels(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };

    nb::class_<KernelRowsObject>(m, "KernelRows")
        .def(
            "__init__",
            [](KernelRowsObject* self, const RowsObject& rows, const std::string& name, double gamma,
               double coef0, std::int64_t degree, int threads) {
                new (self) KernelRowsObject{
                    KernelRows(rows.view, kernel_of(name, gamma, coef0, degree), threads), rows};
            },
            "rows"_a, "kernel"_a, "gamma"_a, "coef0"_a, "degree"_a, "threads"_a)
        .def_prop_ro("rows", [](const KernelRowsObject& x) { return x.rows.rows(); })
        .def("diagonal",
             [](const KernelRowsObject& x) {
                 OutVector d = new_vector(x.rows.rows());
                 kernel_diagonal(x.rows, d.data());
                 return d;
             })
        .def("norms",
             [](const KernelRowsObject& x) {
                 OutVector d = new_vector(x.rows.rows());
                 std::copy(x.rows.norms.begin(), x.rows.norms.end(), d.data());
                 return d;
             })
        .def("block", &block<float>, strict("a"), strict("b"), strict("out"), "threads"_a)
        .def("block", &block<double>, strict("a"), strict("b"), strict("out"), "threads"_a)
        .def("fill_add", &fill_add<float>, strict("store"), strict("missing"), strict("missing_slots"),
             strict("slots"), strict("coef"), strict("F"), "threads"_a)
        .def("fill_add", &fill_add<double>, strict("store"), strict("missing"), strict("missing_slots"),
             strict("slots"), strict("coef"), strict("F"), "threads"_a)
        .def("scores", &scores, nb::arg("a_index").noconvert().none(), strict("coef"), "x"_a,
             nb::arg("x_index").noconvert().none(), "threads"_a, "single"_a = false)
        .def("cross", &cross<float>, "x"_a, strict("out"), "threads"_a)
        .def("cross", &cross<double>, "x"_a, strict("out"), "threads"_a)
        .def("pull", &pull, strict("coef"), "z"_a, "threads"_a, "single"_a = false);

    m.def(
        "raw_matrix",
        [](std::int64_t rows, std::int64_t cols) {
            constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / sizeof(double);
            if (rows < 0 || cols < 0 || (cols > 0 && rows > most / cols)) throw std::bad_alloc();
            return raw_matrix(rows, cols);
        },
        "rows"_a, "cols"_a);
    m.def("nonzeros", &nonzeros, "rows"_a, strict("of_row"), strict("of_column"), "threads"_a);
    m.def("renumber", &renumbered<float>, "rows"_a, strict("rank"), strict("indptr"), strict("indices"),
          strict("data"), "threads"_a);
    m.def("renumber", &renumbered<double>, "rows"_a, strict("rank"), strict("indptr"), strict("indices"),
          strict("data"), "threads"_a);
    m.def("add_slots", &add_slots<float>, strict("store"), strict("slots"), strict("coef"), strict("F"),
          "threads"_a);
    m.def("add_slots", &add_slots<double>, strict("store"), strict("slots"), strict("coef"), strict("F"),
          "threads"_a);
    m.def("smo_block", &solve_block<float>, strict("K"), strict("diagonal"), strict("g"), strict("a"),
          strict("lo"), strict("hi"), "k"_a, "relative"_a, "absolute"_a, "max_steps"_a, "free_bias"_a);
    m.def("smo_block", &solve_block<double>, strict("K"), strict("diagonal"), strict("g"), strict("a"),
          strict("lo"), strict("hi"), "k"_a, "relative"_a, "absolute"_a, "max_steps"_a, "free_bias"_a);
}

}  // namespace pegasos::bind
