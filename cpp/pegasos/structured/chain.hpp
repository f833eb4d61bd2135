// Sequences whose tokens get one label each, and the weights of a linear chain.
//
// A token t has attributes (id, value); a labelling y of a sequence has the score
//
//     Σ_t Σ_k v_k W[id_k][y_t]  +  Σ_{t>0} T[y_{t-1}][y_t]  =  ⟨W, φ(x, y)⟩
//
// Weights are one matrix of attributes + labels rows, the last of which are T, and label_block zeros behind them, so that
// whole vectors can be read from any row. Solvers have their rows spread into `lanes` numbers, labels padded to a multiple
// of eight; what pads rows of W is 0, what pads rows of T is `forbidden`, as transitions are that a grammar does not
// allow: no step ever touches them, since every labelling that is decoded is allowed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "pegasos/core/memory.hpp"

namespace pegasos {

using Label = std::uint16_t;

inline constexpr int label_block = 8;

// So low that no path of weights which are numbers comes near it, and so high that many of them add up to a number.
inline constexpr double forbidden = -1e30;
// A best path below this uses what is forbidden: there is no other.
inline constexpr double no_path = -1e29;

// The attributes of consecutive tokens: those of token t are ids[indptr[t]] … ids[indptr[t + 1] - 1].
struct TokenAttributes {
    const std::int32_t* ids;
    const double* values;  // null: all are 1
    const std::int64_t* indptr;
    std::int64_t tokens;
};

struct ChainShape {
    std::int64_t attributes = 0;
    int labels = 1, lanes = label_block;

    ChainShape() = default;
    ChainShape(std::int64_t attributes_, int labels_)
        : attributes(attributes_),
          labels(labels_),
          lanes((labels_ + label_block - 1) / label_block * label_block) {}

    std::int64_t rows() const { return attributes + labels; }
    std::int64_t numbers() const { return rows() * labels + label_block; }  // of weights
    // Of weights in lanes: all of them, and where T begins.
    std::int64_t spread_numbers() const { return rows() * lanes; }
    std::int64_t transitions() const { return attributes * lanes; }
};

// What labellings are allowed. Where all are, it changes nothing but the padding.
struct Grammar {
    std::vector<std::uint8_t> next;          // labels × labels: may the second follow the first?
    std::vector<std::uint8_t> first, final;  // labels: may a sequence begin, or end, with it?
};

// The labels that paths from the begin of a sequence can have at each token: 0, or forbidden. The sets repeat, since each
// follows from the one before: from row `count` on, rows come again from row `back`.
template <class Real>
struct Reach {
    const Real* rows;  // count × lanes; the first is what sequences may begin with
    std::int64_t count, back;

    const Real* at(std::int64_t t, int lanes) const {
        return rows + (t < count ? t : back + (t - back) % (count - back)) * lanes;
    }
};

// A checked corpus; it owns all it refers to.
struct Chain {
    ChainShape shape;
    std::vector<std::int64_t> offsets;  // of the sequences in the tokens
    std::vector<std::int64_t> indptr;   // of the tokens in the attributes
    LaneBuffer<std::int32_t> ids;
    LaneBuffer<double> values;  // empty: all are 1
    Grammar grammar;
    Buffer reach;  // the rows of Reach
    std::int64_t reach_count = 0, reach_back = 0;
    Buffer end;  // lanes: 0, or forbidden

    // Of a corpus that is learnt from:
    std::vector<Label> tags;
    Buffer cost;                       // labels × lanes: cost[right][wrong] ≥ 0, and 0 of what is right
    std::vector<std::uint8_t> learnt;  // labels × labels: transitions that have a weight

    std::int64_t sequences() const { return std::int64_t(offsets.size()) - 1; }
    std::int64_t tokens() const { return offsets.back(); }
    std::int64_t length(std::int64_t i) const { return offsets[i + 1] - offsets[i]; }
    const Label* gold(std::int64_t i) const { return tags.data() + offsets[i]; }
    bool has_weight(Label from, Label to) const { return learnt[std::size_t(from) * shape.labels + to] != 0; }
    TokenAttributes attributes(std::int64_t i) const {
        return {ids.data(), values.empty() ? nullptr : values.data(), indptr.data() + offsets[i], length(i)};
    }
    // Of one token; 1 where nothing costs anything.
    double largest_cost() const {
        const double most = cost.empty() ? 0.0 : *std::max_element(cost.begin(), cost.end());
        return most > 0.0 ? most : 1.0;
    }
    std::int64_t longest() const {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < sequences(); ++i) most = std::max(most, length(i));
        return most;
    }

