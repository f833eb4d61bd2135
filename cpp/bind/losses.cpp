// Losses as objects with element-wise functions on arrays.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "objects.hpp"
#include "pegasos/core/bias.hpp"
#include "pegasos/linear/envelope.hpp"

namespace pegasos::bind {
namespace {

struct NamedLoss {
    AnyLoss loss;
    bool parametric;
};

AnyLoss make_loss(const std::string& name, std::optional<double> parameter) {
    const double p = parameter.value_or(0.0);
    const auto [loss, parametric] =
        meaning<NamedLoss>("loss", name,
                           {{"hinge", {Hinge{}, false}},
                            {"squared_hinge", {SquaredHinge{}, false}},
                            {"smoothed_hinge", {SmoothedHinge{{}, p}, true}},
                            {"log", {Log{}, false}},
                            {"epsilon_insensitive", {EpsilonInsensitive{p}, true}},
                            {"squared_epsilon_insensitive", {SquaredEpsilonInsensitive{p}, true}},
                            {"squared", {Squared{}, false}},
                            {"huber", {Huber{p}, true}},
                            {"quantile", {Quantile{p}, true}}});
    if (parametric != parameter.has_value())
        throw std::invalid_argument("loss '" + name + (parametric ? "' needs a" : "' has no") + " parameter");
    return loss;
}

// out[i] = f(loss, a[i], y[i])
template <class F>
OutVector map(const LossObject& self, const Vector<double>& a, const Vector<double>& y, F&& f) {
    check_length(y, std::int64_t(a.shape(0)), "y");
    OutVector out = new_vector(std::int64_t(a.shape(0)));
    const double *pa = a.data(), *py = y.data();
    double* po = out.data();
    const std::size_t n = a.shape(0);
    nb::gil_scoped_release release;
    std::visit(
        [&](const auto& l) {
            for (std::size_t i = 0; i < n; ++i) po[i] = f(l, pa[i], py[i]);
        },
        self.loss);
    return out;
}

// out[i] = f(loss, row i of a, label i)
template <class F>
OutVector map_rows(const JointLossObject& self, const Matrix<double>& a, const Vector<std::int32_t>& label,
                   F&& f) {
    check_shape(a, std::int64_t(label.shape(0)), self.classes(), "scores");
    check_labels(label, self.classes());
    OutVector out = new_vector(std::int64_t(a.shape(0)));
    const double* pa = a.data();
    double* po = out.data();
    const std::int32_t* py = label.data();
    const std::size_t n = a.shape(0), K = a.shape(1);
    nb::gil_scoped_release release;
    std::visit(
        [&](const auto& l) {
            for (std::size_t i = 0; i < n; ++i) po[i] = f(l, pa + i * K, py[i]);
        },
        self.loss);
    return out;
}

std::tuple<double, double, bool> best_offset(const LossObject& self, const Vector<double>& z,
                                             const Vector<double>& y, const Vector<double>& c, double start) {
    const std::size_t n = z.shape(0);
    check_length(y, std::int64_t(n), "y");
    check_length(c, std::int64_t(n), "weight");
    const double *pz = z.data(), *py = y.data(), *pc = c.data();
    nb::gil_scoped_release release;
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += pc[i];
    return std::visit(
        [&](const auto& l) {
            const auto term = [&](std::int64_t i, double b) { return pc[i] * l.slope(pz[i] + b, py[i]); };
            const Crossing at = zero_crossing_of_sum(std::int64_t(n), term, start, total);
            return std::tuple{at.lo, at.hi, at.flat};
        },
        self.loss);
}

EnvelopeRows envelope_rows(const Vector<double>& z, const Vector<double>& y, const Vector<double>& h,
                           const Vector<double>& u0, double delta) {
    const auto n = std::int64_t(z.shape(0));
    check_length(y, n, "y");
    check_length(h, n, "weight");
    check_length(u0, n, "u0");
    if (!(delta > 0)) throw std::invalid_argument("delta must be positive");
    return {n, z.data(), y.data(), h.data(), u0.data(), delta};
}

Piecewise piecewise_of(const LossObject& self) {
    return std::visit(
        [](const auto& l) -> Piecewise {
            if constexpr (PiecewiseLinear<std::decay_t<decltype(l)>>)
                return l.piecewise();
            else
                throw std::invalid_argument("the loss is not piecewise linear");
        },
        self.loss);
}

std::tuple<OutVector, OutVector, double, double> smooth(const LossObject& self, const Vector<double>& z,
                                                        const Vector<double>& y, const Vector<double>& h,
                                                        const Vector<double>& u0, double delta) {
    const EnvelopeRows rows = envelope_rows(z, y, h, u0, delta);
    OutVector u = new_vector(rows.count), curvature = new_vector(rows.count);
    double *pu = u.data(), *pc = curvature.data();
    const Piecewise shape = piecewise_of(self);
    EnvelopeSums sums;
    {
        nb::gil_scoped_release release;
        sums = envelope().look(shape, rows, pu, pc);
    }
    return {std::move(u), std::move(curvature), sums.loss, sums.conjugate};
}

double smooth_slope(const LossObject& self, const Vector<double>& z, const Vector<double>& y,
                    const Vector<double>& h, const Vector<double>& u0, double delta, const Vector<double>& dz,
                    double t) {
    const EnvelopeRows rows = envelope_rows(z, y, h, u0, delta);
    check_length(dz, rows.count, "dz");
    const double* pd = dz.data();
    const Piecewise shape = piecewise_of(self);
    nb::gil_scoped_release release;
    return envelope().slope(shape, rows, pd, t);
}

}  // namespace

void register_losses(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };

    nb::class_<LossObject>(m, "Loss")
        .def(
            "__init__",
            [](LossObject* self, const std::string& name, std::optional<double> parameter) {
                new (self) LossObject{make_loss(name, parameter)};
            },
            "name"_a, "parameter"_a.none())
        .def_prop_ro("single",
                     [](const LossObject& s) {
                         return std::visit(
                             [](const auto& l) { return MarginShaped<std::decay_t<decltype(l)>>; }, s.loss);
                     })
        .def(
            "value",
            [](const LossObject& s, Vector<double> z, Vector<double> y) {
                return map(s, z, y, [](const auto& l, double a, double b) { return l.value(a, b); });
            },
            strict("z"), strict("y"))
        .def(
            "slope",
            [](const LossObject& s, Vector<double> z, Vector<double> y) {
                return map(s, z, y, [](const auto& l, double a, double b) { return l.slope(a, b); });
            },
            strict("z"), strict("y"))
        .def(
            "curvature",
            [](const LossObject& s, Vector<double> z, Vector<double> y) {
                return map(s, z, y, [](const auto& l, double a, double b) { return l.curvature(a, b); });
            },
            strict("z"), strict("y"))
        .def(
            "conjugate",
            [](const LossObject& s, Vector<double> u, Vector<double> y) {
                return map(s, u, y, [](const auto& l, double a, double b) { return l.conjugate(a, b); });
            },
            strict("u"), strict("y"))
        .def(
            "clip",
            [](const LossObject& s, Vector<double> u, Vector<double> y) {
                return map(s, u, y, [](const auto& l, double a, double b) {
                    return std::clamp(a, l.lower(b), l.upper(b));
                });
            },
            strict("u"), strict("y"))
        .def(
            "dual_step",
            [](const LossObject& s, double u0, double z, double y, double q) {
                return std::visit([&](const auto& l) { return l.dual_step(u0, z, y, q); }, s.loss);
            },
            "u0"_a, "z"_a, "y"_a, "q"_a)
        .def("best_offset", &best_offset, strict("z"), strict("y"), strict("weight"), "start"_a)
        .def("smooth", &smooth, strict("z"), strict("y"), strict("weight"), strict("u0"), "delta"_a)
        .def("smooth_slope", &smooth_slope, strict("z"), strict("y"), strict("weight"), strict("u0"),
             "delta"_a, strict("dz"), "t"_a);

    nb::class_<JointLossObject>(m, "JointLoss")
        .def_static(
            "crammer_singer",
            [](Matrix<double> cost) {
                check_shape(cost, std::int64_t(cost.shape(0)), std::int64_t(cost.shape(0)), "cost");
                return JointLossObject{
                    CrammerSinger{int(cost.shape(0)), {cost.data(), cost.data() + cost.size()}}};
            },
            strict("cost"))
        .def_static(
            "multinomial", [](int classes) { return JointLossObject{Multinomial{classes}}; }, "classes"_a)
        .def_prop_ro("classes", &JointLossObject::classes)
        .def(
            "value",
            [](const JointLossObject& s, Matrix<double> z, Vector<std::int32_t> y) {
                return map_rows(s, z, y,
                                [](const auto& l, const double* a, std::int32_t b) { return l.value(a, b); });
            },
            strict("scores"), strict("label"))
        .def(
            "conjugate",
            [](const JointLossObject& s, Matrix<double> u, Vector<std::int32_t> y) {
                return map_rows(s, u, y, [](const auto& l, const double* a, std::int32_t b) {
                    return l.conjugate(a, b);
                });
            },
            strict("u"), strict("label"))
        .def(
            "slopes",
            [](const JointLossObject& s, Matrix<double> z, Vector<std::int32_t> y) {
                check_shape(z, std::int64_t(y.shape(0)), s.classes(), "scores");
                check_labels(y, s.classes());
                OutMatrix out = new_matrix(std::int64_t(z.shape(0)), s.classes());
                std::visit(
                    [&](const auto& l) {
                        for (std::size_t i = 0; i < z.shape(0); ++i)
                            l.slopes(z.data() + i * l.classes, y.data()[i], out.data() + i * l.classes);
                    },
                    s.loss);
                return out;
            },
            strict("scores"), strict("label"))
        .def(
            "dual_step",
            [](const JointLossObject& s, Vector<double> u0, Vector<double> z, std::int32_t y, double q) {
                check_length(u0, s.classes(), "u0");
                check_length(z, s.classes(), "scores");
                if (y < 0 || y >= s.classes()) throw std::out_of_range("label");
                OutVector out = new_vector(s.classes());
                std::vector<double> work;
                std::visit([&](const auto& l) { l.dual_step(u0.data(), z.data(), y, q, out.data(), work); },
                           s.loss);
                return out;
            },
            strict("u0"), strict("scores"), "label"_a, "q"_a);
}

}  // namespace pegasos::bind
