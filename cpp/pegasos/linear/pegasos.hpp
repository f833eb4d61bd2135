// Stochastic sub-gradient descent: Pegasos, and the methods it is compared with.
//
//   min_w (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, x_i⟩)
//
// Given: rows, an output, λ.
// Result: the last, average, suffix-average or two random iterates, and dual variables.
//
//   Pegasos   η_t = 1/(λ(t + t0))   Shalev-Shwartz, Singer, Srebro & Cotter 2011, Figs. 1 and 2; there t0 = 0
//   NORMA     η_t = p/(λ√t)         Kivinen, Smola & Williamson 2002
//   SGD       η_t = η               Zhang 2004
//   proximal  η_t = 1/(λt + τ_1 + … + τ_t)   Do, Le & Foo 2009; τ_t = G_t²/(D²(λt + τ_1 + … + τ_t)), G_t ≥ ‖∇_t‖
//   dual averaging      w_{t+1} = (1/(λt + γ√t)) Σ_{s≤t} g_s x_s   Nesterov 2009, Xiao 2010; γ = 0 is Pegasos
//   passive-aggressive  w ← w + τ g x, τ = min(C, ℓ/‖gx‖²) (PA-I) or ℓ/(‖gx‖² + 1/(2C)) (PA-II)
//                                            Crammer, Dekel, Keshet, Shalev-Shwartz & Singer 2006; no λ
//
// Pegasos is kept unscaled: w_{t+1} = (1/(λt)) Σ_{s≤t} g_s x_s, so v = Σ g_s x_s only ever grows by sparse
// additions and w = v/(λΩ), Ω = t0 + rows visited. (The papers' recursion (1 − 1/t) w + η g x is the same
// numbers, but needs a special first step.) A mini-batch adds its rows with w frozen; Ω counts rows. A first
// iterate w_1 ≠ 0 is v = λ t0 w_1, as if it had been found in t0 visits; with t0 = 0 it decides the first step's
// slopes and is forgotten, as in the recursion, where it is multiplied by 1 − 1/1.
//
// v = Σ_i c̃_i U_i x_i with U_i the sum of row i's slopes (w_1 aside): that makes every iterate a dual point, and
// differences of U between two epochs another one (the window certificate: see duals). Projections shrink the past by a
// factor: they multiply `pi`, and later additions are divided by it, so U needs no sweep. NORMA, SGD and the
// proximal steps keep their scale in `pi` too.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "pegasos/core/batches.hpp"
#include "pegasos/linear/solver.hpp"

namespace pegasos {

enum class Schedule { pegasos, norma, constant, proximal, dual_averaging, aggressive, relaxed };
enum class PegasosBias { none, subgradient, batch };
enum class Iterate { last, average, suffix, first_random, second_random };

struct PegasosOptions {
    double lam;
    Schedule schedule;
    double rate;  // NORMA's p, SGD's η, D, γ, PA-I's C, PA-II's 1/(2C)
    double t0;    // in rows
    int64_t batch_size;
    bool whole_batches;  // or a short last one in each epoch
    Sampling sampling;
    double radius;  // project onto ‖w‖ ≤ radius; 0: never
    bool average, random;
    PegasosBias bias;
    double bias_start, bias_rate;  // learnt by sub-gradients, with steps of bias_rate/√t
    double feature;
    std::uint64_t seed;
};

// All of the solver but for its steps, which PegasosSolver compiles for each row layout.
class PegasosBase : public Solver {
 public:
    PegasosBase(const RowsShape&, std::unique_ptr<Output>, Weights, const PegasosOptions&);
    ~PegasosBase() override;

    void advance(int64_t rows) final;
    // A batch that runs over the end of an epoch counts as the end, until the next one begins.
    double epochs() const final { return double(std::min(visits(), (epoch_ + 1) * m_)) / double(m_); }
    bool epoch_ended() const final { return at_ == int64_t(order_.size()); }
    // Begin at these weights (K × n) and biases (K; null: as they are), before the first step.
    void start(const double* W, const double* b);
    int64_t steps() const { return steps_; }
    int outputs() const final { return out_->outputs; }
    void select(Iterate);  // what weights() returns
    // From now on remember every row's scores as they were when it was visited.
    void keep_scores();
    // K numbers a row; NaN for those of the `early` rows that this epoch began with.
    void scores(double* z, int64_t stride, int64_t early) const;
    void weights(double* W, double* b) const final;
    void duals(double* u, int64_t stride) const final;
    State state() const final;
    void restore(const State&) final;

 protected:
    virtual void visit(int64_t stop) = 0;  // the rows from at_ to stop, in batches

    int64_t visits() const { return before_ + at_; }
    double relative_weight(int64_t i) const { return c_.weight ? c_.weight[i] * double(m_) / c_.total : 1.0; }

