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
template <class Real>
class SdcaState : public SdcaBase {
 public:
    SdcaState(const RowsShape&, std::unique_ptr<Output>, Weights, const double* squared_norms,
              const SdcaOptions&);
    ~SdcaState() override;

    double epochs() const final { return visits_ / double(m_); }
    bool epoch_ended() const final { return at_ == int64_t(order_.size()); }
    int outputs() const final { return out_->outputs; }
    int parts() const final { return out_->parts; }
    int64_t active() const final { return int64_t(active_.size()); }
    void online(double* gap, double* loss) const final;
    void penalties(double* penalty) const final;
    void weights(double* W, double* b) const final;
    void biases(double* b) const final;
    void offsets(double* offset) const final;
    void duals(double* u, int64_t stride) const final;
    void start(const double* u, const double* W, const double* offset) override;
    void reactivate(const double* z) final;
    void leave_out(const double* z, double slack) final;
    State state() const override;
    void restore(const State&) override;

 protected:
    double share(int64_t i) const { return c_[i] * unit_; }  // of row i in w(u)
    void begin_if_ended();
    void finish_epoch();
    void drop_settled();

    int64_t m_, n_;
    std::unique_ptr<Output> out_;
    Weights c_;
    const double* x2_;
    SdcaOptions o_;
    int L_;
    WeightBuffer<Real> W_;
    LaneBuffer<Real> u_;
    Buffer offset_;
    std::vector<int64_t> active_, order_{};
    LaneBuffer<char> settled_;  // what this epoch found each row to be, for drop_settled
    Buffer value_, gap_, last_value_, last_gap_;
    int64_t epoch_ = 0, at_ = 0;
    double unit_ = 1 / (o_.lam * c_.total), visits_ = 0, slack_ = infinity, worst_ = 0, sigma_ = 0;
    bool restart_ = false;

 private:
    template <class F>
    void fields(F&);
    void choose(const double* z);
    void new_epoch();
};
extern template class SdcaState<float>;
extern template class SdcaState<double>;

// One row after the other.
template <class Real>
class SerialSdca : public SdcaState<Real> {
 public:
    SerialSdca(const RowsShape&, std::unique_ptr<Output>, Weights, const double* squared_norms,
               const SdcaOptions&);
    ~SerialSdca() override;
    void advance(int64_t rows) final;
    void averages(double* u, int64_t stride) const final;
    void start(const double* u, const double* W, const double* offset) final;
    State state() const final;
    void restore(const State&) final;

 protected:
    virtual void visit(int64_t stop) = 0;  // the rows of order_ from at_ to stop
    // By how much scores may move yet: as in this epoch, once that is known, or as in the last.
    double slack() const {
        const Drift now = drifted();
        return now.count >= min_drift_count ? 2 * std::sqrt(now.squares / now.count) : this->slack_;
    }

    static constexpr bool in_single = std::is_same_v<Real, float>;
    Buffer z_, next_;         // in double precision
    LaneBuffer<float> mean_;  // in single precision
    MarginVisit lanes_{};     // … with what it points to
    LaneBuffer<float> numbers_{};
    Buffer sums_{};
    Drift drift_{};
    double allowed_ = 0;  // slack() as it was a few visits ago

 private:
    static constexpr double min_drift_count = 256;
    // How far scores have moved in this epoch.
    Drift drifted() const {
        Drift sum = drift_;
        if constexpr (in_single)
            sum += {std::accumulate(lanes_.moved, lanes_.moved + this->L_, 0.0),
                    std::accumulate(lanes_.open, lanes_.open + this->L_, 0.0)};
        return sum;
    }
    void begin_visits();
    void end_visits();
};
extern template class SerialSdca<float>;
extern template class SerialSdca<double>;

// In double precision. Out is a Single<Loss>, or Output.
template <class Rows, class Out>
class SdcaSolver final : public SerialSdca<double> {
 public:
    SdcaSolver(const Rows& rows, Held<Out> out, std::unique_ptr<Output> output, Weights c,
               const double* squared_norms, const SdcaOptions& options)
        : SerialSdca(RowsShape(rows), std::move(output), c, squared_norms, options),
          row_{rows, out, options.feature} {}

