// Stochastic dual coordinate ascent (Hsieh et al. 2008; Shalev-Shwartz & Zhang 2013).
//
//   max_u (1/M) Σ c_i (−ℓ_i*(−u_i)) − (λ/2)‖w(u)‖²,   w(u) = (1/(λM)) Σ c_i u_i x_i
//
// Given: rows, an output, λ, ‖x_i‖². Result: u and w = w(u).
// Each visit maximises over one row's dual variables; every epoch is a fresh permutation of the active rows.
//
// Shrinking: a row whose variables stay optimal however its scores move by less than some slack is left out
// until the caller has looked at all rows again (reactivate). The slack is twice the root mean square by
// which scores moved in the last epoch, where the loss can tell: a hinge loss whose variable is between its
// bounds was left with the score on the kink. Otherwise it is the last epoch's largest Fenchel gap of a row,
// which for the hinge loss is LIBLINEAR's rule.
//
// The mean of the dual variables over an epoch is the better model: what the last rows of an epoch do to a
// few scores, and so to the loss, averages out. Several classes, which must all be good at the same moment,
// use it.
//
// Unregularised bias: the constant feature B pulls Σ c_i u_i towards zero without ever reaching it; an offset
// that takes over what the feature has learnt after each epoch (offset += B w_B) makes zero the only fixed
// point: the method of multipliers.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>

#include "pegasos/core/parallel.hpp"
#include "pegasos/linear/margin_lanes.hpp"
#include "pegasos/linear/solver.hpp"

namespace pegasos {

struct SdcaOptions {
    double lam;
    double feature;   // value of the constant feature
    bool multiplier;  // take its weight over into the offset after every epoch
    bool shrinking;
    int blocks;  // 0: one row after the other; else the number of logical blocks of linear/block_sdca.hpp
    int threads;
    bool single;  // single precision, if the output is one-vs-rest and the loss has a MarginShape
    Sampling sampling;
    std::uint64_t seed;
};

class SdcaBase : public Solver {
 public:
    // Starts (again) from dual variables u (rows × K), offsets (K) and W(u) (K × n), which the caller has
    // computed.
    virtual void start(const double* u, const double* W, const double* offset) = 0;
    // The mean of the dual variables over the epoch that has ended; u itself if there is none.
    virtual void averages(double* u, int64_t stride) const { duals(u, stride); }
    virtual void offsets(double* offset) const = 0;
    virtual void biases(double* b) const = 0;  // offset and the constant feature's part together
    // Makes all rows active that are not settled at the scores z (rows × K, with offset and bias).
    virtual void reactivate(const double* z) = 0;
    // Begins without the rows that are settled at the scores z (NaN: not known) even if these move by slack.
    virtual void leave_out(const double* z, double slack) = 0;
    // Gap and loss of each part in the last epoch, every row measured when it was visited.
    virtual void online(double* gap, double* loss) const = 0;
    virtual void penalties(double* penalty) const = 0;  // (λ/2)‖w‖² of each part
    virtual int parts() const = 0;
    virtual int64_t active() const = 0;
};

// What serial and block SDCA share. Weights and dual variables are Real; w ≈ w(u) up to their rounding.
template <class Rows, class Output, class Real = double>
class SdcaState : public SdcaBase {
 public:
    SdcaState(Rows rows, Output out, Weights c, const double* squared_norms, SdcaOptions options)
        : ops_{rows, std::move(out), options.feature},
          c_(c),
          x2_(squared_norms),
          o_(options),
          L_{ops_.L()},
          W_(ops_.template weights<Real>()),
          u_(rows.rows * L_),
          offset_(L_),
          active_(rows.rows),
          settled_(rows.rows),
          value_(ops_.out.parts()),
          gap_(ops_.out.parts()),
          last_value_(value_.size()),
          last_gap_(gap_.size(), infinity) {
        std::iota(active_.begin(), active_.end(), 0);
        new_epoch();
    }

    double epochs() const override { return visits_ / double(ops_.rows.rows); }
    bool epoch_ended() const override { return at_ == int64_t(order_.size()); }
    int outputs() const override { return visible(ops_.out); }
    int parts() const override { return ops_.out.parts(); }
    void online(double* gap, double* loss) const override {
        for (int k = 0; k < parts(); ++k)
            gap[k] = last_gap_[k] / c_.total, loss[k] = last_value_[k] / c_.total;
    }
    void penalties(double* penalty) const override {
        Buffer squares(L_);
        if constexpr (std::is_same_v<Real, float>)
            square_lanes()(W_.data(), ops_.rows.cols + 1, L_, squares.data());
        else
            squared_lanes(W_.data(), ops_.rows.cols + 1, L_, squares.data());
        std::fill_n(penalty, parts(), 0.0);
        for (int l = 0; l < visible(ops_.out); ++l) penalty[ops_.out.part(l)] += 0.5 * o_.lam * squares[l];
    }
    int64_t active() const override { return int64_t(active_.size()); }