    // w = scale v, lane by lane. Inlined always, as the next: the compiler mostly knows that L is 1.
    [[gnu::always_inline]] void scales(int L, double* scale) const {
        const double omega = o_.t0 + double(visits());
        const double s = !sums_ ? 1.0 : omega > 0 ? 1 / (o_.lam * omega + beta()) : first_;
        for (int l = 0; l < L; ++l) scale[l] = s * pi_[l];
    }
    // Σ_t w_t without touching all of w at each step: with C_t = Σ_{j≤t} scale_j, it is C_T v − Σ_t C_t
    // (added at t).
    [[gnu::always_inline]] void carry(int L) {
        for (int l = 0; l < L; ++l) carried_[l] += scale_[l], b_sum_[l] += b_[l];
    }
    // What dual averaging adds to λΩ: γ√t, in rows as Ω is.
    double beta() const {
        return o_.schedule == Schedule::dual_averaging
                   ? o_.rate * double(o_.batch_size) * std::sqrt(double(steps_))
                   : 0.0;
    }
    void draw();
    void fold();
    void forget_first();

    std::unique_ptr<Output> out_;
    Weights c_;
    PegasosOptions o_;
    Batches batches_;
    // Whether v is the plain sum of slopes, and whether a step shrinks pi.
    bool sums_ = o_.schedule == Schedule::pegasos || o_.schedule == Schedule::dual_averaging;
    bool shrinks_ = o_.radius > 0 || o_.schedule == Schedule::norma || o_.schedule == Schedule::constant ||
                    o_.schedule == Schedule::proximal;
    bool tracks_ = o_.radius > 0 || o_.schedule == Schedule::proximal;  // ‖v‖²
    WeightBuffer<double> v_, lag_{};
    Buffer U_, window_, next_window_, pi_, b_;
    Buffer scale_, z_, g_, coef_, norm_;
    Buffer gain_;  // what a slope adds to v, apart from pi
    // Of each part. Proximal steps: Σ τ_t, and G_t, then η_t;  passive-aggressive ones: ℓ, and what is not used.
    Buffer tau_{}, reach_{};
    Buffer sum_{}, window_sum_{}, next_window_sum_{}, carried_{}, b_sum_{};
    Buffer random_[2], seen_{};
    std::vector<int64_t> order_{};
    int64_t epoch_ = 0, at_ = 0, steps_ = 0;
    int64_t before_ = 0;  // rows visited before this epoch
    double first_ = 0.0;  // 1 while v is a w_1 that the first step forgets

 private:
    template <class F>
    void fields(F&);
    void recompute_norm();
    void flush();
    void new_epoch();
    void finish_epoch();

    int64_t m_, n_;
    int L_;
    Iterate which_ = Iterate::last;
    int64_t next_[2] = {1, 1}, draws_ = 0;
    int64_t window_visits_ = 0, next_window_visits_ = 0, window_steps_ = 0, next_window_steps_ = 0;
};

template <class Rows, class Out>
class PegasosSolver final : public PegasosBase {
 public:
    PegasosSolver(const Rows& rows, Held<Out> out, std::unique_ptr<Output> output, Weights c,
                  const PegasosOptions& options)
        : PegasosBase(RowsShape(rows), std::move(output), c, options), row_{rows, out, options.feature} {}

 private:
    void visit(int64_t stop) override {
        while (at_ < stop) step(std::min(o_.batch_size, int64_t(order_.size()) - at_));
    }

    void step(int64_t k) {
        const auto L = row_.lanes();
        const int64_t* batch = order_.data() + at_;
        for (int64_t r = 0; r < k; ++r)
            row_.prefetch(order_, at_ + r, [&](int64_t i) { return std::array<const void*, 1>{&U_[i * L]}; });
        scales(L, scale_.data());
        ++steps_;
        if (o_.average) carry(L);
        if (o_.random) draw();
        for (int64_t r = 0; r < k; ++r) {
            double* z = &z_[r * L];
            row_.dot(batch[r], v_.data(), z);
            for (int l = 0; l < L; ++l) z[l] = scale_[l] * z[l] + b_[l];
            if (!seen_.empty()) std::copy_n(z, int(L), &seen_[batch[r] * L]);
        }
        if (o_.bias == PegasosBias::batch)
            out_->balance(batch, k, c_, z_.data(), b_.data(), g_.data());
        else
            for (int64_t r = 0; r < k; ++r) row_.out.slopes(batch[r], &z_[r * L], &g_[r * L]);
        if (first_ != 0) forget_first();
        if (!sums_) gains(batch, k);
        for (int64_t r = 0; r < k; ++r) add(batch[r], &g_[r * L], k);
        at_ += k;
        if (o_.radius > 0) project();
        if (shrinks_ && *std::min_element(pi_.begin(), pi_.end()) < 1e-9) fold();
    }

    // The lengths of a step, and what they leave of the steps before.
    void gains(const int64_t* batch, int64_t k) {
        const auto L = row_.lanes();
        if (o_.schedule == Schedule::proximal) return proximal(batch, k);
        if (o_.schedule == Schedule::aggressive || o_.schedule == Schedule::relaxed) return passive(batch[0]);
        const double eta =
            o_.schedule == Schedule::norma ? o_.rate / (o_.lam * std::sqrt(double(steps_))) : o_.rate;
        for (int l = 0; l < L; ++l) pi_[l] *= 1 - eta * o_.lam, gain_[l] = eta / double(k);
    }