 private:
    void visit(int64_t stop) override {
        const auto L = row_.lanes();
        for (; at_ < stop; ++at_) {
            row_.prefetch(order_, at_,
                          [&](int64_t i) { return std::array<const void*, 2>{x2_ + i, &u_[i * L]}; });
            if constexpr (!Out::single)
                if (at_ + 1 < int64_t(order_.size()))
                    row_.rows.prefetch_weights(order_[at_ + 1], W_.data(), L);
            if (at_ % 64 == 0) allowed_ = slack();
            visit_row(order_[at_]);
            visits_ += 1;
        }
    }

    void visit_row(int64_t i) {
        const auto L = row_.lanes();
        double* u = &u_[i * L];
        const double c = c_[i], share = this->share(i);
        if (c == 0) return;
        row_.dot(i, W_.data(), z_.data());
        for (int l = 0; l < L; ++l) z_[l] += offset_[l];
        const double gap = row_.out.measure(i, z_.data(), u, c, value_.data(), gap_.data());
        worst_ = std::max(worst_, gap);
        drift_ += row_.out.drift(i, z_.data(), u);
        const double q = (x2_[i] + row_.feature * row_.feature) * share;
        for (int l = 0; l < L; ++l) next_[l] = u[l];
        row_.out.step(i, z_.data(), q, next_.data());
        double most = 0;
        for (int l = 0; l < L; ++l) {
            const double change = next_[l] - u[l];
            u[l] = next_[l];
            next_[l] = change * share;
            most = std::max(most, std::abs(change));
        }
        if (most > 0) row_.axpy(i, next_.data(), W_.data());
        settled_[i] = !(most > 0) && o_.shrinking && row_.out.settled(i, z_.data(), u, allowed_);
    }

    RowVisits<Rows, Out> row_;
};

// Up to sixteen classes in single precision, for losses that have a MarginShape.
template <class Rows>
class SingleSdcaSolver final : public SerialSdca<float> {
 public:
    SingleSdcaSolver(const Rows& rows, Output& out, std::unique_ptr<Output> output, Weights c,
                     const double* squared_norms, const SdcaOptions& options)
        : SerialSdca(RowsShape(rows), std::move(output), c, squared_norms, options),
          row_{rows, out, options.feature} {}

 private:
    void visit(int64_t stop) override {
        for (; at_ < stop; ++at_) {
            row_.prefetch(order_, at_, [&](int64_t i) {
                return std::array<const void*, 3>{x2_ + i, &u_[i * L_], &mean_[i * L_]};
            });
            if (at_ % 64 == 0) allowed_ = slack();
            visit_row(order_[at_]);
            visits_ += 1;
        }
    }

    void visit_row(int64_t i) {
        const double c = c_[i], share = this->share(i), feature = row_.feature;
        if (c == 0) return;
        lanes_.u = &u_[i * L_], lanes_.mean = &mean_[i * L_];
        lanes_.rest = 1 - float(at_) / float(order_.size());
        lanes_.slack = float(allowed_);
        lanes_.own = row_.out.targets.label[i] - row_.out.targets.first;
        lanes_.c = float(c), lanes_.share = float(share);
        lanes_.q = float((x2_[i] + feature * feature) * share);
        visit_margins(row_.rows, i, L_, lanes_);
        settled_[i] = lanes_.settled && o_.shrinking;
    }

    RowVisits<Rows, Output> row_;
};

// Defined for each row layout in linear/make_sdca.cpp.
template <class Rows>
std::unique_ptr<SdcaBase> make_sdca(const Rows&, const AnyLoss&, const Targets&, Weights,
                                    const double* squared_norms, const SdcaOptions&);
template <class Rows>
std::unique_ptr<SdcaBase> make_sdca(const Rows&, const AnyJointLoss&, const Targets&, Weights,
                                    const double* squared_norms, const SdcaOptions&);

}  // namespace pegasos