    void weights(double* W, double* b) const override {
        from_lanes(W_.data(), ops_.rows.cols, L_, outputs(), W);
        biases(b);
    }
    void biases(double* b) const override {
        for (int k = 0; k < outputs(); ++k) b[k] = offset_[k] + o_.feature * W_[ops_.rows.cols * L_ + k];
    }
    void offsets(double* offset) const override { std::copy_n(offset_.begin(), outputs(), offset); }
    void duals(double* u, int64_t stride) const override {
        for (int64_t i = 0; i < ops_.rows.rows; ++i) std::copy_n(&u_[i * L_], outputs(), u + i * stride);
    }
    void start(const double* u, const double* W, const double* offset) override {
        const int64_t n = ops_.rows.cols;
        const int K = outputs();
        to_lanes(W, n, L_, K, W_.data());
        Buffer bias(K);
        for (int64_t i = 0; i < ops_.rows.rows; ++i)
            for (int k = 0; k < K; ++k) {
                u_[i * L_ + k] = Real(u[i * K + k]);
                bias[k] += o_.feature * share(i) * u[i * K + k];
            }
        for (int k = 0; k < K; ++k) offset_[k] = offset[k], W_[n * L_ + k] = Real(bias[k]);
    }
    void reactivate(const double* z) override {
        if (active() == ops_.rows.rows) return;
        choose(z);
        if (epoch_ended()) restart_ = true;
    }
    void leave_out(const double* z, double slack) override {
        if (!o_.shrinking || !std::isfinite(slack)) return;
        slack_ = slack;
        choose(z);
        new_epoch();
    }

    State state() const override {
        FieldWriter f;
        const_cast<SdcaState*>(this)->fields(f);
        return std::move(f.out);
    }
    void restore(const State& s) override {
        FieldReader f{s};
        fields(f);
    }

 protected:
    // Makes those rows active that are not settled at the scores z.
    void choose(const double* z) {
        const int K = outputs();
        Buffer lanes(L_), u(L_);
        active_.resize(ops_.rows.rows);
        int64_t count = 0;
        for (int64_t i = 0; i < ops_.rows.rows; ++i) {
            for (int k = 0; k < K; ++k) lanes[k] = z[i * K + k], u[k] = double(u_[i * L_ + k]);
            // Without a branch, which nobody could predict.
            active_[count] = i;
            count += std::isnan(lanes[0]) | !ops_.out.settled(i, lanes.data(), u.data(), slack_);
        }
        if (count == 0) active_[count++] = 0;
        active_.resize(count);
        std::fill(settled_.begin(), settled_.end(), 0);
    }

    // Rows that were found settled in this epoch leave the active ones, unless none would be left.
    void drop_settled() {
        const int64_t first = active_[0];
        std::size_t count = 0;
        for (const int64_t i : active_) {  // without a branch here, too
            active_[count] = i;
            count += !settled_[i];
            settled_[i] = 0;
        }
        if (count > 0)
            active_.resize(count);
        else
            active_[0] = first;
    }

    template <class F>
    void fields(F& f) {
        f("W", W_), f("u", u_), f("offset", offset_), f("value", value_), f("gap", gap_);
        f("last_value", last_value_), f("last_gap", last_gap_), f("active", active_), f("order", order_);
        f.scalar("epoch", epoch_), f.scalar("at", at_), f.scalar("visits", visits_),
            f.scalar("slack", slack_);
        f.scalar("worst", worst_), f.scalar("sigma", sigma_), f.scalar("restart", restart_);
        f("settled", settled_);
    }

    double share(int64_t i) const { return c_[i] * unit_; }  // of row i in w(u)

