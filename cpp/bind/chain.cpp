// Linear chains: corpora, passes over them, and their solvers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>
#include <variant>

#include "arrays.hpp"
#include "pegasos/structured/chain_planes.hpp"
#include "pegasos/structured/chain_steps.hpp"

namespace pegasos::bind {
namespace {

using Labels = Vector<Label>;
using OutLabels = nb::ndarray<Label, nb::numpy, nb::ndim<1>, nb::c_contig>;
using OutIndex = nb::ndarray<std::int64_t, nb::numpy, nb::ndim<1>, nb::c_contig>;
using Flags = Matrix<std::uint8_t>;

template <class T>
nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig> array_of(const T* from, std::size_t n) {
    T* p = static_cast<T*>(allocate(std::max<std::size_t>(n, 1) * sizeof(T)));
    if (from) std::copy_n(from, n, p);
    return {p, {n}, nb::capsule(p, [](void* q) noexcept { release(q); })};
}

void check_offsets(const Index& offsets, std::int64_t end, const char* name) {
    const std::int64_t* p = offsets.data();
    const std::size_t n = offsets.shape(0);
    if (n < 1 || p[0] != 0 || p[n - 1] != end)
        throw std::invalid_argument(std::string(name) + " should run from 0 to " + std::to_string(end));
    for (std::size_t k = 1; k < n; ++k)
        if (p[k] < p[k - 1]) throw std::invalid_argument(std::string(name) + " should not decrease");
}

Grammar grammar_of(const Flags& next, const Vector<std::uint8_t>& first, const Vector<std::uint8_t>& final,
                   int labels) {
    check_shape(next, labels, labels, "next");
    check_length(first, labels, "first");
    check_length(final, labels, "final");
    return {{next.data(), next.data() + next.size()},
            {first.data(), first.data() + labels},
            {final.data(), final.data() + labels}};
}

struct ChainObject {
    Chain chain;
    bool taught = false;

    ChainObject(Index offsets, Index indptr, Vector<std::int32_t> ids, std::optional<Vector<double>> values,
                std::int64_t attributes, int labels, Flags next, Vector<std::uint8_t> first,
                Vector<std::uint8_t> final) {
        if (labels < 1 || labels > 65535) throw std::invalid_argument("labels: 1 … 65535");
        if (attributes < 0 || attributes > std::numeric_limits<std::int32_t>::max())
            throw std::invalid_argument("attributes: 0 … 2³¹ − 1");
        check_offsets(indptr, std::int64_t(ids.shape(0)), "indptr");
        check_offsets(offsets, std::int64_t(indptr.shape(0)) - 1, "offsets");
        for (std::size_t k = 0; k < ids.shape(0); ++k)
            if (ids.data()[k] < 0 || ids.data()[k] >= attributes) throw std::out_of_range("attribute");
        if (values) check_length(*values, std::int64_t(ids.shape(0)), "values");
        chain.shape = ChainShape(attributes, labels);
        chain.offsets.assign(offsets.data(), offsets.data() + offsets.shape(0));
        chain.indptr.assign(indptr.data(), indptr.data() + indptr.shape(0));
        chain.ids.assign(ids.data(), ids.data() + ids.shape(0));
        if (values) chain.values.assign(values->data(), values->data() + values->shape(0));
        chain.grammar = grammar_of(next, first, final, labels);
        chain.find_paths();
        chain.learnt.assign(std::size_t(labels) * labels, 1);
    }

