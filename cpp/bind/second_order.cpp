// The second-order methods' side of the core: normal equations, and the steps of the interior point method.
#include <algorithm>
#include <string_view>

#include "objects.hpp"
#include "pegasos/linear/box_steps.hpp"

namespace pegasos::bind {
namespace {

// A function that a Cython module hands to C, in a capsule named after its type. Fortran's integers must be
// C's int: there are LAPACKs with longer ones.
decltype(Lapack::potrf) potrf_in(const nb::capsule& capsule) {
    const std::string_view wanted = "void (char *, int *, ", name = capsule.name() ? capsule.name() : "";
    const bool good = name.starts_with(wanted) && name.ends_with(" *, int *, int *)") &&
                      std::count(name.begin(), name.end(), ',') == 4;
    if (!good) throw std::invalid_argument("LAPACK's dpotrf has type '" + std::string(name) + "'");
    return reinterpret_cast<decltype(Lapack::potrf)>(capsule.data());
}

[[noreturn]] void refuse_indefinite() {
    PyErr_SetString(nb::module_::import_("numpy.linalg").attr("LinAlgError").ptr(),
                    "the normal matrix is not positive definite");
    throw nb::python_error();
}

}  // namespace

void register_second_order(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };

    nb::class_<Lapack>(m, "Lapack")
        .def(
            "__init__", [](Lapack* self, nb::capsule potrf) { new (self) Lapack{potrf_in(potrf)}; },
            "potrf"_a);

    m.def(
        "solve_normal",
        [](const Lapack& lapack, Matrix<double> M, Vector<double> r) {
            const std::int64_t n = std::int64_t(r.shape(0));
            check_shape(M, n, n, "M");
            OutVector x = new_vector(n);
            bool good = false;
            {
                nb::gil_scoped_release release;
                const NormalSolver solver(lapack, M.data(), n);
                if ((good = solver.good())) solver.solve(r.data(), x.data());
            }
            if (!good) refuse_indefinite();
            return x;
        },
        "lapack"_a, strict("M"), strict("r"));

    nb::class_<BoxSteps>(m, "BoxSteps")
        .def(
            "__init__",
            [](BoxSteps* self, const Lapack& lapack, const RowsObject& rows, Chosen index, bool bias,
               int threads, Matrix<double> h, Matrix<double> s, Matrix<double> p, Vector<double> R,
               Vector<double> beta, double nearness) {
                const Subset subset = subset_of(rows, index);
                if (subset.count < 1) throw std::invalid_argument("there are no rows");
                Design design{rows.view, {}, subset.count, rows.cols(), bias, threads};
                if (index) design.index.assign(index->data(), index->data() + index->shape(0));
                const std::int64_t boxes = std::int64_t(h.shape(0));
                if (boxes < 1) throw std::invalid_argument("there are no boxes");
                check_shape(h, boxes, subset.count, "h");
                check_shape(s, boxes, subset.count, "s");
                check_shape(p, boxes, subset.count, "p");
                check_length(R, design.width(), "R");
                check_length(beta, design.width(), "beta");
                nb::gil_scoped_release release;
                new (self) BoxSteps(lapack, std::move(design), boxes, h.data(), s.data(), p.data(), R.data(),
                                    beta.data(), nearness);
            },
            "lapack"_a, "rows"_a, nb::arg("index").noconvert().none(), "bias"_a, "threads"_a, strict("h"),
            strict("s"), strict("p"), strict("R"), strict("beta"), "nearness"_a, nb::keep_alive<1, 3>())
        .def("step",
             [](BoxSteps& b) {
                 bool good = false;
                 {
                     nb::gil_scoped_release release;
                     good = b.step();
                 }
                 if (!good) refuse_indefinite();
             })
        .def_prop_ro("rows", [](const BoxSteps& b) { return b.design().count; })
        .def_prop_ro("gap", [](const BoxSteps& b) { return b.path().gap(); })
        .def_prop_ro("loss", [](const BoxSteps& b) { return b.path().loss(); })
        .def_prop_ro("relative_gap", &BoxSteps::relative_gap)
        .def_prop_ro("length", &BoxSteps::length)
        .def_prop_ro("steps", &BoxSteps::steps)
        .def("beta", [](const BoxSteps& b) { return copied(b.beta()); })
        .def("duals",
             [](const BoxSteps& b) {
                 OutVector u = new_vector(b.design().count);
                 nb::gil_scoped_release release;
                 b.duals(u.data());
                 return u;
             })
        .def("path", [](const BoxSteps& b) { return copied(b.path().state()); })
        .def(
            "restore",
            [](BoxSteps& b, Vector<double> path, Vector<double> beta, double length, std::int64_t steps) {
                check_length(path, b.path().state_size(), "path");
                check_length(beta, b.design().width(), "beta");
                b.restore(path.data(), beta.data(), length, steps);
            },
            strict("path"), strict("beta"), "length"_a, "steps"_a);
}

}  // namespace pegasos::bind
