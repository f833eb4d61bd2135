// Stochastic sub-gradient descent: Pegasos, and the two methods it is compared with.
//
//   min_w (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(⟨w, x_i⟩)
//
// Given: rows, an output, λ.
// Result: the last, average, suffix-average or two random iterates, and dual variables.
//
//   Pegasos   η_t = 1/(λ(t + t0))   Shalev-Shwartz, Singer, Srebro & Cotter 2011, Figs. 1 and 2; there t0 = 0
//   NORMA     η_t = p/(λ√t)         Kivinen, Smola & Williamson 2002
//   SGD       η_t = η               Zhang 2004
//
// Pegasos is kept unscaled: w_{t+1} = (1/(λt)) Σ_{s≤t} g_s x_s, so v = Σ g_s x_s only ever grows by sparse
// additions and w = v/(λΩ), Ω = t0 + rows visited. (The papers' recursion (1 − 1/t) w + η g x is the same
// numbers, but needs a special first step.) A mini-batch adds its rows with w frozen; Ω counts rows, so a
// short last batch weighs less.
//
// v = Σ_i c̃_i U_i x_i with U_i the sum of row i's slopes: that makes every iterate a dual point, and
// differences of U between two epochs another one (the window certificate). Projections shrink the past by a
// factor: they multiply `pi`, and later additions are divided by it, so U needs no sweep. NORMA and SGD keep
// their scale in `pi` too.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "pegasos/core/bias.hpp"
#include "pegasos/linear/solver.hpp"

namespace pegasos {

enum class Schedule { pegasos, norma, constant };
enum class PegasosBias { none, subgradient, batch };
enum class Iterate { last, average, suffix, first_random, second_random };

struct PegasosOptions {
    double lam;
    Schedule schedule;
    double rate;  // NORMA's p, SGD's η
    double t0;    // in rows
    int64_t batch_size;
    Sampling sampling;
    double radius;  // project onto ‖w‖ ≤ radius; 0: never
    bool average, random;
    PegasosBias bias;
    double bias_start, bias_rate;  // learnt by sub-gradients, with steps of bias_rate/√t
    double feature;
    std::uint64_t seed;
};

class PegasosBase : public Solver {
 public:
    using Solver::weights;
    virtual void select(Iterate) = 0;  // what weights() returns
    // From now on remember every row's scores as they were when it was visited.
    virtual void keep_scores() = 0;
    // K numbers a row; NaN for those of the `early` rows that this epoch began with.
    virtual void scores(double* z, int64_t stride, int64_t early) const = 0;
};

template <class Rows, class Output>
class PegasosSolver final : public PegasosBase {
 public:
    PegasosSolver(Rows rows, Output out, Weights c, PegasosOptions options)
        : ops_{rows, std::move(out), options.feature},
          c_(c),
          o_(options),
          L_{ops_.L()},
          v_(ops_.weights()),
          U_(rows.rows * L_),
          window_(U_.size()),
          next_window_(U_.size()),
          pi_(L_, 1.0),
          b_(L_, options.bias_start),
          scale_(L_),
          z_(L_ * std::max<int64_t>(1, std::min(o_.batch_size, rows.rows))),
          g_(z_.size()),
          coef_(L_),
          norm_(ops_.out.parts()) {
        if (o_.average) {
            lag_ = ops_.weights(), sum_.resize(v_.size()), window_sum_.resize(v_.size());
            next_window_sum_.resize(v_.size()), carried_.resize(L_), b_sum_.resize(3 * L_);
        }
        if (o_.random)
            for (auto& r : random_) r.resize(v_.size() + L_);
        new_epoch();
    }

    void advance(int64_t rows) override {
        if (at_ == ops_.rows.rows) end_epoch();
        const int64_t stop = std::min(ops_.rows.rows, at_ + rows);
        while (at_ < stop) step(std::min(o_.batch_size, ops_.rows.rows - at_));
        if (at_ == ops_.rows.rows) finish_epoch();
    }
    double epochs() const override { return double(visits()) / double(ops_.rows.rows); }
    bool epoch_ended() const override { return at_ == ops_.rows.rows; }
    int outputs() const override { return visible(ops_.out); }
    void select(Iterate which) override {
        const bool mean = which == Iterate::average || which == Iterate::suffix;
        if ((mean && !o_.average) || (which > Iterate::suffix && !o_.random))
            throw std::invalid_argument("these iterates were not asked for when the solver was made");
        which_ = which;
    }
    void keep_scores() override { seen_.resize(U_.size()); }
    void scores(double* z, int64_t stride, int64_t early) const override {
        if (seen_.empty()) throw std::logic_error("no scores were kept");
        for (int64_t i = 0; i < ops_.rows.rows; ++i) std::copy_n(&seen_[i * L_], outputs(), z + i * stride);
        for (int64_t r = 0; r < std::min(early, ops_.rows.rows); ++r)
            std::fill_n(z + order_[r] * stride, outputs(), std::numeric_limits<double>::quiet_NaN());
    }

