#include "pegasos/structured/chain_passes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "pegasos/core/parallel.hpp"

namespace pegasos {
namespace {

using std::int64_t;

// Tokens of a task, or one sequence. Tasks are cut by the data alone.
constexpr int64_t task_tokens = 4096;
// Tokens whose marginals are kept until they have been added to the gradient.
constexpr int64_t stretch_tokens = 32768;

// Consecutive sequences, each piece with at least so many tokens.
std::vector<std::pair<int64_t, int64_t>> pieces(const Chain& chain, int64_t first, int64_t last,
                                                int64_t tokens) {
    std::vector<std::pair<int64_t, int64_t>> out;
    for (int64_t i = first, begin = first; i < last; ++i)
        if (i + 1 == last || chain.offsets[i + 1] - chain.offsets[begin] >= tokens) {
            out.emplace_back(begin, i + 1);
            begin = i + 1;
        }
    return out;
}

int64_t longest(const Chain& chain, int64_t first, int64_t last) {
    int64_t most = 0;
    for (int64_t i = first; i < last; ++i) most = std::max(most, chain.length(i));
    return most;
}

// f(sequence, working space) for all sequences.
template <class F>
void each_sequence(const Chain& chain, int threads, F&& f) {
    const auto tasks = pieces(chain, 0, chain.sequences(), task_tokens);
    parallel_for(useful_threads(threads, int64_t(chain.ids.size()) * chain.shape.lanes / 4),
                 int64_t(tasks.size()), [&](int64_t k) {
                     const auto [first, last] = tasks[std::size_t(k)];
                     ChainSpace<double> space(chain, longest(chain, first, last));
                     for (int64_t i = first; i < last; ++i)
                         if (chain.length(i) > 0) f(i, space);
                 });
}

double log_sum(const double* x, int count) {
    const double high = *std::max_element(x, x + count);
    if (!(high > no_path)) return forbidden;
    double sum = 0.0;
    for (int k = 0; k < count; ++k) sum += std::exp(x[k] - high);
    return high + std::log(sum);
}

}  // namespace

double hamming_cost(const Chain& chain, int64_t i, const Label* y) {
    const Label* gold = chain.gold(i);
    double cost = 0.0;
    for (int64_t t = 0; t < chain.length(i); ++t)
        cost += chain.cost[int64_t(gold[t]) * chain.shape.lanes + y[t]];
    return cost;
}

int64_t best_labellings(const Chain& chain, const double* W, int threads, Label* y) {
    const int L = chain.shape.labels, P = chain.shape.lanes;
    const ChainKernels<double>& kernels = chain_kernels<double>();
    const Buffer T = chain.transitions_of(W);
    std::atomic<int64_t> without{chain.sequences()};
    each_sequence(chain, threads, [&](int64_t i, ChainSpace<double>& space) {
        kernels.score(W, L, P, chain.attributes(i), space.scores.data());
        const double best =
            kernels.decode(space.scores.data(), T.data(), space.begin.data(), space.end.data(), L, P,
                           chain.length(i), space.scores.data(), y + chain.offsets[i]);
        if (!(best > no_path))
            for (int64_t seen = without; i < seen && !without.compare_exchange_weak(seen, i);) {
            }
    });
    return without < chain.sequences() ? without.load() : -1;
}

void hinge_losses(const Chain& chain, const double* W, int threads, double* losses, Label* cut) {
    const int L = chain.shape.labels, P = chain.shape.lanes;
    const Buffer transitions = chain.transitions_of(W);
    const double* T = transitions.data();
    const ChainKernels<double>& kernels = chain_kernels<double>();
    each_sequence(chain, threads, [&](int64_t i, ChainSpace<double>& space) {
        double* s = space.scores.data();
        kernels.score(W, L, P, chain.attributes(i), s);
        const double gold = path_score(chain, s, T, chain.length(i), chain.gold(i));
        add_costs(chain, i, 1.0, s);
        const double best = kernels.decode(s, T, space.begin.data(), space.end.data(), L, P, chain.length(i),
                                           s, cut ? cut + chain.offsets[i] : nullptr);
        losses[i] = std::max(best - gold, 0.0);  // gold itself is among the labellings
    });
}

void add_planes(const Chain& chain, const PlaneList& planes, const double* share, double* W) {
    const int L = chain.shape.labels;
    for (int64_t p = 0; p < planes.count; ++p)
        if (share[p] != 0.0)
            each_difference(chain, planes.rows[p], planes.labels + planes.starts[p],
                            [&](int64_t row, Label l, double v) { W[row * L + l] += share[p] * v; });
}

void plane_costs(const Chain& chain, const PlaneList& planes, double* cost) {
    for (int64_t p = 0; p < planes.count; ++p)
        cost[p] = hamming_cost(chain, planes.rows[p], planes.labels + planes.starts[p]);
}

void labelling_products(const Chain& chain, const double* W, const double* weight, const Label* labellings,
                        int64_t count, int threads, double* out) {
    const int P = chain.shape.lanes;
    const Buffer transitions = chain.transitions_of(W);
    const double* T = transitions.data();
    const int64_t n = chain.sequences(), tokens = chain.tokens();
    std::vector<double> products(std::size_t(n * count), 0.0);
    each_sequence(chain, threads, [&](int64_t i, ChainSpace<double>& space) {
        double* s = space.scores.data();
        chain_kernels<double>().score(W, chain.shape.labels, P, chain.attributes(i), s);
        const double gold = path_score(chain, s, T, chain.length(i), chain.gold(i));
        for (int64_t j = 0; j < count; ++j) {
            const Label* y = labellings + j * tokens + chain.offsets[i];
            products[std::size_t(i * count + j)] =
                weight[i] * (gold - path_score(chain, s, T, chain.length(i), y));
        }
    });
    std::fill_n(out, count, 0.0);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < count; ++j) out[j] += products[std::size_t(i * count + j)];
}

