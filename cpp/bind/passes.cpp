// Rows and the passes over them.
#include "pegasos/linear/passes.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "objects.hpp"
#include "pegasos/core/batches.hpp"
#include "pegasos/linear/simplex_qp.hpp"

namespace pegasos::bind {
namespace {

template <class... Arrays>
std::vector<std::shared_ptr<MappedGuard>> guards_of(bool mapped, const Arrays&... arrays) {
    std::vector<std::shared_ptr<MappedGuard>> guards;
    if (mapped) (guards.push_back(std::make_shared<MappedGuard>(arrays.data(), arrays.nbytes())), ...);
    return guards;
}

template <class T>
RowsObject dense(nb::ndarray<const T, nb::numpy, nb::ndim<2>, nb::device::cpu> a, bool mapped) {
    if (a.shape(1) > 1 && a.stride(1) != 1) throw std::invalid_argument("dense rows must be contiguous");
    return {DenseRows<T>{a.data(), std::int64_t(a.shape(0)), std::int64_t(a.shape(1)), a.stride(0)},
            {nb::cast(a)},
            guards_of(mapped, a)};
}

template <class T, class I>
RowsObject csr(Vector<T> data, Vector<I> indices, Vector<I> indptr, std::int64_t cols, bool mapped) {
    if (indptr.shape(0) < 1) throw std::invalid_argument("indptr is empty");
    check_length(indices, std::int64_t(data.shape(0)), "indices");
    if (cols < 1) throw std::invalid_argument("there are no columns");
    return {CsrRows<T, I>{data.data(), indices.data(), indptr.data(), std::int64_t(indptr.shape(0)) - 1, cols,
                          std::int64_t(data.shape(0))},
            {nb::cast(data), nb::cast(indices), nb::cast(indptr)},
            guards_of(mapped, data, indices, indptr)};
}

Sampling order_named(const std::string& name, std::int64_t chunk) {
    const auto scheme = meaning<Sampling::Scheme>("sampling", name,
                                                  {{"iid", Sampling::iid},
                                                   {"fixed", Sampling::fixed},
                                                   {"permutation", Sampling::permutation},
                                                   {"streams", Sampling::streams},
                                                   {"chunked", Sampling::chunked},
                                                   {"subset", Sampling::subset}});
    return {scheme, std::max<std::int64_t>(chunk, 1)};
}

// What a look at every row has found.
struct InspectionObject {
    Inspection found;
    OutVector squared_norms;
};

bool torn(const RowsObject& r) {
    return std::any_of(r.guards.begin(), r.guards.end(), [](const auto& g) { return g->torn(); });
}
void refuse_torn(const RowsObject& r) {
    if (torn(r))
        throw std::invalid_argument(
            "a file that X is mapped from was cut short while it was read; write it again, and open it anew");
}

// In words, how the rows differ from those that were checked; only what can still be found is named.
std::string what_changed(const RowsObject& r) {
    std::vector<double> norms(std::size_t(r.rows()));
    const Inspection now = inspect(r.view, norms.data(), 1);
    const auto row = [](std::int64_t i) { return "row " + std::to_string(i); };
    if (now.bad_pointer_row >= 0) return "indptr is wrong at " + row(now.bad_pointer_row);
    if (now.bad_index_row >= 0)
        return row(now.bad_index_row) + " has column index " + std::to_string(now.bad_index) +
               ", outside 0 … " + std::to_string(r.cols() - 1);
    if (now.bad_value_row >= 0)
        return row(now.bad_value_row) + " is not finite at column " + std::to_string(now.bad_value_col);
    const double* before = r.norms.data();
    for (std::int64_t i = 0; i < r.rows(); ++i)
        if (norms[std::size_t(i)] != before[i]) return row(i) + " has other values";
    return "values or columns have changed places";
}

// Throws unless a pass has read what was checked.
void refuse_changed(const RowsObject& r, const Digest& read) {
    refuse_torn(r);
    if (r.digest && changed(r.view, *r.digest, read))
        throw std::invalid_argument(
            "X was changed while it was in use: " + what_changed(r) +
            ". Nothing that was computed from it can be trusted: stop whatever writes "
            "to X, or use a copy of it");
}

}  // namespace

void register_passes(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };

    nb::class_<InspectionObject>(m, "Inspection")
        .def_ro("squared_norms", &InspectionObject::squared_norms, nb::rv_policy::automatic)
        .def_prop_ro("bad_value_row", [](const InspectionObject& x) { return x.found.bad_value_row; })
        .def_prop_ro("bad_value_col", [](const InspectionObject& x) { return x.found.bad_value_col; })
        .def_prop_ro("bad_index_row", [](const InspectionObject& x) { return x.found.bad_index_row; })
        .def_prop_ro("bad_index", [](const InspectionObject& x) { return x.found.bad_index; })
        .def_prop_ro("bad_pointer_row", [](const InspectionObject& x) { return x.found.bad_pointer_row; })
        .def_prop_ro("repeated", [](const InspectionObject& x) { return x.found.repeated; });

    nb::class_<RowsObject>(m, "Rows")
        .def_static("dense", &dense<float>, strict("a"), "mapped"_a = false)
        .def_static("dense", &dense<double>, strict("a"), "mapped"_a = false)
        .def_static("csr", &csr<float, std::int32_t>, strict("data"), strict("indices"), strict("indptr"),
                    "cols"_a, "mapped"_a = false)
        .def_static("csr", &csr<float, std::int64_t>, strict("data"), strict("indices"), strict("indptr"),
                    "cols"_a, "mapped"_a = false)
        .def_static("csr", &csr<double, std::int32_t>, strict("data"), strict("indices"), strict("indptr"),
                    "cols"_a, "mapped"_a = false)
        .def_static("csr", &csr<double, std::int64_t>, strict("data"), strict("indices"), strict("indptr"),
                    "cols"_a, "mapped"_a = false)
        .def_prop_ro("rows", &RowsObject::rows)
        .def_prop_ro("cols", &RowsObject::cols)
        .def_prop_ro("nnz", &RowsObject::nnz)
        .def(
            "inspect",
            [](RowsObject& r, int threads) {
                OutVector norms = new_vector(r.rows());
                Inspection found;
                {
                    nb::gil_scoped_release release;
                    found = inspect(r.view, norms.data(), threads);
                }
                refuse_torn(r);
                r.digest = found.digest;
                r.norms = norms;
                return InspectionObject{found, std::move(norms)};
            },
            "threads"_a)
        .def(
            "verify",
            [](const RowsObject& r, int threads) {
                Digest digest;
                {
                    nb::gil_scoped_release release;
                    digest = digest_of(r.view, threads);
                }
                refuse_changed(r, digest);
            },
            "threads"_a)
        .def(
            "scores",
            [](const RowsObject& r, Matrix<double> W, Vector<double> b, int threads, Chosen index) {
                const Subset subset = subset_of(r, index);
                const int K = int(W.shape(0));
                check_shape(W, K, r.cols(), "W");
                check_length(b, K, "b");
                OutMatrix Z = raw_matrix(subset.count, K);
                nb::gil_scoped_release release;
                scores(r.view, subset, W.data(), b.data(), K, Z.data(), threads);
                return Z;
            },
            strict("W"), strict("b"), "threads"_a, nb::arg("index").noconvert() = nb::none())
        .def(
            "scores_unchecked",
            [](const RowsObject& r, Matrix<double> W, Vector<double> b, int threads) {
                const int K = int(W.shape(0));
                check_shape(W, K, r.cols(), "W");
                check_length(b, K, "b");
                OutMatrix Z = raw_matrix(r.rows(), K);
                bool good = false;
                {
                    nb::gil_scoped_release release;
                    good = scores_unchecked(r.view, W.data(), b.data(), K, Z.data(), threads);
                }
                refuse_torn(r);
                return std::tuple{std::move(Z), good};
            },
            strict("W"), strict("b"), "threads"_a)
        .def(
            "adjoint",
            [](const RowsObject& r, Matrix<double> C, int threads, Chosen index) {
                const Subset subset = subset_of(r, index);
                const int K = int(C.shape(1));
                check_length(C, subset.count, "C");
                OutMatrix W = raw_matrix(K, r.cols());
                nb::gil_scoped_release release;
                adjoint(r.view, subset, C.data(), K, W.data(), threads);
                return W;
            },
            strict("C"), "threads"_a, nb::arg("index").noconvert() = nb::none())
        .def(
            "scores_and_squares",
            [](const RowsObject& r, Matrix<double> W, Vector<double> b, Matrix<double> C, int threads) {
                const int K = int(W.shape(0));
                check_shape(W, K, r.cols(), "W");
                check_length(b, K, "b");
                check_shape(C, r.rows(), K, "C");
                OutMatrix Z = raw_matrix(r.rows(), K);
                OutVector squares = new_vector(K);
                Digest digest;
                {
                    nb::gil_scoped_release release;
                    scores_and_squares(r.view, {nullptr, r.rows()}, W.data(), b.data(), K, Z.data(), C.data(),
                                       squares.data(), threads, digest);
                }
                refuse_changed(r, digest);
                return std::tuple{std::move(Z), std::move(squares)};
            },
            strict("W"), strict("b"), strict("C"), "threads"_a)
        .def(
            "dual_model",
            [](const RowsObject& r, Matrix<double> C, Vector<double> b, int threads) {
                const int K = int(b.shape(0));
                check_shape(C, r.rows(), K, "C");
                OutMatrix W = raw_matrix(K, r.cols()), Z = raw_matrix(r.rows(), K);
                OutVector squares = new_vector(K);
                Digest digest;
                {
                    nb::gil_scoped_release release;
                    dual_model(r.view, {nullptr, r.rows()}, C.data(), b.data(), K, W.data(), squares.data(),
                               Z.data(), threads, digest);
                }
                refuse_changed(r, digest);
                return std::tuple{std::move(W), std::move(squares), std::move(Z)};
            },
            strict("C"), strict("b"), "threads"_a)
        .def(
            "gram",
            [](const RowsObject& r, Vector<double> d, int threads, Chosen index) {
                const Subset subset = subset_of(r, index);
                check_length(d, subset.count, "d");
                OutMatrix M = new_matrix(r.cols() + 1, r.cols() + 1);
                nb::gil_scoped_release release;
                gram(r.view, subset, d.data(), M.data(), threads);
                return M;
            },
            strict("d"), "threads"_a, nb::arg("index").noconvert() = nb::none())
        .def("column_scales", [](const RowsObject& r) {
            OutVector s = new_vector(r.cols());
            nb::gil_scoped_release release;
            column_scales(r.view, s.data());
            return s;
        });

