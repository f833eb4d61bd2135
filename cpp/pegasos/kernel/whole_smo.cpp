#include "pegasos/kernel/whole_smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "pegasos/kernel/panels.hpp"

namespace pegasos {

using std::int64_t;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Times that steps are taken towards one goal: rounding may have spoilt what the last ones had reached.
constexpr int retries = 4;

const VectorEntry<double>& vectors() { return kernel_table(); }

int64_t padded(int64_t n) { return (n + 7) / 8 * 8; }

std::size_t at(int64_t i) { return std::size_t(i); }

}  // namespace

// F = Kα. Where terms are so large that their rounding errors would pass for violations, they are added up in
// extended precision: SMO would go after the errors, which are others after every step.
void WholeSMO::scores(const WholePart& x, double goal) {
    rows_.clear();
    coef_.clear();
    double size = 0, diagonal = 0;
    for (int64_t i = 0; i < x.n; ++i) {
        diagonal = std::max(diagonal, std::abs(diagonal_[at(i)]));
        if (x.alpha[i] == 0) continue;
        rows_.push_back(x.K + i * x.stride);
        coef_.push_back(x.alpha[i]);
        size += std::abs(x.alpha[i]);
    }
    std::fill(F_.begin(), F_.end(), 0.0);
    work += int64_t(rows_.size()) * x.n;
    if (std::numeric_limits<double>::epsilon() * diagonal * size <= 0.01 * goal) {
        vectors().add(rows_.data(), coef_.data(), int(rows_.size()), F_.data(), x.stride);
        return;
    }
    std::vector<long double> sums(at(x.n), 0.0L);
    for (std::size_t r = 0; r < rows_.size(); ++r)
        for (int64_t i = 0; i < x.n; ++i) sums[at(i)] += static_cast<long double>(coef_[r]) * rows_[r][i];
    std::copy(sums.begin(), sums.end(), F_.begin());
}

// α within its bounds and, with a bias, its sum zero but for rounding: one variable between its bounds makes
// up for what is left, or else the heavier sign is scaled down. What lies on a bound is to stay there: a little
// below, it would violate the optimality conditions.
void WholeSMO::balance(const WholePart& x) {
    long double sum = 0;
    double up = 0, down = 0, most = 0;
    int64_t free = -1;
    for (int64_t i = 0; i < x.n; ++i) {
        x.alpha[i] = std::clamp(x.alpha[i], lo_[at(i)], hi_[at(i)]);
        sum += x.alpha[i];
        (x.alpha[i] > 0 ? up : down) += std::abs(x.alpha[i]);
        const double room = std::min(x.alpha[i] - lo_[at(i)], hi_[at(i)] - x.alpha[i]);
        if (room > most) most = room, free = i;
    }
    if (!machine_.free_bias) return;
    const double excess = double(sum);
    if (std::abs(excess) < most) {
        x.alpha[free] -= excess;
    } else if (std::abs(excess) > 1e-15 * std::max(up, down)) {
        const double scale = std::min(up, down) / std::max(up, down);
        for (int64_t i = 0; i < x.n; ++i)
            if (up > down ? x.alpha[i] > 0 : x.alpha[i] < 0) x.alpha[i] *= scale;
    }
}

// Of a pair of variables, or without a bias of one.
double WholeSMO::violation(const WholePart& x) const {
    double top = -infinite, bottom = infinite;
    for (int64_t i = 0; i < x.n; ++i) {
        const double g = x.y[i] - F_[at(i)];
        if (!std::isfinite(g)) return std::numeric_limits<double>::quiet_NaN();
        if (x.alpha[i] < hi_[at(i)]) top = std::max(top, g);
        if (x.alpha[i] > lo_[at(i)]) bottom = std::min(bottom, g);
    }
    return machine_.free_bias ? top - bottom : std::max(top, -bottom);
}

