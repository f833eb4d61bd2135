// One-vs-one decisions, and small machines with the hinge loss.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <optional>
#include <tuple>

#include "objects.hpp"
#include "pegasos/kernel/pair_votes.hpp"
#include "pegasos/kernel/whole_smo.hpp"

namespace pegasos::bind {
namespace {

void check_starts(const Index& starts, std::int64_t end) {
    const std::int64_t* s = starts.data();
    const std::size_t k = starts.shape(0);
    if (k < 2 || s[0] != 0 || s[k - 1] != end)
        throw std::invalid_argument("starts should run from 0 to the end");
    for (std::size_t c = 1; c < k; ++c)
        if (s[c] < s[c - 1]) throw std::invalid_argument("starts should not decrease");
}

PairMachine machine_of(const Matrix<double>& coef, const Index& starts, const Vector<double>& bias) {
    const std::int64_t k = std::int64_t(starts.shape(0)) - 1, vectors = std::int64_t(coef.shape(1));
    check_starts(starts, vectors);
    check_shape(coef, k - 1, vectors, "coef");
    const PairMachine m{k, vectors, coef.data(), starts.data(), bias.data()};
    check_length(bias, m.pairs(), "bias");
    return m;
}

template <class Real>
void check_values(const PairMachine& m, const Matrix<Real>& K, std::int64_t rows) {
    check_length(K, m.vectors, "K");
    const std::int64_t stride = std::int64_t(K.shape(1));
    if (rows < 0 || rows > stride || stride % 8)
        throw std::invalid_argument("K must have a column for each row, padded to a multiple of eight");
}

template <class Real>
std::int64_t winners(Matrix<Real> K, std::int64_t rows, Matrix<double> coef, Index starts,
                     Vector<double> bias, Index rank, MutableVector<std::int64_t> out, int threads) {
    const PairMachine m = machine_of(coef, starts, bias);
    check_values(m, K, rows);
    check_length(rank, m.classes, "rank");
    check_length(out, rows, "out");
    nb::gil_scoped_release release;
    return pair_winners<Real>(m, K.data(), std::int64_t(K.shape(1)), rows, rank.data(), out.data(), threads);
}

template <class Real>
void decisions(Matrix<Real> K, std::int64_t rows, Matrix<double> coef, Index starts, Vector<double> bias,
               MutableMatrix<double> out, int threads) {
    const PairMachine m = machine_of(coef, starts, bias);
    check_values(m, K, rows);
    check_shape(out, rows, m.classes, "out");
    nb::gil_scoped_release release;
    pair_decisions<Real>(m, K.data(), std::int64_t(K.shape(1)), rows, out.data(), threads);
}

template <class Real>
void scores(Matrix<Real> K, std::int64_t rows, Matrix<double> coef, Index starts, Vector<double> bias,
            MutableMatrix<double> out, int threads) {
    const PairMachine m = machine_of(coef, starts, bias);
    check_values(m, K, rows);
    check_shape(out, rows, m.pairs(), "out");
    nb::gil_scoped_release release;
    pair_scores<Real>(m, K.data(), std::int64_t(K.shape(1)), rows, out.data(), threads);
}

// The solver and the arrays that it writes to: those of the parts that it may visit.
struct WholeSMOObject {
    WholeSMO smo;
    std::int64_t begin = 0, count = 0;
    MutableVector<double> goal{}, violation{}, primal{}, dual{}, bias{};
    MutableVector<std::int64_t> steps{};
    MutableVector<std::int8_t> over{};
    PartStates states() const {
        return {goal.data(), violation.data(), primal.data(), dual.data(),
                bias.data(), steps.data(),     over.data(),   begin};
    }
    void check(std::int64_t part) const {
        if (part < begin || part >= begin + count) throw std::out_of_range("part");
    }
};

void look_at(WholeSMOObject& self, std::int64_t begin, MutableVector<double> goal,
             MutableVector<double> violation, MutableVector<double> primal, MutableVector<double> dual,
             MutableVector<double> bias, MutableVector<std::int64_t> steps, MutableVector<std::int8_t> over) {
    const std::int64_t count = std::int64_t(goal.shape(0));
    check_length(violation, count, "violation");
    check_length(primal, count, "primal");
    check_length(dual, count, "dual");
    check_length(bias, count, "bias");
    check_length(steps, count, "steps");
    check_length(over, count, "over");
    if (begin < 0) throw std::out_of_range("begin");
    self.begin = begin;
    self.count = count;
    self.goal = std::move(goal);
    self.violation = std::move(violation);
    self.primal = std::move(primal);
    self.dual = std::move(dual);
    self.bias = std::move(bias);
    self.steps = std::move(steps);
    self.over = std::move(over);
}

int visit(WholeSMOObject& self, Matrix<double> K, Vector<double> y, Vector<double> weight,
          MutableVector<double> alpha, std::int64_t p) {
    const std::int64_t n = std::int64_t(y.shape(0)), stride = std::int64_t(K.shape(1));
    if (n < 1 || std::int64_t(K.shape(0)) < n || stride % 8 || stride < n)
        throw std::invalid_argument(
            "K must have a row for each target, padded to a multiple of eight columns");
    check_length(weight, n, "weight");
    check_length(alpha, n, "alpha");
    self.check(p);
    nb::gil_scoped_release release;
    return int(self.smo.visit({n, stride, K.data(), y.data(), weight.data(), alpha.data()}, self.states(),
                              p - self.begin));
}

PairProblem problem_of(const Index& starts, const Vector<double>& weight,
                       const MutableMatrix<double>& table) {
    const std::int64_t k = std::int64_t(starts.shape(0)) - 1, m = std::int64_t(table.shape(1));
    check_starts(starts, m);
    check_shape(table, k - 1, m, "table");
    check_length(weight, m, "weight");
    return {k, starts.data(), weight.data(), table.data()};
}

int pair(WholeSMOObject& self, Index starts, Vector<double> weight, MutableMatrix<double> table,
         std::int64_t i, std::int64_t j, Matrix<double> K) {
    const PairProblem x = problem_of(starts, weight, table);
    if (i < 0 || i >= j || j >= x.classes) throw std::out_of_range("classes");
    self.check(x.number(i, j));
    const std::int64_t n = x.starts[i + 1] - x.starts[i] + x.starts[j + 1] - x.starts[j];
    const std::int64_t stride = std::int64_t(K.shape(1));
    if (n < 1 || std::int64_t(K.shape(0)) < n || stride % 8 || stride < n)
        throw std::invalid_argument("K must have a row for each row, padded to a multiple of eight columns");
    nb::gil_scoped_release release;
    return int(visit_pair(self.smo, x, self.states(), i, j, K.data(), stride));
}

std::tuple<std::int64_t, int> pairs(WholeSMOObject& self, Index starts, Vector<double> weight,
                                    MutableMatrix<double> table, std::int64_t i, std::int64_t first,
                                    std::int64_t last, Matrix<double> own, Matrix<double> strip,
                                    Vector<double> others, Index offsets, std::int64_t budget) {
    const PairProblem x = problem_of(starts, weight, table);
    const std::int64_t* s = x.starts;
    if (i < 0 || i >= first || first >= last || last > x.classes) throw std::out_of_range("classes");
    self.check(x.number(i, first));
    self.check(x.number(i, last - 1));
    const auto holds = [](const Matrix<double>& K, std::int64_t rows, std::int64_t cols) {
        return std::int64_t(K.shape(0)) >= rows && std::int64_t(K.shape(1)) >= cols;
    };
    const std::int64_t n = s[i + 1] - s[i];
    if (!holds(own, n, n) || !holds(strip, n, s[last] - s[first]))
        throw std::invalid_argument("own or strip is too small");
    check_length(offsets, last - first, "offsets");
    for (std::int64_t j = first; j < last; ++j) {
        const std::int64_t rows = s[j + 1] - s[j], at = offsets.data()[j - first];
        if (at < 0 || at + rows * ((rows + 7) / 8 * 8) > std::int64_t(others.shape(0)))
            throw std::out_of_range("offsets");
    }
    const PairStrip strips{i,
                           first,
                           last,
                           own.data(),
                           strip.data(),
                           others.data(),
                           std::int64_t(own.shape(1)),
                           std::int64_t(strip.shape(1)),
                           offsets.data()};
    Visit how = Visit::rests;
    std::int64_t next = 0;
    {
        nb::gil_scoped_release release;
        next = visit_pairs(self.smo, x, self.states(), strips, self.smo.work + budget, how);
    }
    return {next, int(how)};
}

}  // namespace

void register_pairs(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };

