#include "pegasos/structured/chain_planes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pegasos {
namespace {

using std::int64_t;

constexpr int64_t none = -1;  // the right labelling, which is no plane
// Steps within a visit, and the share of the sequence's gap that they leave.
constexpr int max_steps = 200;
constexpr double left_gap = 0.1;

// Gaps up to this share of loss and largest cost are rounding.
template <class Real>
constexpr double rounding = sizeof(Real) == 4 ? 1e-6 : 1e-14;

}  // namespace

ChainPlanes::ChainPlanes(const Chain& chain, const double* weight, const ChainPlaneOptions& options)
    : chain_(chain),
      weight_(weight),
      o_(options),
      n_(chain.sequences()),
      cost_scale_(chain.largest_cost()),
      blocks_(std::size_t(n_)),
      local_(chain.ids.size()),
      Wf_(std::size_t(chain.shape.spread_numbers()), 0.0f),
      single_(chain, chain.longest()),
      exact_(chain, chain.longest()),
      decoded_(std::size_t(chain.longest())),
      at_(n_) {
    passes_ = -1;  // none has begun
    chain.forbid(Wf_.data() + chain.shape.transitions());
    std::vector<int64_t> seen(std::size_t(chain.shape.attributes), none);
    std::vector<std::int32_t> number(std::size_t(chain.shape.attributes));
    for (int64_t i = 0; i < n_; ++i) {
        std::int32_t next = 0;
        for (int64_t k = chain.indptr[chain.offsets[i]]; k < chain.indptr[chain.offsets[i + 1]]; ++k) {
            const std::size_t id = std::size_t(chain.ids[k]);
            if (seen[id] != i) seen[id] = i, number[id] = next++;
            local_[k] = number[id];
        }
        most_local_ = std::max<int64_t>(most_local_, next);
    }
    difference_.assign(std::size_t((most_local_ + chain.shape.labels) * chain.shape.labels), 0.0);
}

// each_difference with places of `difference_`.
template <class F>
void ChainPlanes::each_local(int64_t i, const Label* y, F&& f) {
    const int64_t L = chain_.shape.labels;
    const TokenAttributes x = chain_.attributes(i);
    const Label* gold = chain_.gold(i);
    for (int64_t t = 0; t < x.tokens; ++t) {
        if (y[t] != gold[t])
            for (int64_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
                const double v = x.values ? x.values[k] : 1.0;
                f(local_[k] * L + gold[t], v);
                f(local_[k] * L + y[t], -v);
            }
        if (t > 0 && (y[t] != gold[t] || y[t - 1] != gold[t - 1])) {
            if (chain_.has_weight(gold[t - 1], gold[t])) f((most_local_ + gold[t - 1]) * L + gold[t], 1.0);
            if (chain_.has_weight(y[t - 1], y[t])) f((most_local_ + y[t - 1]) * L + y[t], -1.0);
        }
    }
}

int64_t ChainPlanes::add_plane(int64_t i, const Label* y) {
    Block& block = blocks_[i];
    const int64_t tokens = chain_.length(i), p = block.size();
    block.labels.insert(block.labels.end(), y, y + tokens);
    block.alpha.push_back(0.0);
    block.unused.push_back(0.0);
    block.cost.push_back(hamming_cost(chain_, i, y));
    std::vector<double> gram(std::size_t((p + 1) * (p + 1)));
    for (int64_t a = 0; a < p; ++a) std::copy_n(block.gram.begin() + a * p, p, gram.begin() + a * (p + 1));
    each_local(i, y, [&](int64_t place, double v) { difference_[place] += v; });
    for (int64_t q = 0; q <= p; ++q) {
        double sum = 0.0;
        each_local(i, block.labels.data() + q * tokens,
                   [&](int64_t at, double v) { sum += v * difference_[at]; });
        gram[q * (p + 1) + p] = gram[p * (p + 1) + q] = sum;
    }
    each_local(i, y, [&](int64_t place, double) { difference_[place] = 0.0; });
    block.gram = std::move(gram);
    return p;
}