// The middle of the biases that minimise Σ c max(0, 1 − y(F + b)). Its slope, times −1, falls by c at every
// kink b = y − F, from the weight of the positive rows to minus that of the negative ones.
double WholeSMO::best_bias(const WholePart& x) {
    const auto kink = [&](int64_t i) { return x.y[i] - F_[at(i)]; };
    order_.clear();
    double slope = 0, total = 0;
    for (int64_t i = 0; i < x.n; ++i) {
        if (x.weight[i] == 0) continue;
        order_.push_back(i);
        total += x.weight[i];
        if (x.y[i] > 0) slope += x.weight[i];
    }
    if (order_.empty()) return 0;
    std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return kink(a) < kink(b); });
    const double zero = 1e-12 * total;  // what counts as zero
    if (slope <= zero) return kink(order_.front());
    std::size_t k = 0;
    while (k + 1 < order_.size() && (slope -= x.weight[order_[k]]) > zero) ++k;
    // From kink k on the slope is not positive; where it is zero, all biases up to the next kink are best.
    const double from = kink(order_[k]);
    if (k + 1 == order_.size() || slope < -zero) return from;
    std::size_t end = k + 1;
    while (end + 1 < order_.size() && (slope -= x.weight[order_[end]]) >= -zero) ++end;
    return from + 0.5 * (kink(order_[end]) - from);
}

// P, D and the best bias of α, whose scores F have been computed from it and from kernel values alone.
void WholeSMO::certify(const WholePart& x, const PartStates& s, int64_t p) {
    const double b = machine_.free_bias ? best_bias(x) : 0.0;
    double square = 0, length = 0, linear = 0, loss = 0;
    for (int64_t i = 0; i < x.n; ++i) {
        square += x.alpha[i] * F_[at(i)];
        length += x.alpha[i] * x.alpha[i];
        linear += x.y[i] * x.alpha[i];
        loss += x.weight[i] * std::max(0.0, 1 - x.y[i] * (F_[at(i)] + b));
    }
    s.bias[p] = b;
    s.primal[p] = 0.5 * machine_.lam * square + loss / machine_.total;
    // With α all of tα, 0 ≤ t ≤ 1, is feasible: the best t counts.
    const double slope = machine_.lam * linear,
                 half = 0.5 * machine_.lam * (square + machine_.shift * length);
    const double t = slope > 0 && slope < 2 * half ? slope / (2 * half) : 1.0;
    s.dual[p] = std::max({slope - half, t * (slope - t * half), 0.0});
    if (s.primal[p] < s.dual[p] && s.dual[p] <= s.primal[p] * (1 + 1e-12))
        s.dual[p] = s.primal[p];  // rounding
}

// Violations below the rounding of the scores, and of the terms that make them up, mean nothing.
double WholeSMO::rounding(const WholePart& x) const {
    double largest = 1, diagonal = 0, alpha = 0;
    for (int64_t i = 0; i < x.n; ++i) {
        largest = std::max(largest, std::abs(F_[at(i)]));
        diagonal = std::max(diagonal, std::abs(diagonal_[at(i)]));
        alpha = std::max(alpha, std::abs(x.alpha[i]));
    }
    return 4 * std::numeric_limits<double>::epsilon() * std::max(largest, diagonal * alpha);
}

void WholeSMO::steps(const WholePart& x, const PartStates& s, int64_t p, int64_t most) {
    for (int64_t i = 0; i < x.n; ++i) {
        g_[at(i)] = x.y[i] - F_[at(i)];
        a_[at(i)] = x.alpha[i];
    }
    const auto block = machine_.free_bias ? vectors().smo_block : vectors().box_block;
    const BlockResult r = block({x.n, x.stride, x.K, diagonal_.data(), lo_.data(), hi_.data(), g_.data(),
                                 a_.data(), up_.data(), low_.data(), 0.0, 0.5 * s.goal[p], most});
    std::copy_n(a_.data(), x.n, x.alpha);
    s.steps[p] += r.steps;
    work += (r.steps + 1) * 2 * x.n;
    balance(x);
    scores(x, s.goal[p]);
}