    nb::class_<MappedGuard>(m, "MappedGuard")
        .def(
            "__init__",
            [](MappedGuard* self, nb::ndarray<nb::ro, nb::numpy, nb::c_contig, nb::device::cpu> a) {
                new (self) MappedGuard(a.data(), a.nbytes());
            },
            strict("a"), nb::keep_alive<1, 2>())
        .def_prop_ro("torn", &MappedGuard::torn);

    m.def(
        "epoch_order",
        [](std::int64_t rows, const std::string& sampling, std::uint64_t seed, std::int64_t epoch,
           std::int64_t chunk, std::int64_t batch, bool whole) {
            if (rows < 0) throw std::invalid_argument("rows must be at least 0");
            std::vector<std::int64_t> order;
            Batches(rows, batch, order_named(sampling, chunk), seed, whole).draw(order, epoch);
            auto* p = new std::int64_t[std::max<std::size_t>(order.size(), 1)];
            std::copy(order.begin(), order.end(), p);
            nb::capsule owner(p, [](void* q) noexcept { delete[] static_cast<std::int64_t*>(q); });
            return nb::ndarray<std::int64_t, nb::numpy, nb::ndim<1>>(p, {order.size()}, owner);
        },
        "rows"_a, "sampling"_a, "seed"_a, "epoch"_a, "chunk"_a = 1, "batch"_a = 1, "whole"_a = true);

    m.def(
        "visit_shares",
        [](std::int64_t rows, const std::string& sampling, std::uint64_t seed, std::int64_t since,
           std::int64_t until) {
            if (rows < 1 || since < 0 || until < 0)
                throw std::invalid_argument("rows must be at least 1, since and until at least 0");
            const auto share = Batches(rows, 1, order_named(sampling, 1), seed, true).shares(since, until);
            OutVector out = new_vector(rows);
            std::copy(share.begin(), share.end(), out.data());
            return out;
        },
        "rows"_a, "sampling"_a, "seed"_a, "since"_a, "until"_a);

    m.def(
        "simplex_qp",
        [](Matrix<double> H, Vector<double> b, Vector<double> start, double tolerance, std::int64_t steps) {
            const std::int64_t n = std::int64_t(b.shape(0));
            check_shape(H, n, n, "H");
            check_length(start, n, "start");
            OutVector a = new_vector(n);
            std::copy_n(start.data(), n, a.data());
            nb::gil_scoped_release release;
            simplex_qp(n, H.data(), b.data(), a.data(), tolerance, steps);
            return a;
        },
        strict("H"), strict("b"), strict("start"), "tolerance"_a, "steps"_a);
}

}  // namespace pegasos::bind
