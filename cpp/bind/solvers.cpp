// The solvers, with their data kept alive for as long as they borrow it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <tuple>
#include <variant>

#include "objects.hpp"
#include "pegasos/linear/pegasos.hpp"
#include "pegasos/linear/sdca.hpp"

namespace pegasos::bind {
namespace {

using SomeLoss = std::variant<const LossObject*, const JointLossObject*>;
// float64 values (one output), or int32 labels (several).
using SomeTargets = std::variant<Vector<double>, Vector<std::int32_t>>;
using SomeWeight = std::optional<Vector<double>>;
using StateDict = nb::typed<nb::dict, nb::str, OutVector>;
using GivenState = nb::typed<nb::dict, nb::str, Vector<double>>;

template <class Base>
struct SolverObject {
    std::unique_ptr<Base> solver;
    nb::object rows;  // this and the arrays are kept alive
    SomeTargets targets;
    SomeWeight weight;
    Vector<double> norms;
    std::int64_t m, n;
};
using PegasosObject = SolverObject<PegasosBase>;
using SdcaObject = SolverObject<SdcaBase>;

// `count` of the classes, from `first`, are fitted here.
struct Data {
    Targets targets;
    Weights weights;
};
Data read_data(const RowsObject& rows, const SomeLoss& loss, const SomeTargets& targets,
               const SomeWeight& weight, double total, int first, int count) {
    if (first < 0 || count < 1) throw std::invalid_argument("count must be at least 1, first at least 0");
    Data d;
    std::visit([&](const auto& t) { check_length(t, rows.rows(), "targets"); }, targets);
    if (const auto* values = std::get_if<Vector<double>>(&targets)) {
        d.targets.value = values->data();
    } else {
        const auto& labels = std::get<Vector<std::int32_t>>(targets);
        if (const auto* joint = std::get_if<const JointLossObject*>(&loss))
            check_labels(labels, (*joint)->classes());
        d.targets.label = labels.data();
    }
    d.targets.first = first;
    d.targets.count = count;
    d.weights = {nullptr, total};
    if (weight) {
        check_length(*weight, rows.rows(), "weight");
        d.weights.weight = weight->data();
    }
    return d;
}

Sampling sampling_named(const std::string& name, const RowsObject& rows) {
    const std::int64_t few = few_rows(rows.rows(), rows.nnz());
    return meaning<Sampling>("sampling", name,
                             {{"iid", Sampling::iid},
                              {"fixed", Sampling::fixed},
                              {"permutation", Sampling::permutation},
                              {"streams", {Sampling::streams, few}},
                              {"chunked", {Sampling::chunked, chunk_rows(rows.rows(), rows.nnz())}},
                              {"given", Sampling::given},
                              {"subset", Sampling::subset}});
}

template <class F>
auto with_loss(const SomeLoss& loss, F&& f) {
    return std::visit([&](const auto* l) { return f(l->loss); }, loss);
}

// Where a solver's columns begin in u (rows × outputs of several solvers).
template <class Object>
double* columns(const Object& s, const OutMatrix& u, std::int64_t first) {
    const std::int64_t count = s.solver->outputs(), all = std::int64_t(u.shape(1));
    check_shape(u, s.m, all, "u");
    if (first < 0 || first + count > all) throw std::invalid_argument("u has too few columns");
    return u.data() + first;
}

template <class Object>
void define_common(nb::class_<Object>& c) {
    using namespace nb::literals;
    c.def(
         "advance", [](Object& s, std::int64_t rows) { s.solver->advance(rows); }, "rows"_a,
         nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("epochs", [](const Object& s) { return s.solver->epochs(); })
        .def_prop_ro("epoch_ended", [](const Object& s) { return s.solver->epoch_ended(); })
        .def("weights",
             [](const Object& s) {
                 OutMatrix W = new_matrix(s.solver->outputs(), s.n);
                 OutVector b = new_vector(s.solver->outputs());
                 s.solver->weights(W.data(), b.data());
                 return std::tuple{std::move(W), std::move(b)};
             })
        .def(
            "write_weights",
            [](const Object& s, OutMatrix W, OutVector b) {
                check_shape(W, s.solver->outputs(), s.n, "W");
                check_length(b, s.solver->outputs(), "b");
                s.solver->weights(W.data(), b.data());
            },
            nb::arg("W").noconvert(), nb::arg("b").noconvert())
        .def("duals",
             [](const Object& s) {
                 OutMatrix u = new_matrix(s.m, s.solver->outputs());
                 s.solver->duals(u.data(), s.solver->outputs());
                 return u;
             })
        .def(
            "write_duals",
            [](const Object& s, OutMatrix u, std::int64_t first) {
                s.solver->duals(columns(s, u, first), std::int64_t(u.shape(1)));
            },
            nb::arg("u").noconvert(), "first"_a)
        .def("state",
             [](const Object& s) {
                 StateDict d;
                 for (const auto& [name, values] : s.solver->state()) {
                     OutVector v = new_vector(std::int64_t(values.size()));
                     std::copy(values.begin(), values.end(), v.data());
                     d[name.c_str()] = v;
                 }
                 return d;
             })
        .def(
            "restore",
            [](Object& s, const GivenState& d) {
                State state;
                for (const auto& [key, value] : d) {
                    const auto v = nb::cast<Vector<double>>(value, false);
                    state.emplace_back(nb::cast<std::string>(key), Buffer(v.data(), v.data() + v.size()));
                }
                s.solver->restore(state);
            },
            "state"_a);
}

}  // namespace

void register_solvers(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };

    nb::class_<PegasosObject> pegasos_class(m, "Pegasos");
    pegasos_class
        .def(
            "__init__",
            [](PegasosObject* self, RowsObject& rows, SomeLoss loss, SomeTargets targets, SomeWeight weight,
               double total, int first, int count, double lam, const std::string& schedule, double rate,
               double t0, std::int64_t batch_size, bool whole_batches, const std::string& sampling,
               double radius, bool average, bool random, const std::string& bias, double bias_start,
               double bias_rate, double feature, std::uint64_t seed) {
                const auto steps = meaning<Schedule>("schedule", schedule,
                                                     {{"pegasos", Schedule::pegasos},
                                                      {"norma", Schedule::norma},
                                                      {"constant", Schedule::constant},
                                                      {"proximal", Schedule::proximal},
                                                      {"dual_averaging", Schedule::dual_averaging},
                                                      {"aggressive", Schedule::aggressive},
                                                      {"relaxed", Schedule::relaxed}});
                const auto kind = meaning<PegasosBias>("bias", bias,
                                                       {{"none", PegasosBias::none},
                                                        {"subgradient", PegasosBias::subgradient},
                                                        {"batch", PegasosBias::batch}});
                if (batch_size < 1) throw std::invalid_argument("batch_size must be at least 1");
                const Data d = read_data(rows, loss, targets, weight, total, first, count);
                const PegasosOptions o{.lam = lam,
                                       .schedule = steps,
                                       .rate = rate,
                                       .t0 = t0,
                                       .batch_size = batch_size,
                                       .whole_batches = whole_batches,
                                       .sampling = sampling_named(sampling, rows),
                                       .radius = radius,
                                       .average = average,
                                       .random = random,
                                       .bias = kind,
                                       .bias_start = bias_start,
                                       .bias_rate = bias_rate,
                                       .feature = feature,
                                       .seed = seed};
                auto solver = with_loss(loss, [&](const auto& l) {
                    return std::visit(
                        [&](const auto& r) { return make_pegasos(r, l, d.targets, d.weights, o); },
                        rows.view);
                });
                new (self) PegasosObject{
                    std::move(solver), nb::find(rows), std::move(targets), std::move(weight), {},
                    rows.rows(),       rows.cols()};
            },
            "rows"_a, "loss"_a, strict("targets"), strict("weight").none(), "total"_a, "first"_a, "count"_a,
            nb::kw_only(), "lam"_a, "schedule"_a, "rate"_a, "t0"_a, "batch_size"_a, "whole_batches"_a,
            "sampling"_a, "radius"_a, "average"_a, "random"_a, "bias"_a, "bias_start"_a, "bias_rate"_a,
            "feature"_a, "seed"_a)
        .def(
            "select",
            [](PegasosObject& s, const std::string& which) {
                s.solver->select(meaning<Iterate>("iterate", which,
                                                  {{"last", Iterate::last},
                                                   {"average", Iterate::average},
                                                   {"suffix", Iterate::suffix},
                                                   {"first_random", Iterate::first_random},
                                                   {"second_random", Iterate::second_random}}));
            },
            "which"_a)
        .def(
            "start",
            [](PegasosObject& s, Matrix<double> W, std::optional<Vector<double>> b) {
                check_shape(W, s.solver->outputs(), s.n, "W");
                if (b) check_length(*b, s.solver->outputs(), "b");
                s.solver->start(W.data(), b ? b->data() : nullptr);
            },
            strict("W"), strict("b").none())
        .def_prop_ro("steps", [](const PegasosObject& s) { return s.solver->steps(); })
        .def("keep_scores", [](PegasosObject& s) { s.solver->keep_scores(); })
        .def(
            "write_scores",
            [](const PegasosObject& s, OutMatrix z, std::int64_t first, std::int64_t early) {
                s.solver->scores(columns(s, z, first), std::int64_t(z.shape(1)), early);
            },
            nb::arg("z").noconvert(), "first"_a, "early"_a);
    define_common(pegasos_class);