    void new_epoch() {
        if (o_.sampling == Sampling::iid) {
            Rng rng(o_.seed, std::uint64_t(epoch_));
            order_.resize(active_.size());
            for (auto& i : order_) i = active_[rng.below(active())];
        } else {
            order_ = active_;
            reorder(order_, o_.sampling, o_.seed, epoch_);
        }
        at_ = 0;
        restart_ = false;
    }
    void begin_if_ended() {
        if (at_ < int64_t(order_.size()) && !restart_) return;
        ++epoch_;
        new_epoch();
    }
    void finish_epoch() {
        if (o_.multiplier)
            for (int l = 0; l < L_; ++l) offset_[l] += o_.feature * W_[ops_.rows.cols * L_ + l];
        last_value_.swap(value_), last_gap_.swap(gap_);
        std::fill(value_.begin(), value_.end(), 0.0);
        std::fill(gap_.begin(), gap_.end(), 0.0);
        slack_ = worst_, worst_ = 0;
    }

    LaneOps<Rows, Output> ops_;
    Weights c_;
    const double* x2_;
    SdcaOptions o_;
    typename LaneOps<Rows, Output>::Lanes L_;
    WeightBuffer<Real> W_;
    LaneBuffer<Real> u_;
    Buffer offset_;
    std::vector<int64_t> active_, order_{};
    LaneBuffer<char> settled_;  // what this epoch found each row to be, for drop_settled
    Buffer value_, gap_, last_value_, last_gap_;
    int64_t epoch_ = 0, at_ = 0;
    double unit_ = 1 / (o_.lam * c_.total), visits_ = 0, slack_ = infinity, worst_ = 0, sigma_ = 0;
    bool restart_ = false;
};

template <class Rows, class Output, class Real = double>
class SdcaSolver final : public SdcaState<Rows, Output, Real> {
 public:
    SdcaSolver(Rows rows, Output out, Weights c, const double* squared_norms, SdcaOptions options)
        : SdcaState<Rows, Output, Real>(rows, std::move(out), c, squared_norms, options),
          z_(this->L_),
          next_(this->L_),
          mean_(in_single ? this->u_.size() : 0) {}

    void advance(int64_t rows) override {
        this->begin_if_ended();
        if constexpr (in_single) begin_visits();
        allowed_ = slack();
        const int64_t stop = std::min(int64_t(this->order_.size()), this->at_ + rows);
        for (; this->at_ < stop; ++this->at_) {
            this->ops_.prefetch(this->order_, this->at_, [&](int64_t i) {
                const double* x2 = this->x2_ + i;
                const Real* u = &this->u_[i * this->L_];
                if constexpr (in_single)
                    return std::array<const void*, 3>{x2, u, &mean_[i * this->L_]};
                else
                    return std::array<const void*, 2>{x2, u};
            });
            if constexpr (!LaneOps<Rows, Output>::single &&
                          !in_single)  // those are few enough, in huge pages
                if (this->at_ + 1 < int64_t(this->order_.size()))
                    this->ops_.rows.prefetch_weights(this->order_[this->at_ + 1], this->W_.data(), this->L_);
            if (this->at_ % 64 == 0) allowed_ = slack();
            visit(this->order_[this->at_]);
            this->visits_ += 1;
        }
        if constexpr (in_single) end_visits();
        if (this->epoch_ended()) {
            if (drift_.count > 0) this->worst_ = 2 * std::sqrt(drift_.squares / drift_.count);
            drift_ = {};
            this->drop_settled();
            this->finish_epoch();
        }
    }

    void averages(double* u, int64_t stride) const override {
        if (mean_.empty() || !this->epoch_ended()) return this->duals(u, stride);
        for (int64_t i = 0; i < this->ops_.rows.rows; ++i)
            std::copy_n(&mean_[i * this->L_], this->outputs(), u + i * stride);
    }
    void start(const double* u, const double* W, const double* offset) override {
        SdcaState<Rows, Output, Real>::start(u, W, offset);
        if constexpr (in_single) mean_ = this->u_;
    }

    State state() const override {
        State s = SdcaState<Rows, Output, Real>::state();
        s.emplace_back("mean", Buffer(mean_.begin(), mean_.end()));
        s.emplace_back("drift", Buffer{drift_.squares, drift_.count});
        return s;
    }
    void restore(const State& s) override {
        SdcaState<Rows, Output, Real>::restore(s);
        FieldReader{s}("mean", mean_);
        Buffer drift(2);
        FieldReader{s}("drift", drift);
        drift_ = {drift[0], drift[1]};
    }

 private:
    static constexpr bool in_single = std::is_same_v<Real, float>;
    static constexpr bool drifting = requires(const Output& out) { out.drift(0, nullptr, nullptr); };