void ChainPlanes::drop(int64_t i) {
    Block& block = blocks_[i];
    const int64_t p = block.size(), tokens = chain_.length(i);
    std::vector<int64_t> keep;
    for (int64_t q = 0; q < p; ++q)
        if (block.alpha[q] > 0.0 || block.unused[q] < o_.unused_passes) keep.push_back(q);
    const int64_t r = int64_t(keep.size());
    if (r == p) return;
    std::vector<double> gram(std::size_t(r * r));
    for (int64_t a = 0; a < r; ++a)
        for (int64_t b = 0; b < r; ++b) gram[a * r + b] = block.gram[keep[a] * p + keep[b]];
    for (int64_t a = 0; a < r; ++a) {  // places only move down
        const int64_t q = keep[a];
        std::copy_n(block.labels.begin() + q * tokens, tokens, block.labels.begin() + a * tokens);
        block.alpha[a] = block.alpha[q];
        block.cost[a] = block.cost[q];
        block.unused[a] = block.unused[q];
    }
    block.labels.resize(std::size_t(r * tokens));
    block.alpha.resize(std::size_t(r));
    block.cost.resize(std::size_t(r));
    block.unused.resize(std::size_t(r));
    block.gram = std::move(gram);
}

namespace {

template <class Real>
ChainSpace<Real>& space_for(ChainSpace<float>& single, ChainSpace<double>& exact) {
    if constexpr (sizeof(Real) == 4)
        return single;
    else
        return exact;
}

// cost − ⟨w, ψ(y)⟩ from the scores of the tokens where y differs from gold.
template <class Real>
double height(const Chain& chain, int64_t i, const Label* y, const Real* s, const Real* T, double cost) {
    const int P = chain.shape.lanes;
    const Label* gold = chain.gold(i);
    double sum = cost;
    for (int64_t t = 0; t < chain.length(i); ++t) {
        if (y[t] != gold[t]) sum += double(s[t * P + y[t]]) - double(s[t * P + gold[t]]);
        if (t > 0 && (y[t] != gold[t] || y[t - 1] != gold[t - 1]))
            sum += double(T[int64_t(y[t - 1]) * P + y[t]]) - double(T[int64_t(gold[t - 1]) * P + gold[t]]);
    }
    return sum;
}

}  // namespace

// Scores of all tokens, or of those alone at which some plane differs from what is right.
template <class Real>
void ChainPlanes::scores_of(int64_t i, bool cached, const Real* W) {
    const int P = chain_.shape.lanes;
    const TokenAttributes x = chain_.attributes(i);
    Real* s = space_for<Real>(single_, exact_).scores.data();
    if (!cached) return chain_kernels<Real>().score(W, P, P, x, s);
    const Block& block = blocks_[i];
    const Label* gold = chain_.gold(i);
    touched_.clear();
    for (int64_t t = 0; t < x.tokens; ++t)
        for (int64_t p = 0; p < block.size(); ++p)
            if (block.labels[p * x.tokens + t] != gold[t]) {
                ask_for(W, P, x, x.indptr[t], x.indptr[t + 1]);
                touched_.push_back(t);
                break;
            }
    for (const int64_t t : touched_)
        chain_kernels<Real>().score(W, P, P, {x.ids, x.values, x.indptr + t, 1}, s + t * P);
}