    void weights(double* W, double* b) const override {
        const int64_t n = ops_.rows.cols;
        const int K = outputs();
        const auto write = [&](auto&& entry, auto&& bias) {
            for (int k = 0; k < K; ++k) {
                for (int64_t j = 0; j < n; ++j) W[k * n + j] = entry(j * L_ + k, k);
                b[k] = bias(k) + o_.feature * entry(n * L_ + k, k);
            }
        };
        if (which_ == Iterate::last) {
            const Buffer scale = scales();
            write([&](int64_t p, int k) { return scale[k] * v_[p]; }, [&](int k) { return b_[k]; });
        } else if (which_ == Iterate::average || which_ == Iterate::suffix) {
            const bool suffix = which_ == Iterate::suffix;
            const double count = double(steps_ - (suffix ? window_steps_ : 0));
            const double scale = count > 0 ? 1 / count : 0.0;
            write(
                [&](int64_t p, int k) {
                    const double all = sum_[p] + carried_[k] * v_[p] - lag_[p];
                    return scale * (suffix ? all - window_sum_[p] : all);
                },
                [&](int k) { return scale * (suffix ? b_sum_[k] - b_sum_[L_ + k] : b_sum_[k]); });
        } else {
            const Buffer& r = random_[which_ == Iterate::second_random];
            write([&](int64_t p, int) { return r[p]; }, [&](int k) { return r[v_.size() + k]; });
        }
    }

    // The window's dual point.
    // What leaves the domain (iid draws, an unfinished epoch) is clipped by the caller.
    void duals(double* u, int64_t stride) const override {
        const int K = outputs();
        const bool pegasos = o_.schedule == Schedule::pegasos;
        const double m = double(ops_.rows.rows), seen = double(visits() - window_visits_);
        for (int64_t i = 0; i < ops_.rows.rows; ++i)
            for (int k = 0; k < K; ++k) {
                const int64_t p = i * L_ + k;
                u[i * stride + k] = pegasos ? (seen > 0 ? pi_[k] * (U_[p] - window_[p]) * m / seen : 0.0)
                                            : o_.lam * m * pi_[k] * U_[p];
            }
    }

    State state() const override {
        FieldWriter f;
        const_cast<PegasosSolver*>(this)->fields(f);
        return std::move(f.out);
    }
    void restore(const State& s) override {
        FieldReader f{s};
        fields(f);
        epoch_order(order_, ops_.rows.rows, o_.sampling, o_.seed, epoch_);
    }

 private:
    template <class F>
    void fields(F& f) {
        f("v", v_), f("U", U_), f("window", window_), f("next_window", next_window_), f("pi", pi_),
            f("b", b_);
        f("norm", norm_), f("lag", lag_), f("sum", sum_), f("window_sum", window_sum_);
        f("next_window_sum", next_window_sum_), f("carried", carried_), f("b_sum", b_sum_);
        f("random0", random_[0]), f("random1", random_[1]), f("seen", seen_);
        f.scalar("epoch", epoch_), f.scalar("at", at_), f.scalar("steps", steps_);
        f.scalar("window_visits", window_visits_), f.scalar("next_window_visits", next_window_visits_);
        f.scalar("window_steps", window_steps_), f.scalar("next_window_steps", next_window_steps_);
        f.scalar("draws", draws_), f.scalar("next0", next_[0]), f.scalar("next1", next_[1]);
    }

    int64_t visits() const { return epoch_ * ops_.rows.rows + at_; }
    double relative_weight(int64_t i) const {
        return c_.weight ? c_.weight[i] * double(ops_.rows.rows) / c_.total : 1.0;
    }

    // w = scale v, lane by lane.
    void scales(double* scale) const {
        const double omega = o_.t0 + double(visits());
        const double s = o_.schedule != Schedule::pegasos ? 1.0 : omega > 0 ? 1 / (o_.lam * omega) : 0.0;
        for (int l = 0; l < L_; ++l) scale[l] = s * pi_[l];
    }
    Buffer scales() const {
        Buffer s(L_);
        scales(s.data());
        return s;
    }