    // What follows from the grammar.
    void find_paths() {
        const std::size_t L = std::size_t(shape.labels), P = std::size_t(shape.lanes);
        const auto lanes_of = [&](const std::vector<std::uint8_t>& flags, Buffer& to) {
            for (std::size_t l = 0; l < P; ++l) to.push_back(l < L && flags[l] ? 0.0 : forbidden);
        };
        end.clear();
        lanes_of(grammar.final, end);
        std::vector<std::vector<std::uint8_t>> sets{grammar.first};
        for (reach_back = -1; reach_back < 0;) {
            std::vector<std::uint8_t> next(L, 0);
            for (std::size_t a = 0; a < L; ++a)
                for (std::size_t b = 0; b < L; ++b) next[b] |= sets.back()[a] && grammar.next[a * L + b];
            // Sets may come back very late; then all labels count as reached, which is slower and not wrong.
            if (sets.size() == 4 * L + 64) next.assign(L, 1);
            const auto same = std::find(sets.begin(), sets.end(), next);
            if (same != sets.end())
                reach_back = same - sets.begin();
            else if (sets.size() > 4 * L + 64)
                reach_back = std::int64_t(sets.size()) - 1;
            else
                sets.push_back(std::move(next));
        }
        reach_count = std::int64_t(sets.size());
        reach.clear();
        for (const auto& set : sets) lanes_of(set, reach);
    }

    // Weights in lanes, with what is forbidden in its place.
    template <class Real>
    void spread(const double* W, Real* out) const {
        const int L = shape.labels, P = shape.lanes;
        for (std::int64_t r = 0; r < shape.rows(); ++r) {
            for (int l = 0; l < L; ++l) out[r * P + l] = Real(W[r * L + l]);
            for (int l = L; l < P; ++l) out[r * P + l] = 0;
        }
        forbid(out + shape.transitions());
    }
    // T of weights, in lanes.
    Buffer transitions_of(const double* W) const {
        const int L = shape.labels, P = shape.lanes;
        Buffer T(std::size_t(L) * P, 0.0);
        for (int a = 0; a < L; ++a) std::copy_n(W + (shape.attributes + a) * L, L, T.data() + a * P);
        forbid(T.data());
        return T;
    }
    template <class Real>
    void forbid(Real* T) const {
        const int L = shape.labels, P = shape.lanes;
        for (int a = 0; a < L; ++a) {
            for (int b = 0; b < L; ++b)
                if (!grammar.next[std::size_t(a) * L + b]) T[a * P + b] = Real(forbidden);
            for (int b = L; b < P; ++b) T[a * P + b] = Real(forbidden);
        }
    }
    // Lanes back to weights, times a factor; 0 where there is no weight.
    template <class Real>
    void gather(const Real* from, double factor, double* W) const {
        const int L = shape.labels, P = shape.lanes;
        for (std::int64_t r = 0; r < shape.rows(); ++r)
            for (int l = 0; l < L; ++l) W[r * L + l] = factor * double(from[r * P + l]);
        std::fill_n(W + shape.rows() * L, label_block, 0.0);
        double* T = W + shape.attributes * L;
        for (int a = 0; a < L; ++a)
            for (int b = 0; b < L; ++b)
                if (!grammar.next[std::size_t(a) * L + b] || !has_weight(Label(a), Label(b)))
                    T[a * L + b] = 0.0;
    }
};

// Asks for the rows of weights in lanes of the attributes from `from` to `to`. Inlined always: a function that does
// nothing else looks to GCC like one without effects, and is dropped.
template <class Real>
[[gnu::always_inline]] inline void ask_for(const Real* W, int lanes, const TokenAttributes& x,
                                           std::int64_t from, std::int64_t to) {
    constexpr int line = 64 / int(sizeof(Real));
    for (std::int64_t k = from; k < to; ++k)
        for (int l = 0; l < lanes; l += line) __builtin_prefetch(W + std::int64_t(x.ids[k]) * lanes + l);
}
// The attributes of a sequence that are asked for while the one before it is decoded.
inline constexpr std::int64_t first_attributes = 32;

// ψ = φ(x, gold) − φ(x, y): f(row of the weights, label, amount) for each place where it is not zero; places may come
// several times.
template <class F>
void each_difference(const Chain& chain, std::int64_t i, const Label* y, F&& f) {
    const TokenAttributes x = chain.attributes(i);
    const Label* gold = chain.gold(i);
    for (std::int64_t t = 0; t < x.tokens; ++t) {
        if (y[t] != gold[t])
            for (std::int64_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
                const double v = x.values ? x.values[k] : 1.0;
                f(std::int64_t(x.ids[k]), gold[t], v);
                f(std::int64_t(x.ids[k]), y[t], -v);
            }
        if (t > 0 && (y[t] != gold[t] || y[t - 1] != gold[t - 1])) {
            if (chain.has_weight(gold[t - 1], gold[t])) f(chain.shape.attributes + gold[t - 1], gold[t], 1.0);
            if (chain.has_weight(y[t - 1], y[t])) f(chain.shape.attributes + y[t - 1], y[t], -1.0);
        }
    }
}

}  // namespace pegasos