template <class Real>
double log_forward_backward(const Chain& chain, Real* scores, const Real* T, int64_t tokens, double weight,
                            double* pairs) {
    const int L = chain.shape.labels, P = chain.shape.lanes;
    const std::size_t labels = std::size_t(L);
    std::vector<double> alpha(std::size_t(tokens) * labels), beta(labels, 0.0), before(labels), terms(labels);
    const auto s = [&](int64_t t, int l) {
        return double(scores[t * P + l]) + (t == 0 ? chain.reach[l] : 0.0) +
               (t + 1 == tokens ? chain.end[l] : 0.0);
    };
    for (int l = 0; l < L; ++l) alpha[l] = s(0, l);
    for (int64_t t = 1; t < tokens; ++t)
        for (int l = 0; l < L; ++l) {
            for (int a = 0; a < L; ++a) terms[a] = alpha[(t - 1) * L + a] + double(T[a * P + l]);
            alpha[t * L + l] = s(t, l) + log_sum(terms.data(), L);
        }
    const double log_z = log_sum(alpha.data() + (tokens - 1) * L, L);
    for (int64_t t = tokens - 1; t >= 0; --t) {
        const auto own = [&](int l) { return s(t, l) + beta[l]; };
        if (t > 0)
            for (int a = 0; a < L; ++a) {
                for (int l = 0; l < L; ++l) terms[l] = double(T[a * P + l]) + own(l);
                before[a] = log_sum(terms.data(), L);
                for (int l = 0; l < L; ++l)
                    pairs[a * P + l] += weight * std::exp(alpha[(t - 1) * L + a] + terms[l] - log_z);
            }
        for (int l = 0; l < L; ++l) scores[t * P + l] = Real(std::exp(alpha[t * L + l] + beta[l] - log_z));
        for (int l = L; l < P; ++l) scores[t * P + l] = 0;
        std::swap(beta, before);
    }
    return log_z;
}
template double log_forward_backward(const Chain&, float*, const float*, int64_t, double, double*);
template double log_forward_backward(const Chain&, double*, const double*, int64_t, double, double*);

namespace {

// Marginals of one sequence in place of its scores; pairs as probabilities. log Z.
class Sums {
 public:
    Sums(const Chain& chain, const double* T)
        : chain_(chain),
          T_(T),
          rows_(std::size_t(chain.shape.labels) * chain.shape.lanes),
          columns_(rows_.size()),
          exp_(exp_transitions(chain, T, rows_.data(), columns_.data())) {}

    // `scaled` pairs are still to be multiplied by exp(T − shift); `pairs` are not.
    double operator()(const double* W, int64_t i, ChainSpace<double>& space, double* marginals, double weight,
                      double* scaled, double* pairs) const {
        const int L = chain_.shape.labels, P = chain_.shape.lanes;
        const auto& kernels = chain_kernels<double>();
        kernels.score(W, L, P, chain_.attributes(i), marginals);
        const double log_z = kernels.forward_backward(marginals, exp_, space.reach, space.end.data(), L, P,
                                                      chain_.length(i), space.alpha.data(), weight, scaled);
        if (!std::isnan(log_z)) return log_z;
        kernels.score(W, L, P, chain_.attributes(i), marginals);
        return log_forward_backward(chain_, marginals, T_, chain_.length(i), weight, pairs);
    }
    const double* exponentials() const { return rows_.data(); }