    void step(int64_t k) {
        const int64_t* batch = order_.data() + at_;
        for (int64_t r = 0; r < k; ++r)
            ops_.prefetch(order_, at_ + r,
                          [&](int64_t i) { return std::array<const void*, 1>{&U_[i * L_]}; });
        scales(scale_.data());
        ++steps_;
        if (o_.average) carry();
        if (o_.random) draw();
        for (int64_t r = 0; r < k; ++r) {
            double* z = &z_[r * L_];
            ops_.dot(batch[r], v_.data(), z);
            for (int l = 0; l < L_; ++l) z[l] = scale_[l] * z[l] + b_[l];
            if (!seen_.empty()) std::copy_n(z, int(L_), &seen_[batch[r] * L_]);
        }
        if (o_.bias == PegasosBias::batch)
            balance(batch, k);
        else
            for (int64_t r = 0; r < k; ++r) ops_.out.slopes(batch[r], &z_[r * L_], &g_[r * L_]);
        double gain = 1;  // what a slope adds to v, apart from pi
        if (o_.schedule != Schedule::pegasos) {
            const double eta =
                o_.schedule == Schedule::norma ? o_.rate / (o_.lam * std::sqrt(double(steps_))) : o_.rate;
            for (auto& p : pi_) p *= 1 - eta * o_.lam;
            gain = eta / double(k);
        }
        for (int64_t r = 0; r < k; ++r) add(batch[r], &g_[r * L_], gain, k);
        at_ += k;
        if (o_.radius > 0) project();
        if (shrinks_ && *std::min_element(pi_.begin(), pi_.end()) < 1e-9) fold();
    }

    void add(int64_t i, const double* g, double gain, int64_t k) {
        bool any = false;
        for (int l = 0; l < L_; ++l) any |= g[l] != 0;
        const double c = relative_weight(i);
        if (!any || c == 0) return;
        double* U = &U_[i * L_];
        for (int l = 0; l < L_; ++l) {
            const double unit = g[l] * gain / pi_[l];
            U[l] += unit;
            coef_[l] = c * unit;
            if (o_.bias == PegasosBias::subgradient)
                b_[l] += o_.bias_rate * c * g[l] / (double(k) * std::sqrt(double(steps_)));
        }
        if (o_.radius > 0) grow_norm(i);
        ops_.axpy(i, coef_.data(), v_.data());
        if (o_.average) {
            for (int l = 0; l < L_; ++l) coef_[l] *= carried_[l];
            ops_.axpy(i, coef_.data(), lag_.data());
        }
    }

    // ‖v + c x‖² = ‖v‖² + 2c⟨v, x⟩ + c²‖x‖², for each part; the 2011 paper's ν, unscaled.
    void grow_norm(int64_t i) {
        double* z = scale_.data();  // free until the next step
        ops_.dot(i, v_.data(), z);
        const double x2 = ops_.rows.squared_norm(i) + o_.feature * o_.feature;
        for (int l = 0; l < L_; ++l)
            if (coef_[l] != 0) norm_[ops_.out.part(l)] += coef_[l] * (2 * z[l] + coef_[l] * x2);
    }
    void recompute_norm() {
        std::fill(norm_.begin(), norm_.end(), 0.0);
        for (std::size_t p = 0; p < v_.size(); ++p) {
            const int l = int(p % L_);
            if (ops_.out.part(l) < ops_.out.parts()) norm_[ops_.out.part(l)] += v_[p] * v_[p];
        }
    }
    void project() {
        scales(scale_.data());
        for (int l = 0; l < L_; ++l) {
            const int part = ops_.out.part(l);
            if (part >= ops_.out.parts()) continue;
            const double length = scale_[l] * std::sqrt(std::max(0.0, norm_[part]));
            if (length > o_.radius) pi_[l] *= o_.radius / length;
        }
    }

    // Multiplies a vanishing pi into what it scales.
    void fold() {
        if (o_.average) flush();
        const auto scale = [&](auto& buffer) {
            for (std::size_t p = 0; p < buffer.size(); ++p) buffer[p] *= pi_[p % L_];
        };
        scale(v_), scale(U_), scale(window_), scale(next_window_);
        std::fill(pi_.begin(), pi_.end(), 1.0);
        recompute_norm();
    }