    // τ_t with τ_t D² = G_t²/(λt + τ_1 + … + τ_t), for each part; G_t = λ‖w_t‖ + (1/k) Σ c_i ‖g_i‖‖x_i‖.
    void proximal(const int64_t* batch, int64_t k) {
        const auto L = row_.lanes();
        const int parts = row_.out.parts;
        for (int p = 0; p < parts; ++p) reach_[p] = o_.lam * pi_[p] * std::sqrt(std::max(0.0, norm_[p]));
        for (int64_t r = 0; r < k; ++r) {
            squared_slopes(&g_[r * L]);
            const double length = relative_weight(batch[r]) * std::sqrt(squared_norm(batch[r])) / double(k);
            for (int p = 0; p < parts; ++p) reach_[p] += length * std::sqrt(coef_[p]);
        }
        for (int p = 0; p < parts; ++p) {
            const double before = o_.lam * double(steps_) + tau_[p], ratio = reach_[p] / o_.rate;
            // ½(√(a² + 4r²) − a), without cancellation
            const double tau = 2 * ratio * ratio / (before + std::hypot(before, 2 * ratio));
            tau_[p] += tau;
            reach_[p] = ratio > 0 ? 1 / (before + tau) : 0;  // if w = 0, and stays there, no step
        }
        for (int l = 0; l < L; ++l) {
            const int p = row_.out.part(l);
            if (p < parts) pi_[l] *= 1 - reach_[p] * o_.lam, gain_[l] = reach_[p] / double(k);
        }
    }

    void passive(int64_t i) {
        const auto L = row_.lanes();
        const int parts = row_.out.parts;
        std::fill(tau_.begin(), tau_.end(), 0.0);
        std::fill(reach_.begin(), reach_.end(), 0.0);
        row_.out.measure(i, z_.data(), g_.data(), 1.0, tau_.data(), reach_.data());
        squared_slopes(g_.data());
        const double x2 = squared_norm(i);
        for (int l = 0; l < L; ++l) {
            const int p = row_.out.part(l);
            if (p >= parts) continue;
            const double square = coef_[p] * x2;
            if (o_.schedule == Schedule::relaxed)
                gain_[l] = tau_[p] / (square + o_.rate);
            else
                gain_[l] = square > 0 ? std::min(o_.rate, tau_[p] / square) : 0.0;
        }
    }

    // coef_[p] = Σ g² over the lanes of each part.
    void squared_slopes(const double* g) {
        std::fill(coef_.begin(), coef_.end(), 0.0);
        for (int l = 0; l < row_.lanes(); ++l) coef_[std::size_t(row_.out.part(l))] += g[l] * g[l];
    }

    double squared_norm(int64_t i) const { return row_.rows.squared_norm(i) + o_.feature * o_.feature; }

    void add(int64_t i, const double* g, int64_t k) {
        const auto L = row_.lanes();
        bool any = false;
        for (int l = 0; l < L; ++l) any |= g[l] != 0;
        const double c = relative_weight(i);
        if (!any || c == 0) return;
        double* U = &U_[i * L];
        for (int l = 0; l < L; ++l) {
            const double unit = g[l] * gain_[l] / pi_[l];
            U[l] += unit;
            coef_[l] = c * unit;
            if (o_.bias == PegasosBias::subgradient)
                b_[l] += o_.bias_rate * c * g[l] / (double(k) * std::sqrt(double(steps_)));
        }
        if (tracks_) grow_norm(i);
        row_.axpy(i, coef_.data(), v_.data());
        if (o_.average) {
            for (int l = 0; l < L; ++l) coef_[l] *= carried_[l];
            row_.axpy(i, coef_.data(), lag_.data());
        }
    }

    // ‖v + c x‖² = ‖v‖² + 2c⟨v, x⟩ + c²‖x‖², for each part; the 2011 paper's ν, unscaled.
    void grow_norm(int64_t i) {
        const auto L = row_.lanes();
        double* z = scale_.data();  // free until the next step
        row_.dot(i, v_.data(), z);
        const double x2 = squared_norm(i);
        for (int l = 0; l < L; ++l)
            if (coef_[l] != 0) norm_[row_.out.part(l)] += coef_[l] * (2 * z[l] + coef_[l] * x2);
    }

    void project() {
        const auto L = row_.lanes();
        scales(L, scale_.data());
        for (int l = 0; l < L; ++l) {
            const int part = row_.out.part(l);
            if (part >= row_.out.parts) continue;
            const double length = scale_[l] * std::sqrt(std::max(0.0, norm_[part]));
            if (length > o_.radius) pi_[l] *= o_.radius / length;
        }
    }

    RowVisits<Rows, Out> row_;
};

// Defined for each row layout in linear/make_pegasos.cpp.
template <class Rows>
std::unique_ptr<PegasosBase> make_pegasos(const Rows&, const AnyLoss&, const Targets&, Weights,
                                          const PegasosOptions&);
template <class Rows>
std::unique_ptr<PegasosBase> make_pegasos(const Rows&, const AnyJointLoss&, const Targets&, Weights,
                                          const PegasosOptions&);

}  // namespace pegasos