 private:
    const Chain& chain_;
    const double* T_;
    Buffer rows_, columns_;
    ExpTransitions<double> exp_;
};

}  // namespace

void log_losses(const Chain& chain, const double* W, const double* weight, int threads, double* losses,
                double* G) {
    const int L = chain.shape.labels, P = chain.shape.lanes;
    const Buffer transitions = chain.transitions_of(W);
    const double* T = transitions.data();
    const Sums sums(chain, T);
    const std::size_t square = std::size_t(L) * P;
    threads = useful_threads(threads, int64_t(chain.ids.size()) * P);
    Buffer scaled(square, 0.0), pairs(square, 0.0), p;
    for (const auto& [begin, end] : pieces(chain, 0, chain.sequences(), stretch_tokens)) {
        const int64_t origin = chain.offsets[begin];
        p.resize(std::size_t((chain.offsets[end] - origin) * P));
        const auto tasks = pieces(chain, begin, end, task_tokens);
        std::vector<Buffer> own(tasks.size());
        parallel_for(threads, int64_t(tasks.size()), [&](int64_t k) {
            const auto [first, last] = tasks[std::size_t(k)];
            ChainSpace<double> space(chain, longest(chain, first, last));
            own[k].assign(2 * square, 0.0);
            for (int64_t i = first; i < last; ++i) {
                double* q = p.data() + (chain.offsets[i] - origin) * P;
                const int64_t tokens = chain.length(i);
                const Label* y = chain.gold(i);
                // The score of gold is added up before the scores become marginals.
                chain_kernels<double>().score(W, L, P, chain.attributes(i), q);
                const double gold = path_score(chain, q, T, tokens, y);
                const double log_z = sums(W, i, space, q, weight[i], own[k].data(), own[k].data() + square);
                losses[i] = std::max(log_z - gold, 0.0);
                for (int64_t t = 0; t < tokens; ++t) {
                    q[t * P + y[t]] -= 1.0;
                    for (int l = 0; l < P; ++l) q[t * P + l] *= weight[i];
                    if (t > 0) own[k][square + std::size_t(y[t - 1]) * P + y[t]] -= weight[i];
                }
            }
        });
        for (const Buffer& mine : own)
            for (std::size_t k = 0; k < square; ++k) scaled[k] += mine[k], pairs[k] += mine[square + k];
        const TokenAttributes x{chain.ids.data(), chain.values.empty() ? nullptr : chain.values.data(),
                                chain.indptr.data() + origin, chain.offsets[end] - origin};
        parallel_for(threads, threads, [&](int64_t part) {
            chain_kernels<double>().add(G, L, P, x, p.data(), int(part), threads);
        });
    }
    double* to = G + chain.shape.attributes * L;
    for (int a = 0; a < L; ++a)
        for (int b = 0; b < L; ++b) {
            const std::size_t k = std::size_t(a) * P + b;
            if (chain.has_weight(Label(a), Label(b)))
                to[a * L + b] += scaled[k] * sums.exponentials()[k] + pairs[k];
        }
}

int64_t marginals(const Chain& chain, const double* W, int threads, double* out) {
    const int L = chain.shape.labels, P = chain.shape.lanes;
    const Buffer T = chain.transitions_of(W);
    const Sums sums(chain, T.data());
    std::atomic<int64_t> without{chain.sequences()};
    each_sequence(chain, threads, [&](int64_t i, ChainSpace<double>& space) {
        Buffer pairs(std::size_t(2 * L) * P, 0.0);
        double* p = space.scores.data();
        const double log_z = sums(W, i, space, p, 0.0, pairs.data(), pairs.data() + std::size_t(L) * P);
        for (int64_t t = 0; t < chain.length(i); ++t)
            std::copy_n(p + t * P, L, out + (chain.offsets[i] + t) * L);
        if (!(log_z > no_path))
            for (int64_t seen = without; i < seen && !without.compare_exchange_weak(seen, i);) {
            }
    });
    return without < chain.sequences() ? without.load() : -1;
}

}  // namespace pegasos