    void check_learns() const {
        if (!taught) throw std::invalid_argument("this corpus has no tags");
    }
    bool allows(std::int64_t i, const Label* y) const {
        const std::int64_t n = chain.length(i);
        const int L = chain.shape.labels;
        if (n == 0) return true;
        for (std::int64_t t = 0; t < n; ++t) {
            if (y[t] >= L) return false;
            if (t > 0 && !chain.grammar.next[std::size_t(y[t - 1]) * L + y[t]]) return false;
        }
        return chain.grammar.first[y[0]] && chain.grammar.final[y[n - 1]];
    }
    void teach(Labels tags, Matrix<double> cost, Flags learnt) {
        const int L = chain.shape.labels;
        check_length(tags, chain.tokens(), "tags");
        check_shape(cost, L, L, "cost");
        check_shape(learnt, L, L, "learnt");
        for (std::int64_t i = 0; i < chain.sequences(); ++i) {
            if (chain.length(i) == 0)
                throw std::invalid_argument("sequence " + std::to_string(i) + " is empty");
            if (!allows(i, tags.data() + chain.offsets[i]))
                throw std::invalid_argument("sequence " + std::to_string(i) +
                                            " has tags that are not allowed");
        }
        chain.cost.assign(std::size_t(L) * chain.shape.lanes, 0.0);
        for (int a = 0; a < L; ++a)
            for (int b = 0; b < L; ++b) {
                const double c = cost.data()[a * L + b];
                if (!(c >= 0.0 && c < 1e30) || (a == b && c != 0.0))
                    throw std::invalid_argument("cost: numbers >= 0, and 0 on the diagonal");
                chain.cost[std::size_t(a) * chain.shape.lanes + b] = c;
            }
        chain.tags.assign(tags.data(), tags.data() + tags.shape(0));
        chain.learnt.assign(learnt.data(), learnt.data() + learnt.size());
        taught = true;
    }
};

// Weights of the right number, with zeros behind them.
const double* weights_of(const ChainObject& c, const Vector<double>& W, const char* name = "weights") {
    check_length(W, c.chain.shape.numbers(), name);
    for (int l = 1; l <= label_block; ++l)
        if (W.data()[c.chain.shape.numbers() - l] != 0.0)
            throw std::invalid_argument(std::string(name) + " should end in zeros");
    return W.data();
}
OutVector new_weights(const ChainObject& c) { return new_vector(c.chain.shape.numbers()); }

struct Planes {
    std::vector<std::int64_t> starts;
    PlaneList list;
};
Planes planes_of(const ChainObject& c, const Index& rows, const Labels& labels) {
    c.check_learns();
    Planes out{{}, {rows.data(), nullptr, labels.data(), std::int64_t(rows.shape(0))}};
    std::int64_t at = 0;
    for (std::size_t p = 0; p < rows.shape(0); ++p) {
        const std::int64_t i = rows.data()[p];
        if (i < 0 || i >= c.chain.sequences()) throw std::out_of_range("planes: sequence");
        out.starts.push_back(at);
        at += c.chain.length(i);
        if (at > std::int64_t(labels.shape(0))) throw std::invalid_argument("planes: too few labels");
        if (!c.allows(i, labels.data() + out.starts.back()))
            throw std::invalid_argument("planes: a labelling of sequence " + std::to_string(i) +
                                        " is not allowed");
    }
    if (at != std::int64_t(labels.shape(0))) throw std::invalid_argument("planes: too many labels");
    out.list.starts = out.starts.data();
    return out;
}

std::tuple<OutLabels, std::int64_t> tag(const ChainObject& c, Vector<double> weights, int threads) {
    auto y = array_of<Label>(nullptr, std::size_t(c.chain.tokens()));
    const double* W = weights_of(c, weights);
    nb::gil_scoped_release release;
    const std::int64_t without = best_labellings(c.chain, W, threads, y.data());
    return {y, without};
}

std::tuple<OutMatrix, std::int64_t> token_marginals(const ChainObject& c, Vector<double> weights,
                                                    int threads) {
    OutMatrix p = raw_matrix(c.chain.tokens(), c.chain.shape.labels);
    const double* W = weights_of(c, weights);
    nb::gil_scoped_release release;
    const std::int64_t without = marginals(c.chain, W, threads, p.data());
    return {p, without};
}

std::tuple<OutVector, std::optional<OutLabels>> hinge(const ChainObject& c, Vector<double> weights, bool cut,
                                                      int threads) {
    c.check_learns();
    OutVector losses = new_vector(c.chain.sequences());
    std::optional<OutLabels> y;
    if (cut) y = array_of<Label>(nullptr, std::size_t(c.chain.tokens()));
    const double* W = weights_of(c, weights);
    nb::gil_scoped_release release;
    hinge_losses(c.chain, W, threads, losses.data(), y ? y->data() : nullptr);
    return {losses, y};
}

std::tuple<OutVector, OutVector> log_pass(const ChainObject& c, Vector<double> weights, Vector<double> weight,
                                          int threads) {
    c.check_learns();
    check_length(weight, c.chain.sequences(), "weight");
    OutVector losses = new_vector(c.chain.sequences()), G = new_weights(c);
    const double* W = weights_of(c, weights);
    nb::gil_scoped_release release;
    log_losses(c.chain, W, weight.data(), threads, losses.data(), G.data());
    return {losses, G};
}

OutVector plane_weights(const ChainObject& c, Index rows, Labels labels, Vector<double> share) {
    const Planes planes = planes_of(c, rows, labels);
    check_length(share, planes.list.count, "share");
    OutVector W = new_weights(c);
    nb::gil_scoped_release release;
    add_planes(c.chain, planes.list, share.data(), W.data());
    return W;
}

OutVector plane_cost(const ChainObject& c, Index rows, Labels labels) {
    const Planes planes = planes_of(c, rows, labels);
    OutVector cost = new_vector(planes.list.count);
    plane_costs(c.chain, planes.list, cost.data());
    return cost;
}

OutVector products(const ChainObject& c, Vector<double> weights, Vector<double> weight,
                   Matrix<Label> labellings, int threads) {
    c.check_learns();
    check_length(weight, c.chain.sequences(), "weight");
    if (std::int64_t(labellings.shape(1)) != c.chain.tokens())
        throw std::invalid_argument("labellings: a label a token");
    for (std::size_t k = 0; k < labellings.size(); ++k)
        if (labellings.data()[k] >= c.chain.shape.labels) throw std::out_of_range("label");
    OutVector out = new_vector(std::int64_t(labellings.shape(0)));
    const double* W = weights_of(c, weights);
    nb::gil_scoped_release release;
    labelling_products(c.chain, W, weight.data(), labellings.data(), std::int64_t(labellings.shape(0)),
                       threads, out.data());
    return out;
}

// The weights of the sequences as the solvers borrow them.
struct SequenceWeights {
    Buffer own;
    SequenceWeights(const ChainObject& c, const std::optional<Vector<double>>& weight) {
        c.check_learns();
        if (c.chain.sequences() == 0) throw std::invalid_argument("the corpus is empty");
        if (!weight) return;
        check_length(*weight, c.chain.sequences(), "weight");
        own.assign(weight->data(), weight->data() + weight->shape(0));
    }
    const double* data() const { return own.empty() ? nullptr : own.data(); }
};

using Numbers = std::tuple<double, double, double, double, double, double>;

// --- stochastic steps --------------------------------------------------------------------------------------------

struct ChainStepsObject {
    SequenceWeights weight;
    std::variant<std::unique_ptr<ChainSteps<float>>, std::unique_ptr<ChainSteps<double>>> steps;
    const ChainObject& corpus;