template <class Real>
void ChainPlanes::visit(int64_t i, int64_t next, bool cached, Real* W) {
    const int L = chain_.shape.labels, P = chain_.shape.lanes;
    const int64_t tokens = chain_.length(i);
    Block& block = blocks_[i];
    ChainSpace<Real>& space = space_for<Real>(single_, exact_);
    const Real* T = W + chain_.shape.transitions();
    Real *s = space.scores.data(), *with_costs = space.alpha.data();
    scores_of(i, cached, W);
    double best = 0.0;  // of what is right
    if (!cached) {
        if (next >= 0) {
            const TokenAttributes later = chain_.attributes(next);
            const int64_t from = later.indptr[0], end = later.indptr[later.tokens];
            ask_for(W, P, later, from, std::min(from + first_attributes, end));
        }
        std::copy_n(s, tokens * P, with_costs);
        add_costs(chain_, i, Real(1), with_costs);
        Label* y = decoded_.data();
        chain_kernels<Real>().decode(with_costs, T, space.begin.data(), space.end.data(), L, P, tokens,
                                     with_costs, y);
        const bool right = std::equal(y, y + tokens, chain_.gold(i));
        best = right ? 0.0 : height(chain_, i, y, s, T, hamming_cost(chain_, i, y));
        loss_ += weight(i) / o_.total * std::max(best, 0.0);
        int64_t same = none;
        for (int64_t p = 0; p < block.size() && same == none; ++p)
            if (std::equal(y, y + tokens, block.labels.data() + p * tokens)) same = p;
        if (!right && same == none && best > 0.0) add_plane(i, y);
    }
    h_.resize(std::size_t(block.size()));
    double mean = 0.0;
    for (int64_t p = 0; p < block.size(); ++p) {
        h_[p] = height(chain_, i, block.labels.data() + p * tokens, s, T, block.cost[p]);
        mean += block.alpha[p] * h_[p];
        if (cached) best = std::max(best, h_[p]);
    }
    const double gap = std::max(best, 0.0) - mean;
    if (!cached) gap_ += weight(i) / o_.total * std::max(gap, 0.0);
    if (gap > rounding<Real> * (cost_scale_ + std::abs(best))) correct(i, gap, W, h_.data());
    for (int64_t p = 0; p < block.size(); ++p)
        block.unused[p] = block.alpha[p] > 0.0 ? 0.0 : block.unused[p] + (cached ? 0.0 : 1.0);
    if (!cached) drop(i);
}

// Maximises the dual over the planes of a sequence, and moves w along.
template <class Real>
void ChainPlanes::correct(int64_t i, double gap, Real* W, double* h) {
    Block& block = blocks_[i];
    const int64_t p = block.size(), tokens = chain_.length(i);
    const double factor = weight(i) / (o_.lam * o_.total);
    const auto gram = [&](int64_t a, int64_t b) {
        return a == none || b == none ? 0.0 : block.gram[a * p + b];
    };
    double rest = 1.0, h_right = 0.0;
    for (double a : block.alpha) rest -= a;
    rest = std::max(rest, 0.0);
    change_.assign(std::size_t(p), 0.0);
    for (int step = 0; step < max_steps; ++step) {
        int64_t up = none, down = rest > 0.0 ? none : -2;
        double high = h_right, low = rest > 0.0 ? h_right : std::numeric_limits<double>::infinity();
        for (int64_t q = 0; q < p; ++q) {
            if (h[q] > high) high = h[q], up = q;
            if (block.alpha[q] > 0.0 && h[q] < low) low = h[q], down = q;
        }
        if (down == -2 || up == down || high - low <= (step == 0 ? 0.0 : left_gap * gap)) break;
        const double curvature = factor * (gram(up, up) + gram(down, down) - 2 * gram(up, down));
        const double room = down == none ? rest : block.alpha[down];
        const double move = curvature * room > high - low ? (high - low) / curvature : room;
        if (up == none)
            rest += move;
        else
            block.alpha[up] += move, change_[up] += move;
        if (down == none)
            rest = move == room ? 0.0 : rest - move;
        else
            block.alpha[down] = move == room ? 0.0 : block.alpha[down] - move, change_[down] -= move;
        for (int64_t q = 0; q < p; ++q) h[q] -= factor * move * (gram(q, up) - gram(q, down));
    }
    const int P = chain_.shape.lanes;
    const TokenAttributes x = chain_.attributes(i);
    const Label* gold = chain_.gold(i);
    Real* T = W + chain_.shape.transitions();
    auto& amounts = amounts_;
    for (int64_t t = 0; t < tokens; ++t) {
        amounts.assign(1, {gold[t], 0.0});
        for (int64_t q = 0; q < p; ++q) {
            const Label* y = block.labels.data() + q * tokens;
            if (change_[q] == 0.0) continue;
            const double amount = factor * change_[q];
            if (y[t] != gold[t]) {
                amounts[0].second += amount;
                const auto same = std::find_if(amounts.begin() + 1, amounts.end(),
                                               [&](const auto& entry) { return entry.first == y[t]; });
                if (same == amounts.end())
                    amounts.emplace_back(y[t], -amount);
                else
                    same->second -= amount;
            }
            if (t > 0 && (y[t] != gold[t] || y[t - 1] != gold[t - 1])) {
                if (chain_.has_weight(gold[t - 1], gold[t]))
                    T[int64_t(gold[t - 1]) * P + gold[t]] += Real(amount);
                if (chain_.has_weight(y[t - 1], y[t])) T[int64_t(y[t - 1]) * P + y[t]] -= Real(amount);
            }
        }
        if (amounts.size() == 1) continue;
        for (int64_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
            const double v = x.values ? x.values[k] : 1.0;
            Real* row = W + int64_t(x.ids[k]) * P;
            for (const auto& [label, amount] : amounts) row[label] += Real(v * amount);
        }
    }
}