    // The bias that is best for this batch alone, and slopes that add up to zero (2011 paper, Eq. 24). Where
    // the best bias lies on a kink, the slopes on its two sides are mixed: the indicator alone is no
    // subgradient there.
    void balance(const int64_t* batch, int64_t k) {
        if constexpr (!Output::joint) {
            for (int l = 0; l < ops_.out.parts(); ++l) {
                const auto slope = [&](int64_t r, double b) {
                    return ops_.out.loss.slope(z_[r * L_ + l] - b_[l] + b, ops_.out.y(batch[r], l));
                };
                const auto sum = [&](double b) {
                    double total = 0;
                    for (int64_t r = 0; r < k; ++r) total += c_[batch[r]] * slope(r, b);
                    return total;
                };
                double weight = 0;
                for (int64_t r = 0; r < k; ++r) weight += c_[batch[r]];
                const Crossing at = zero_crossing(sum, b_[l], weight);
                const double mid = 0.5 * (at.lo + at.hi), up = sum(at.lo), down = -sum(at.hi);
                const double share = at.flat ? 1.0 : down / (up + down);
                for (int64_t r = 0; r < k; ++r)
                    g_[r * L_ + l] =
                        at.flat ? slope(r, mid) : share * slope(r, at.lo) + (1 - share) * slope(r, at.hi);
                b_[l] = mid;
            }
            for (int l = ops_.out.parts(); l < L_; ++l)
                for (int64_t r = 0; r < k; ++r) g_[r * L_ + l] = 0;
        }
    }

    // Σ_t w_t without touching all of w at each step: with C_t = Σ_{j≤t} scale_j, it is C_T v − Σ_t C_t
    // (added at t).
    void carry() {
        for (int l = 0; l < L_; ++l) carried_[l] += scale_[l], b_sum_[l] += b_[l];
    }
    void flush() {
        for (std::size_t p = 0; p < v_.size(); ++p) sum_[p] += carried_[p % L_] * v_[p] - lag_[p];
        std::fill(lag_.begin(), lag_.end(), 0.0);
        std::fill(carried_.begin(), carried_.end(), 0.0);
    }

    // Two uniform draws from {w_1, …, w_t} (Lemma 3 of the 2011 paper) without knowing the last t: iterate t
    // replaces a draw with probability 1/t, so after t the next replacement is at ⌊t/U⌋ + 1 with U uniform.
    void draw() {
        for (int r = 0; r < 2; ++r) {
            if (steps_ != next_[r]) continue;
            for (std::size_t p = 0; p < v_.size(); ++p) random_[r][p] = scale_[p % L_] * v_[p];
            std::copy(b_.begin(), b_.end(), random_[r].begin() + std::ptrdiff_t(v_.size()));
            Rng rng(o_.seed ^ 0x72616e646f6d, std::uint64_t(draws_++));
            next_[r] = int64_t(std::min(double(steps_) / rng.uniform(), 9e15)) + 1;
        }
    }

    void new_epoch() { epoch_order(order_, ops_.rows.rows, o_.sampling, o_.seed, epoch_); }
    // What belongs to the epoch that has just ended; epochs() still counts it as at_ = rows.
    void finish_epoch() {
        if (o_.average) flush();
        if (o_.radius > 0) recompute_norm();
        const int64_t done = epoch_ + 1;
        if ((done & (done - 1)) ==
            0) {  // 1, 2, 4, 8, …: the window reaches back to the last but one of these
            window_.swap(next_window_), next_window_ = U_;
            window_visits_ = next_window_visits_, next_window_visits_ = visits();
            window_steps_ = next_window_steps_, next_window_steps_ = steps_;
            if (o_.average) {
                window_sum_.swap(next_window_sum_), next_window_sum_ = sum_;
                for (int l = 0; l < L_; ++l) {
                    b_sum_[L_ + l] = b_sum_[2 * L_ + l];
                    b_sum_[2 * L_ + l] = b_sum_[l];
                }
            }
        }
    }
    void end_epoch() {
        ++epoch_, at_ = 0;
        new_epoch();
    }

    LaneOps<Rows, Output> ops_;
    Weights c_;
    PegasosOptions o_;
    bool shrinks_ = o_.schedule != Schedule::pegasos || o_.radius > 0;
    typename LaneOps<Rows, Output>::Lanes L_;
    Iterate which_ = Iterate::last;
    WeightBuffer<double> v_, lag_{};
    Buffer U_, window_, next_window_, pi_, b_;
    Buffer scale_, z_, g_, coef_, norm_;
    Buffer sum_{}, window_sum_{}, next_window_sum_{}, carried_{}, b_sum_{};
    Buffer random_[2], seen_{};
    int64_t next_[2] = {1, 1}, draws_ = 0;
    std::vector<int64_t> order_{};
    int64_t epoch_ = 0, at_ = 0, steps_ = 0;
    int64_t window_visits_ = 0, next_window_visits_ = 0, window_steps_ = 0, next_window_steps_ = 0;
};

// Defined for each row layout in linear/make_pegasos.cpp.
template <class Rows>
std::unique_ptr<PegasosBase> make_pegasos(const Rows&, const AnyLoss&, const Targets&, Weights,
                                          const PegasosOptions&);
template <class Rows>
std::unique_ptr<PegasosBase> make_pegasos(const Rows&, const AnyJointLoss&, const Targets&, Weights,
                                          const PegasosOptions&);

}  // namespace pegasos