    ChainStepsObject(const ChainObject& c, std::optional<Vector<double>> w, const std::string& rule,
                     const std::string& loss, const std::string& mean, double lam, double t0,
                     double aggressiveness, double radius, std::int64_t batch_size,
                     const std::string& sampling, std::uint64_t seed, bool exact)
        : weight(c, w), corpus(c) {
        const ChainStepOptions o{
            meaning<ChainRule>("rule", rule,
                               {{"pegasos", ChainRule::pegasos},
                                {"perceptron", ChainRule::perceptron},
                                {"passive_aggressive", ChainRule::passive_aggressive}}),
            meaning<ChainLoss>("loss", loss, {{"hinge", ChainLoss::hinge}, {"log", ChainLoss::log}}),
            meaning<ChainMean>(
                "mean", mean,
                {{"none", ChainMean::none}, {"all", ChainMean::all}, {"window", ChainMean::window}}),
            lam,
            t0,
            aggressiveness,
            radius,
            batch_size,
            Sampling(meaning<Sampling::Scheme>("sampling", sampling,
                                               {{"permutation", Sampling::permutation},
                                                {"fixed", Sampling::fixed},
                                                {"iid", Sampling::iid},
                                                {"subset", Sampling::subset}})),
            seed};
        if (!(lam > 0) || !(t0 >= 0) || !(radius >= 0) || batch_size < 1 || !(aggressiveness > 0))
            throw std::invalid_argument(
                "lam, batch_size and aggressiveness should be > 0, t0 and radius >= 0");
        if (o.loss == ChainLoss::log && o.rule != ChainRule::pegasos)
            throw std::invalid_argument("the log loss is for Pegasos' steps");
        if (exact)
            steps = std::make_unique<ChainSteps<double>>(c.chain, weight.data(), o);
        else
            steps = std::make_unique<ChainSteps<float>>(c.chain, weight.data(), o);
    }
    template <class F>
    auto with(F&& f) const {
        return std::visit([&](const auto& s) { return f(*s); }, steps);
    }
};

void advance(ChainStepsObject& self, std::int64_t tokens) {
    nb::gil_scoped_release release;
    self.with([&](auto& s) { s.advance(tokens); });
}
OutVector step_weights(const ChainStepsObject& self, bool mean) {
    OutVector W = new_weights(self.corpus);
    self.with([&](auto& s) { s.weights(mean && s.has_mean(), W.data()); });
    return W;
}
std::tuple<OutIndex, OutLabels, OutVector> decoded(const ChainStepsObject& self) {
    return self.with([&](auto& s) -> std::tuple<OutIndex, OutLabels, OutVector> {
        const Decoded& d = s.decoded();
        return {array_of(d.rows.data(), d.rows.size()), array_of(d.labels.data(), d.labels.size()),
                copied(d.visits)};
    });
}
Numbers progress(const ChainStepsObject& self) {
    const ChainProgress p = self.with([](auto& s) { return s.progress(); });
    return {double(p.epoch), double(p.at), p.shrunk, p.squares, p.carried, p.total};
}
OutVector step_sums(const ChainStepsObject& self, bool lag) {
    OutVector W = new_weights(self.corpus);
    self.with([&](auto& s) {
        const auto& from = lag ? s.lag() : s.sums();
        if (!from.empty()) self.corpus.chain.gather(from.data(), 1.0, W.data());
    });
    return W;
}
void restore_steps(ChainStepsObject& self, Numbers numbers, Vector<double> V, Vector<double> U, Index rows,
                   Labels labels, Vector<double> visits) {
    const Chain& chain = self.corpus.chain;
    weights_of(self.corpus, V, "V");
    weights_of(self.corpus, U, "U");
    check_length(visits, chain.sequences(), "visits");
    planes_of(self.corpus, rows, labels);
    const auto [epoch, at, shrunk, squares, carried, total] = numbers;
    const double n = double(chain.sequences());  // a batch may run over the end of an epoch
    if (!(epoch >= 0 && epoch * n < 1e15 && at >= 0 && at <= 2 * n && shrunk > 0))
        throw std::invalid_argument("progress");
    const Decoded d{{rows.data(), rows.data() + rows.shape(0)},
                    {labels.data(), labels.data() + labels.shape(0)},
                    {visits.data(), visits.data() + visits.shape(0)}};
    const ChainProgress progress{std::int64_t(epoch), std::int64_t(at), shrunk, squares, carried, total};
    self.with([&](auto& s) { s.restore(progress, V.data(), U.data(), d); });
}

// --- planes ------------------------------------------------------------------------------------------------------

struct ChainPlanesObject {
    SequenceWeights weight;
    const ChainObject& corpus;
    ChainPlanes planes;