    m.def(
        "write_first_visits",
        [](const RowsObject& rows, const std::string& sampling, std::uint64_t seed, std::int64_t batch,
           MutableVector<std::int64_t> out) {
            const auto count = std::int64_t(out.shape(0));
            if (count > rows.rows()) throw std::invalid_argument("there are fewer rows than visits");
            if (batch < 1 || count % batch) throw std::invalid_argument("visits must be whole batches");
            Batches batches(rows.rows(), batch, sampling_named(sampling, rows), seed, true);
            const auto order = batches.first(count);
            std::copy(order.begin(), order.end(), out.data());
        },
        "rows"_a, "sampling"_a, "seed"_a, "batch"_a, strict("out"));

    nb::class_<SdcaObject> sdca_class(m, "Sdca");
    sdca_class
        .def(
            "__init__",
            [](SdcaObject* self, RowsObject& rows, SomeLoss loss, SomeTargets targets, SomeWeight weight,
               double total, int first, int count, Vector<double> squared_norms, double lam, double feature,
               bool multiplier, bool shrinking, int blocks, int threads, bool single,
               const std::string& sampling, std::uint64_t seed) {
                check_length(squared_norms, rows.rows(), "squared_norms");
                const Data d = read_data(rows, loss, targets, weight, total, first, count);
                const Sampling order = sampling_named(sampling, rows);
                if (order == Sampling::subset) throw std::invalid_argument("subsets are for mini-batches");
                const SdcaOptions o{.lam = lam,
                                    .feature = feature,
                                    .multiplier = multiplier,
                                    .shrinking = shrinking,
                                    .blocks = blocks,
                                    .threads = threads,
                                    .single = single,
                                    .sampling = order,
                                    .seed = seed};
                auto solver = with_loss(loss, [&](const auto& l) {
                    return std::visit(
                        [&](const auto& r) {
                            return make_sdca(r, l, d.targets, d.weights, squared_norms.data(), o);
                        },
                        rows.view);
                });
                new (self) SdcaObject{std::move(solver), nb::find(rows),           std::move(targets),
                                      std::move(weight), std::move(squared_norms), rows.rows(),
                                      rows.cols()};
            },
            "rows"_a, "loss"_a, strict("targets"), strict("weight").none(), "total"_a, "first"_a, "count"_a,
            nb::kw_only(), strict("squared_norms"), "lam"_a, "feature"_a, "multiplier"_a, "shrinking"_a,
            "blocks"_a, "threads"_a, "single"_a, "sampling"_a, "seed"_a)
        .def(
            "start",
            [](SdcaObject& s, Matrix<double> u, Matrix<double> W, Vector<double> offset) {
                check_shape(u, s.m, s.solver->outputs(), "u");
                check_shape(W, s.solver->outputs(), s.n, "W");
                check_length(offset, s.solver->outputs(), "offset");
                s.solver->start(u.data(), W.data(), offset.data());
            },
            strict("u"), strict("W"), strict("offset"))
        .def(
            "reactivate",
            [](SdcaObject& s, Matrix<double> z) {
                check_shape(z, s.m, s.solver->outputs(), "z");
                s.solver->reactivate(z.data());
            },
            strict("z"))
        .def(
            "leave_out",
            [](SdcaObject& s, Matrix<double> z, double slack) {
                check_shape(z, s.m, s.solver->outputs(), "z");
                s.solver->leave_out(z.data(), slack);
            },
            strict("z"), "slack"_a)
        .def("offsets",
             [](const SdcaObject& s) {
                 OutVector b = new_vector(s.solver->outputs());
                 s.solver->offsets(b.data());
                 return b;
             })
        .def("biases",
             [](const SdcaObject& s) {
                 OutVector b = new_vector(s.solver->outputs());
                 s.solver->biases(b.data());
                 return b;
             })
        .def(
            "write_averages",
            [](const SdcaObject& s, OutMatrix u, std::int64_t first) {
                s.solver->averages(columns(s, u, first), std::int64_t(u.shape(1)));
            },
            nb::arg("u").noconvert(), "first"_a)
        .def_prop_ro("active", [](const SdcaObject& s) { return s.solver->active(); })
        .def("online",
             [](const SdcaObject& s) {
                 OutVector gap = new_vector(s.solver->parts()), loss = new_vector(s.solver->parts());
                 s.solver->online(gap.data(), loss.data());
                 return std::tuple{std::move(gap), std::move(loss)};
             })
        .def("penalties", [](const SdcaObject& s) {
            OutVector penalty = new_vector(s.solver->parts());
            s.solver->penalties(penalty.data());
            return penalty;
        });
    define_common(sdca_class);
}

}  // namespace pegasos::bind