void ChainPlanes::advance(int64_t tokens, bool cached) {
    if (at_ == n_) {
        ++passes_;
        at_ = 0;
        if (!cached) gap_ = loss_ = 0.0;
        epoch_order(order_, n_, Sampling::permutation, o_.seed, passes_);
    }
    for (int64_t done = 0; at_ < n_ && done < tokens; ++at_) {
        const int64_t i = order_[at_];
        if (cached && blocks_[i].alpha.empty()) continue;
        const int64_t next = at_ + 1 < n_ ? order_[at_ + 1] : none;
        if (double_)
            visit(i, next, cached, W_.data());
        else
            visit(i, next, cached, Wf_.data());
        done += chain_.length(i);
    }
}

void ChainPlanes::set_weights(const double* W) {
    if (double_)
        chain_.spread(W, W_.data());
    else
        chain_.spread(W, Wf_.data());
}

void ChainPlanes::weights(double* W) const {
    if (double_)
        chain_.gather(W_.data(), 1.0, W);
    else
        chain_.gather(Wf_.data(), 1.0, W);
}

double ChainPlanes::squares() const {
    const auto sum = [](const auto& W) {
        double parts[label_block] = {};
        for (std::size_t k = 0; k < W.size();
             k += label_block)  // in blocks, so that additions do not wait for each other
            for (int l = 0; l < label_block; ++l) {
                const double w = double(W[k + l]);
                parts[l] += w > no_path ? w * w : 0.0;
            }
        double all = 0.0;
        for (const double part : parts) all += part;
        return all;
    };
    return double_ ? sum(W_) : sum(Wf_);
}

void ChainPlanes::set_double() {
    if (double_) return;
    W_.assign(Wf_.begin(), Wf_.end());
    chain_.forbid(W_.data() + chain_.shape.transitions());
    LaneBuffer<float>().swap(Wf_);
    double_ = true;
}

PlaneTable ChainPlanes::table() const {
    PlaneTable out;
    for (int64_t i = 0; i < n_; ++i) {
        const Block& block = blocks_[i];
        for (int64_t p = 0; p < block.size(); ++p) {
            out.rows.push_back(i);
            out.alpha.push_back(block.alpha[p]);
            out.unused.push_back(block.unused[p]);
        }
        out.labels.insert(out.labels.end(), block.labels.begin(), block.labels.end());
    }
    return out;
}

void ChainPlanes::add_planes(const PlaneList& planes, const double* alpha, const double* unused) {
    for (int64_t p = 0; p < planes.count; ++p) {
        const int64_t i = planes.rows[p], tokens = chain_.length(i);
        const Label* y = planes.labels + planes.starts[p];
        if (std::equal(y, y + tokens, chain_.gold(i))) continue;
        Block& block = blocks_[i];
        int64_t at = none;
        for (int64_t q = 0; q < block.size() && at == none; ++q)
            if (std::equal(y, y + tokens, block.labels.data() + q * tokens)) at = q;
        if (at == none) at = add_plane(i, y);
        block.alpha[at] += alpha[p];
        if (unused) block.unused[at] = unused[p];
    }
}

void ChainPlanes::go_on(int64_t passes, int64_t at, double gap, double loss) {
    passes_ = passes;
    at_ = at;
    gap_ = gap;
    loss_ = loss;
    if (passes_ >= 0) epoch_order(order_, n_, Sampling::permutation, o_.seed, passes_);
}

}  // namespace pegasos
