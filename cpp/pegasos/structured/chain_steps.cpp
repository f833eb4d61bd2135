#include "pegasos/structured/chain_steps.hpp"

#include <algorithm>
#include <cmath>

namespace pegasos {
namespace {

using std::int64_t;

// Labels of decoded labellings that are kept at most: half a gigabyte.
constexpr std::size_t most_labels = std::size_t(1) << 28;
// What projections have shrunk w to before V itself is shrunk: with a mean earlier, since V times C_t and U, of which it
// is the difference, are larger than it by as much.
constexpr double least_shrunk = 1e-4, least_shrunk_with_mean = 1e-2;
// Costs over the scale of w are at most this: above, scores no longer count beside them, and no sum of them may come near
// what is forbidden.
constexpr double largest_cost = 1e18;

}  // namespace

template <class Real>
ChainSteps<Real>::ChainSteps(const Chain& chain, const double* weight, const ChainStepOptions& options)
    : chain_(chain),
      weight_(weight),
      o_(options),
      n_(chain.sequences()),
      batches_(n_, options.batch_size, options.sampling, options.seed, true),
      V_(std::size_t(chain.shape.spread_numbers()), Real(0)),
      U_(options.mean == ChainMean::none ? 0 : V_.size(), Real(0)),
      difference_(options.rule == ChainRule::passive_aggressive ? V_.size() : 0, Real(0)),
      space_(chain, chain.longest()) {
    const std::size_t square = std::size_t(chain.shape.labels) * chain.shape.lanes;
    cost_scale_ = chain.largest_cost();
    chain.forbid(V_.data() + chain.shape.transitions());
    decoded_.visits.assign(std::size_t(n_), 0.0);
    if (o_.loss == ChainLoss::log) {
        for (LaneBuffer<Real>* buffer : {&T_, &rows_, &columns_, &pairs_}) buffer->assign(square, Real(0));
        exact_pairs_.assign(square, 0.0);
    }
    o_.batch_size = batches_.size();
    batches_.draw(order_, 0);
}

template <class Real>
double ChainSteps<Real>::scale() const {
    if (o_.rule != ChainRule::pegasos) return 1.0;
    return omega() > 0 ? at_.shrunk / (o_.lam * omega()) : 0.0;
}

template <class Real>
void ChainSteps<Real>::advance(int64_t tokens) {
    if (epoch_ended()) {
        ++at_.epoch;
        at_.at = 0;
        batches_.draw(order_, at_.epoch);
    }
    const bool log = o_.loss == ChainLoss::log;
    const int64_t end = int64_t(order_.size());
    for (int64_t done = 0; at_.at < end && done < tokens;) {
        const int64_t first = at_.at, last = std::min(end, first + o_.batch_size);
        int64_t length = 0;
        for (int64_t k = first; k < last; ++k) length += chain_.length(order_[k]);
        labels_.resize(std::size_t(log ? 0 : length));
        if (log) marginals_.resize(std::size_t(length * chain_.shape.lanes));
        int64_t from = 0;
        for (int64_t k = first; k < last; ++k) {  // the weights stay as they are
            look_at(order_[k], k + 1 < end ? order_[k + 1] : -1, labels_.data() + from,
                    marginals_.data() + from * chain_.shape.lanes);
            from += chain_.length(order_[k]);
        }
        from = 0;
        for (int64_t k = first; k < last; ++k) {
            step(order_[k], labels_.data() + from, marginals_.data() + from * chain_.shape.lanes);
            from += chain_.length(order_[k]);
        }
        at_.at = last;
        done += length;
        finish_step();
    }
}

// Decodes a sequence, or finds its marginals, at the current weights.
template <class Real>
void ChainSteps<Real>::look_at(int64_t i, int64_t next, Label* y, Real* marginals) {
    const int L = chain_.shape.labels, P = chain_.shape.lanes;
    const auto& kernels = chain_kernels<Real>();
    const TokenAttributes x = chain_.attributes(i);
    const double scale = this->scale();
    Real* s = o_.loss == ChainLoss::log ? marginals : space_.scores.data();
    kernels.score(V_.data(), P, P, x, s);
    if (next >= 0) {
        const TokenAttributes later = chain_.attributes(next);
        const int64_t from = later.indptr[0], end = later.indptr[later.tokens];
        ask_for(V_.data(), P, later, from, std::min(from + first_attributes, end));
    }
    const Real* T = V_.data() + chain_.shape.transitions();
    if (o_.loss == ChainLoss::hinge) {
        // cost/scale + score of V is (cost + score of w)/scale; at w = 0 the cost alone decides.
        if (scale == 0.0) std::fill_n(s, x.tokens * P, Real(0));
        if (o_.rule != ChainRule::perceptron)
            add_costs(chain_, i, Real(scale == 0.0 ? 1.0 : std::min(1.0 / scale, largest_cost / cost_scale_)),
                      s);
        kernels.decode(s, T, space_.begin.data(), space_.end.data(), L, P, x.tokens, s, y);
        remember(i, y);
        return;
    }
    for (int64_t k = 0; k < x.tokens * P; ++k) s[k] *= Real(scale);
    for (int k = 0; k < L * P; ++k) T_[k] = double(T[k]) < no_path ? Real(forbidden) : T[k] * Real(scale);
    const auto exp = exp_transitions(chain_, T_.data(), rows_.data(), columns_.data());
    const double own = weight_ ? weight_[i] : 1.0;
    const double log_z = kernels.forward_backward(s, exp, space_.reach, space_.end.data(), L, P, x.tokens,
                                                  space_.alpha.data(), Real(own), pairs_.data());
    if (!std::isnan(log_z)) {
        for (int k = 0; k < L * P; ++k) exact_pairs_[k] += double(pairs_[k]) * double(rows_[k]);
    } else {
        kernels.score(V_.data(), P, P, x, s);
        for (int64_t k = 0; k < x.tokens * P; ++k) s[k] *= Real(scale);
        log_forward_backward(chain_, s, T_.data(), x.tokens, own, exact_pairs_.data());
    }
    std::fill(pairs_.begin(), pairs_.end(), Real(0));
}

template <class Real>
void ChainSteps<Real>::remember(int64_t i, const Label* y) {
    const int64_t tokens = chain_.length(i);
    if (decoded_.labels.size() + std::size_t(tokens) > most_labels) return;
    decoded_.visits[i] += 1.0;
    if (std::equal(y, y + tokens, chain_.gold(i))) return;
    decoded_.rows.push_back(i);
    decoded_.labels.insert(decoded_.labels.end(), y, y + tokens);
}

template <class Real>
void ChainSteps<Real>::add(int64_t place, double amount) {
    const double before = double(V_[place]);
    V_[place] = Real(before + amount);
    if (o_.radius > 0) at_.squares += (double(V_[place]) - before) * (double(V_[place]) + before);
    if (!U_.empty()) U_[place] += Real(at_.carried * amount);
}

// ℓ_i/‖ψ_i‖², at most the aggressiveness. ψ is added up in `difference_`, which is zero before and after.
template <class Real>
double ChainSteps<Real>::passive_step(int64_t i, const Label* y) {
    const int P = chain_.shape.lanes;
    double product = 0.0, square = 0.0;
    each_difference(chain_, i, y, [&](int64_t row, Label l, double v) {
        product += v * double(V_[row * P + l]);
        difference_[row * P + l] += Real(v);
    });
    each_difference(chain_, i, y, [&](int64_t row, Label l, double) {
        Real& d = difference_[row * P + l];
        square += double(d) * double(d);
        d = 0;
    });
    const double loss = hamming_cost(chain_, i, y) - product;
    return square > 0.0 && loss > 0.0 ? std::min(o_.aggressiveness, loss / square) : 0.0;
}

template <class Real>
void ChainSteps<Real>::step(int64_t i, const Label* y, const Real* marginals) {
    const int P = chain_.shape.lanes;
    double amount = weight_ ? weight_[i] : 1.0;
    if (o_.rule == ChainRule::pegasos) amount /= at_.shrunk;
    if (o_.loss == ChainLoss::hinge) {
        if (o_.rule == ChainRule::passive_aggressive) amount *= passive_step(i, y);
        if (amount == 0.0) return;
        each_difference(chain_, i, y, [&](int64_t row, Label l, double v) { add(row * P + l, amount * v); });
        return;
    }
    // φ(gold) − E φ; what is expected of the transitions is added for the whole batch, in finish_step.
    const TokenAttributes x = chain_.attributes(i);
    const Label* gold = chain_.gold(i);
    for (int64_t t = 0; t < x.tokens; ++t) {
        const Real* p = marginals + t * P;
        for (int64_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
            const double v = amount * (x.values ? x.values[k] : 1.0);
            const int64_t row = int64_t(x.ids[k]) * P;
            if (o_.radius > 0) {
                for (int l = 0; l < chain_.shape.labels; ++l)
                    add(row + l, v * (double(gold[t] == l) - double(p[l])));
                continue;
            }
            // The same, eight lanes at a time.
            for (int l = 0; l < P; ++l) V_[row + l] -= Real(v) * p[l];
            V_[row + gold[t]] += Real(v);
            if (U_.empty()) continue;
            const Real lag = Real(v * at_.carried);
            for (int l = 0; l < P; ++l) U_[row + l] -= lag * p[l];
            U_[row + gold[t]] += lag;
        }
        if (t > 0 && chain_.has_weight(gold[t - 1], gold[t]))
            add((chain_.shape.attributes + gold[t - 1]) * P + gold[t], amount);
    }
}

template <class Real>
void ChainSteps<Real>::finish_step() {
    const int L = chain_.shape.labels, P = chain_.shape.lanes;
    if (o_.loss == ChainLoss::log) {
        for (int a = 0; a < L; ++a)
            for (int b = 0; b < L; ++b)
                if (exact_pairs_[a * P + b] != 0.0 && chain_.has_weight(Label(a), Label(b)))
                    add((chain_.shape.attributes + a) * P + b, -exact_pairs_[a * P + b] / at_.shrunk);
        std::fill(exact_pairs_.begin(), exact_pairs_.end(), 0.0);
    }
    if (o_.radius > 0) {
        const double norm = scale() * std::sqrt(std::max(at_.squares, 0.0));
        if (norm > o_.radius) at_.shrunk *= o_.radius / norm;
        if (at_.shrunk < (U_.empty() ? least_shrunk : least_shrunk_with_mean)) shrink();
    }
    if (U_.empty()) return;
    const double share = o_.mean == ChainMean::window && o_.rule == ChainRule::pegasos ? omega() : 1.0;
    at_.carried += share * scale();
    at_.total += share;
}

// Shrinks V as projections have shrunk w. U takes over what C_t V is of the mean, so that C_t begins again at 0.
template <class Real>
void ChainSteps<Real>::shrink() {
    for (std::size_t k = 0; k < V_.size(); ++k) {
        const double v = double(V_[k]);
        if (v < no_path) continue;
        if (!U_.empty()) U_[k] = Real(double(U_[k]) - at_.carried * v);
        V_[k] = Real(v * at_.shrunk);
    }
    at_.squares *= at_.shrunk * at_.shrunk;
    at_.carried = 0.0;
    at_.shrunk = 1.0;
}

template <class Real>
void ChainSteps<Real>::begin_window() {
    decoded_ = Decoded{{}, {}, std::vector<double>(std::size_t(n_), 0.0)};
    if (o_.mean != ChainMean::window) return;
    std::fill(U_.begin(), U_.end(), Real(0));
    at_.carried = at_.total = 0.0;
}

template <class Real>
void ChainSteps<Real>::weights(bool mean, double* W) const {
    if (!mean) return chain_.gather(V_.data(), scale(), W);
    chain_.gather(V_.data(), at_.carried / at_.total, W);
    const int L = chain_.shape.labels, P = chain_.shape.lanes;
    for (int64_t r = 0; r < chain_.shape.rows(); ++r)
        for (int l = 0; l < L; ++l) W[r * L + l] -= double(U_[r * P + l]) / at_.total;
}

template <class Real>
void ChainSteps<Real>::restore(const ChainProgress& at, const double* V, const double* U, Decoded decoded) {
    at_ = at;
    chain_.spread(V, V_.data());
    if (!U_.empty()) {
        const int L = chain_.shape.labels, P = chain_.shape.lanes;
        for (int64_t r = 0; r < chain_.shape.rows(); ++r)
            for (int l = 0; l < L; ++l) U_[r * P + l] = Real(U[r * L + l]);
    }
    decoded_ = std::move(decoded);
    batches_.draw(order_, at_.epoch);
    if (at_.at > int64_t(order_.size()))
        throw std::invalid_argument("state: more sequences than an epoch has");
}

template class ChainSteps<float>;
template class ChainSteps<double>;

}  // namespace pegasos