Visit WholeSMO::visit(const WholePart& x, const PartStates& s, int64_t p) {
    for (auto* room : {&lo_, &hi_, &g_, &F_, &diagonal_, &up_, &low_, &a_}) room->assign(at(x.stride), 0.0);
    for (int64_t i = 0; i < x.n; ++i) {
        const double room = machine_.C * x.weight[i];
        (x.y[i] > 0 ? hi_ : lo_)[at(i)] = x.y[i] > 0 ? room : -room;
        diagonal_[at(i)] = x.K[i * x.stride + i];
    }
    values += x.n * x.n;
    work += x.n * x.n;
    const auto over = [&](Over why) { s.over[p] = std::int8_t(why); };
    const int64_t before = s.steps[p];
    if (s.over[p] == 0) balance(x);
    scores(x, s.goal[p]);
    double last_gap = infinite;
    for (int left = retries;;) {
        s.violation[p] = violation(x);
        if (std::isnan(s.violation[p])) return Visit::not_finite;
        const double least = rounding(x);
        s.goal[p] = std::max(s.goal[p], least);
        const int64_t piece = machine_.piece - (s.steps[p] - before);
        if (s.over[p] == 0 && s.violation[p] > s.goal[p] && piece > 0 && left > 0) {
            if (s.steps[p] >= machine_.max_steps)
                over(Over::max_steps);
            else
                steps(x, s, p, std::min(machine_.max_steps - s.steps[p], piece));
            --left;
            continue;
        }
        certify(x, s, p);
        if (s.over[p] != 0) return Visit::rests;
        const double gap = s.primal[p] - s.dual[p];
        const bool good = gap <= machine_.tol * s.primal[p], hard = s.violation[p] > s.goal[p];
        if (!good && hard) return Visit::piece_used;
        const bool more = gap > 1e-15 * s.primal[p] && gap < 0.5 * last_gap && s.violation[p] > least &&
                          s.steps[p] <= machine_.beyond * x.n;
        if (good ? hard || !more : s.violation[p] <= least) {
            over(good ? Over::reached : Over::no_progress);
            return Visit::rests;
        }
        s.goal[p] *= good ? 1e-3 : std::clamp(0.5 * machine_.tol * s.primal[p] / gap, 1e-3, 0.5);
        last_gap = good ? gap : infinite;
        left = retries;
    }
}

Visit visit_pair(WholeSMO& smo, const PairProblem& x, const PartStates& states, int64_t i, int64_t j,
                 const double* K, int64_t stride) {
    const int64_t k = x.classes, m = x.starts[k], begin_i = x.starts[i], begin_j = x.starts[j];
    const int64_t n_i = x.starts[i + 1] - begin_i, n_j = x.starts[j + 1] - begin_j, n = n_i + n_j;
    double *of_i = x.table + (j - 1) * m + begin_i, *of_j = x.table + i * m + begin_j;
    auto& [y, weight, alpha] = smo.of_pair;
    y.assign(at(n), -1.0);
    std::fill_n(y.data(), n_i, 1.0);
    const auto joined = [&](std::vector<double>& to, const double* first, const double* second) {
        to.resize(at(n));
        std::copy_n(first, n_i, to.data());
        std::copy_n(second, n_j, to.data() + n_i);
    };
    joined(weight, x.weight + begin_i, x.weight + begin_j);
    joined(alpha, of_i, of_j);
    const int64_t p = x.number(i, j) - states.begin;
    const Visit how = smo.visit({n, stride, K, y.data(), weight.data(), alpha.data()}, states, p);
    std::copy_n(alpha.data(), n_i, of_i);
    std::copy_n(alpha.data() + n_i, n_j, of_j);
    return how;
}

int64_t visit_pairs(WholeSMO& smo, const PairProblem& x, const PartStates& states, const PairStrip& t,
                    int64_t budget, Visit& last) {
    const int64_t n_i = x.starts[t.i + 1] - x.starts[t.i];
    std::vector<double> K;
    last = Visit::rests;
    for (int64_t j = t.first; j < t.last; ++j) {
        if (states.rests(x.number(t.i, j) - states.begin)) continue;
        const int64_t n_j = x.starts[j + 1] - x.starts[j], n = n_i + n_j, stride = padded(n);
        const double* strip = t.strip + x.starts[j] - x.starts[t.first];
        const double* other = t.others + t.offsets[j - t.first];
        K.assign(at(n * stride), 0.0);
        for (int64_t r = 0; r < n_i; ++r) {
            std::copy_n(t.own + r * t.own_stride, n_i, K.data() + r * stride);
            std::copy_n(strip + r * t.strip_stride, n_j, K.data() + r * stride + n_i);
        }
        for (int64_t r = 0; r < n_j; ++r) {
            double* row = K.data() + (n_i + r) * stride;
            for (int64_t c = 0; c < n_i; ++c) row[c] = strip[c * t.strip_stride + r];
            std::copy_n(other + r * padded(n_j), n_j, row + n_i);
        }
        last = visit_pair(smo, x, states, t.i, j, K.data(), stride);
        if (last != Visit::rests || smo.work > budget) return j + 1;
    }
    return t.last;
}

}  // namespace pegasos