    m.def("pair_winners", &winners<float>, strict("K"), "rows"_a, strict("coef"), strict("starts"),
          strict("bias"), strict("rank"), strict("out"), "threads"_a);
    m.def("pair_winners", &winners<double>, strict("K"), "rows"_a, strict("coef"), strict("starts"),
          strict("bias"), strict("rank"), strict("out"), "threads"_a);
    m.def("pair_decisions", &decisions<float>, strict("K"), "rows"_a, strict("coef"), strict("starts"),
          strict("bias"), strict("out"), "threads"_a);
    m.def("pair_decisions", &decisions<double>, strict("K"), "rows"_a, strict("coef"), strict("starts"),
          strict("bias"), strict("out"), "threads"_a);
    m.def("pair_scores", &scores<float>, strict("K"), "rows"_a, strict("coef"), strict("starts"),
          strict("bias"), strict("out"), "threads"_a);
    m.def("pair_scores", &scores<double>, strict("K"), "rows"_a, strict("coef"), strict("starts"),
          strict("bias"), strict("out"), "threads"_a);

    nb::class_<WholeSMOObject>(m, "WholeSMO")
        .def(
            "__init__",
            [](WholeSMOObject* self, double C, double lam, double total, double tol, std::int64_t max_steps,
               std::int64_t piece, std::int64_t beyond, double shift, bool free_bias) {
                if (piece < 1 || piece > std::numeric_limits<int>::max())
                    throw std::invalid_argument("piece must be positive");
                new (self) WholeSMOObject{
                    WholeSMO({C, lam, total, tol, max_steps, piece, beyond, shift, free_bias})};
            },
            "C"_a, "lam"_a, "total"_a, "tol"_a, "max_steps"_a, "piece"_a, "beyond"_a, "shift"_a,
            "free_bias"_a)
        .def("look_at", &look_at, "begin"_a, strict("goal"), strict("violation"), strict("primal"),
             strict("dual"), strict("bias"), strict("steps"), strict("over"))
        .def_prop_ro("values", [](const WholeSMOObject& x) { return x.smo.values; })
        .def_prop_ro("work", [](const WholeSMOObject& x) { return x.smo.work; })
        .def("visit", &visit, strict("K"), strict("y"), strict("weight"), strict("alpha"), "part"_a)
        .def("visit_pair", &pair, strict("starts"), strict("weight"), strict("table"), "i"_a, "j"_a,
             strict("K"))
        .def("visit_pairs", &pairs, strict("starts"), strict("weight"), strict("table"), "i"_a, "first"_a,
             "last"_a, strict("own"), strict("strip"), strict("others"), strict("offsets"), "budget"_a);
}

}  // namespace pegasos::bind