    ChainPlanesObject(const ChainObject& c, std::optional<Vector<double>> w, double lam, double total,
                      double unused_passes, std::uint64_t seed)
        : weight(c, w), corpus(c), planes(c.chain, weight.data(), {lam, total, unused_passes, seed}) {
        if (!(lam > 0) || !(total > 0) || !(unused_passes >= 1))
            throw std::invalid_argument("lam, total and unused_passes should be > 0");
    }
};
void advance_planes(ChainPlanesObject& self, std::int64_t tokens, bool cached) {
    nb::gil_scoped_release release;
    self.planes.advance(tokens, cached);
}
OutVector weights_of_planes(const ChainPlanesObject& self) {
    OutVector W = new_weights(self.corpus);
    self.planes.weights(W.data());
    return W;
}
void set_weights(ChainPlanesObject& self, Vector<double> W) {
    self.planes.set_weights(weights_of(self.corpus, W, "W"));
}
std::tuple<OutIndex, OutLabels, OutVector, OutVector> table(const ChainPlanesObject& self) {
    const PlaneTable t = self.planes.table();
    return {array_of(t.rows.data(), t.rows.size()), array_of(t.labels.data(), t.labels.size()),
            copied(t.alpha), copied(t.unused)};
}
void add_to_planes(ChainPlanesObject& self, Index rows, Labels labels, Vector<double> alpha,
                   std::optional<Vector<double>> unused) {
    const Planes planes = planes_of(self.corpus, rows, labels);
    check_length(alpha, planes.list.count, "alpha");
    if (unused) check_length(*unused, planes.list.count, "unused");
    for (std::int64_t p = 0; p < planes.list.count; ++p)
        if (!(alpha.data()[p] >= 0 && alpha.data()[p] <= 1 + 1e-9))  // sums of shares round
            throw std::invalid_argument("alpha: 0 … 1");
    self.planes.add_planes(planes.list, alpha.data(), unused ? unused->data() : nullptr);
}
void go_on(ChainPlanesObject& self, std::int64_t passes, std::int64_t at, double gap, double loss) {
    const std::int64_t n = self.corpus.chain.sequences();
    if (passes < -1 || at < 0 || at > n || (passes == -1 && at < n)) throw std::invalid_argument("progress");
    self.planes.go_on(passes, at, gap, loss);
}

}  // namespace

void register_chain(nb::module_& m) {
    nb::class_<ChainObject>(m, "Chain")
        .def(nb::init<Index, Index, Vector<std::int32_t>, std::optional<Vector<double>>, std::int64_t, int,
                      Flags, Vector<std::uint8_t>, Vector<std::uint8_t>>(),
             nb::arg("offsets"), nb::arg("indptr"), nb::arg("ids"), nb::arg("values").none(),
             nb::arg("attributes"), nb::arg("labels"), nb::arg("next"), nb::arg("first"), nb::arg("final"))
        .def("teach", &ChainObject::teach, nb::arg("tags"), nb::arg("cost"), nb::arg("learnt"))
        .def("tag", &tag, nb::arg("weights"), nb::arg("threads"))
        .def("marginals", &token_marginals, nb::arg("weights"), nb::arg("threads"))
        .def("hinge", &hinge, nb::arg("weights"), nb::arg("cut"), nb::arg("threads"))
        .def("log_losses", &log_pass, nb::arg("weights"), nb::arg("weight"), nb::arg("threads"))
        .def("plane_weights", &plane_weights, nb::arg("rows"), nb::arg("labels"), nb::arg("share"))
        .def("plane_costs", &plane_cost, nb::arg("rows"), nb::arg("labels"))
        .def("products", &products, nb::arg("weights"), nb::arg("weight"), nb::arg("labellings"),
             nb::arg("threads"));
    nb::class_<ChainStepsObject>(m, "ChainSteps")
        .def(nb::init<const ChainObject&, std::optional<Vector<double>>, const std::string&,
                      const std::string&, const std::string&, double, double, double, double, std::int64_t,
                      const std::string&, std::uint64_t, bool>(),
             nb::keep_alive<1, 2>(), nb::arg("chain"), nb::arg("weight").none(), nb::kw_only(),
             nb::arg("rule"), nb::arg("loss"), nb::arg("mean"), nb::arg("lam"), nb::arg("t0"),
             nb::arg("aggressiveness"), nb::arg("radius"), nb::arg("batch_size"), nb::arg("sampling"),
             nb::arg("seed"), nb::arg("exact"))
        .def("advance", &advance, nb::arg("tokens"))
        .def("begin_window", [](ChainStepsObject& self) { self.with([](auto& s) { s.begin_window(); }); })
        .def_prop_ro(
            "epochs",
            [](const ChainStepsObject& self) { return self.with([](auto& s) { return s.epochs(); }); })
        .def_prop_ro(
            "epoch_ended",
            [](const ChainStepsObject& self) { return self.with([](auto& s) { return s.epoch_ended(); }); })
        .def("weights", &step_weights, nb::arg("mean"))
        .def("decoded", &decoded)
        .def("progress", &progress)
        .def("sums", &step_sums, nb::arg("lag"))
        .def("restore", &restore_steps, nb::arg("progress"), nb::arg("V"), nb::arg("U"), nb::arg("rows"),
             nb::arg("labels"), nb::arg("visits"));
    nb::class_<ChainPlanesObject>(m, "ChainPlanes")
        .def(nb::init<const ChainObject&, std::optional<Vector<double>>, double, double, double,
                      std::uint64_t>(),
             nb::keep_alive<1, 2>(), nb::arg("chain"), nb::arg("weight").none(), nb::kw_only(),
             nb::arg("lam"), nb::arg("total"), nb::arg("unused_passes"), nb::arg("seed"))
        .def("advance", &advance_planes, nb::arg("tokens"), nb::arg("cached"))
        .def_prop_ro("pass_ended", [](const ChainPlanesObject& self) { return self.planes.pass_ended(); })
        .def_prop_ro("gap", [](const ChainPlanesObject& self) { return self.planes.gap(); })
        .def_prop_ro("loss", [](const ChainPlanesObject& self) { return self.planes.loss(); })
        .def_prop_ro("at", [](const ChainPlanesObject& self) { return self.planes.at(); })
        .def_prop_ro("passes", [](const ChainPlanesObject& self) { return self.planes.passes(); })
        .def_prop_ro("exact", [](const ChainPlanesObject& self) { return self.planes.is_double(); })
        .def_prop_ro("squares", [](const ChainPlanesObject& self) { return self.planes.squares(); })
        .def("weights", &weights_of_planes)
        .def("set_weights", &set_weights, nb::arg("W"))
        .def("set_double", [](ChainPlanesObject& self) { self.planes.set_double(); })
        .def("table", &table)
        .def("add", &add_to_planes, nb::arg("rows"), nb::arg("labels"), nb::arg("alpha"),
             nb::arg("unused").none())
        .def("go_on", &go_on, nb::arg("passes"), nb::arg("at"), nb::arg("gap"), nb::arg("loss"));
}

}  // namespace pegasos::bind