    // How far scores have moved in this epoch.
    Drift drifted() const {
        Drift sum = drift_;
        if constexpr (in_single)
            sum += {std::accumulate(lanes_.moved, lanes_.moved + this->L_, 0.0),
                    std::accumulate(lanes_.open, lanes_.open + this->L_, 0.0)};
        return sum;
    }
    // By how much they may move yet: as in this epoch, once that is known, or as in the last.
    double slack() const {
        const Drift now = drifted();
        return now.count >= enough ? 2 * std::sqrt(now.squares / now.count) : this->slack_;
    }
    static constexpr double enough = 256;

    void begin_visits() {
        const int L = this->L_;
        numbers_.assign(4 * L, 0.0f);
        sums_.assign(2 * L, 0.0);
        std::copy_n(this->offset_.begin(), L, numbers_.begin());
        std::fill_n(numbers_.begin() + L, this->outputs(), 1.0f);
        lanes_.shape = this->ops_.out.loss.margin_shape();
        lanes_.W = this->W_.data(), lanes_.bias = &this->W_[this->ops_.rows.cols * L];
        lanes_.offset = numbers_.data(), lanes_.used = numbers_.data() + L;
        lanes_.value = sums_.data(), lanes_.gap = sums_.data() + L;
        lanes_.feature = float(this->ops_.feature);
        lanes_.moved = numbers_.data() + 2 * L, lanes_.open = numbers_.data() + 3 * L;
    }
    void end_visits() {
        for (int k = 0; k < this->outputs(); ++k)
            this->value_[k] += lanes_.value[k], this->gap_[k] += lanes_.gap[k];
        drift_ = drifted();
        this->worst_ = infinity;
    }
    void visit(int64_t i)
        requires(in_single)
    {
        const auto& out = this->ops_.out;
        const double c = this->c_[i], share = this->share(i), feature = this->ops_.feature;
        if (c == 0) return;
        lanes_.u = &this->u_[i * this->L_], lanes_.mean = &mean_[i * this->L_];
        lanes_.rest = 1 - float(this->at_) / float(this->order_.size());
        lanes_.slack = float(allowed_);
        lanes_.own = out.label[i] - out.first;
        lanes_.c = float(c), lanes_.share = float(share);
        lanes_.q = float((this->x2_[i] + feature * feature) * share);
        visit_margins(this->ops_.rows, i, this->L_, lanes_);
        this->settled_[i] = lanes_.settled && this->o_.shrinking;
    }

    void visit(int64_t i)
        requires(!in_single)
    {
        auto& ops = this->ops_;
        const int L = this->L_;
        double* u = &this->u_[i * L];
        const double c = this->c_[i], share = this->share(i);
        if (c == 0) return;
        ops.dot(i, this->W_.data(), z_.data());
        for (int l = 0; l < L; ++l) z_[l] += this->offset_[l];
        const double gap = ops.out.measure(i, z_.data(), u, c, this->value_.data(), this->gap_.data());
        this->worst_ = std::max(this->worst_, gap);
        if constexpr (drifting) drift_ += ops.out.drift(i, z_.data(), u);
        const double q = (this->x2_[i] + ops.feature * ops.feature) * share;
        for (int l = 0; l < L; ++l) next_[l] = u[l];
        ops.out.step(i, z_.data(), q, next_.data());
        double most = 0;
        for (int l = 0; l < L; ++l) {
            const double change = next_[l] - u[l];
            u[l] = next_[l];
            next_[l] = change * share;
            most = std::max(most, std::abs(change));
        }
        if (most > 0) ops.axpy(i, next_.data(), this->W_.data());
        this->settled_[i] = !(most > 0) && this->o_.shrinking && ops.out.settled(i, z_.data(), u, allowed_);
    }

    Buffer z_, next_;         // in double precision
    LaneBuffer<float> mean_;  // in single precision
    MarginVisit lanes_{};     // … with what it points to
    LaneBuffer<float> numbers_{};
    Buffer sums_{};
    Drift drift_{};
    double allowed_ = 0;  // slack() as it was a few visits ago
};

// Outputs for which there is single precision.
template <class Output>
inline constexpr bool single_lanes = false;
template <MarginShaped Loss>
inline constexpr bool single_lanes<OneVsRest<Loss>> = true;

// Defined for each row layout in linear/make_sdca.cpp.
template <class Rows>
std::unique_ptr<SdcaBase> make_sdca(const Rows&, const AnyLoss&, const Targets&, Weights,
                                    const double* squared_norms, const SdcaOptions&);
template <class Rows>
std::unique_ptr<SdcaBase> make_sdca(const Rows&, const AnyJointLoss&, const Targets&, Weights,
                                    const double* squared_norms, const SdcaOptions&);

}  // namespace pegasos
