// All of linear/pegasos.hpp that need not know how rows are laid out.
#include "pegasos/linear/pegasos.hpp"

#include <limits>

namespace pegasos {

// Calls f(p, l) for each of so many interleaved numbers: number p is of lane l.
template <class F>
static void each_lane(std::size_t numbers, int L, F&& f) {
    if (L == 1)
        for (std::size_t p = 0; p < numbers; ++p) f(p, 0);
    else
        for (std::size_t p = 0; p < numbers; p += std::size_t(L))
            for (int l = 0; l < L; ++l) f(p + std::size_t(l), l);
}

PegasosBase::~PegasosBase() = default;

PegasosBase::PegasosBase(const RowsShape& rows, std::unique_ptr<Output> out, Weights c,
                         const PegasosOptions& options)
    : out_(std::move(out)),
      c_(c),
      o_(options),
      batches_(rows.rows, options.batch_size, options.sampling, options.seed, options.whole_batches),
      v_(rows.weights<double>(out_->lanes)),
      U_(rows.rows * out_->lanes),
      window_(U_.size()),
      next_window_(U_.size()),
      pi_(out_->lanes, 1.0),
      b_(out_->lanes, options.bias_start),
      scale_(out_->lanes),
      z_(out_->lanes * batches_.size()),
      g_(z_.size()),
      coef_(out_->lanes),
      norm_(out_->parts),
      gain_(out_->lanes, 1.0),
      m_(rows.rows),
      n_(rows.cols),
      L_(out_->lanes) {
    o_.batch_size = batches_.size();
    if (o_.average) {
        lag_ = rows.weights<double>(L_), sum_.resize(v_.size()), window_sum_.resize(v_.size());
        next_window_sum_.resize(v_.size()), carried_.resize(L_), b_sum_.resize(3 * L_);
    }
    if (!sums_) tau_.resize(L_), reach_.resize(L_);
    if (o_.random)
        for (auto& r : random_) r.resize(v_.size() + L_);
    new_epoch();
}

void PegasosBase::advance(int64_t rows) {
    if (epoch_ended()) {
        ++epoch_, at_ = 0;
        new_epoch();
    }
    visit(std::min(int64_t(order_.size()), at_ + rows));
    if (epoch_ended()) finish_epoch();
}

void PegasosBase::start(const double* W, const double* b) {
    if (steps_ > 0) throw std::logic_error("the first step has been made");
    const bool pegasos = o_.schedule == Schedule::pegasos;
    first_ = pegasos && o_.t0 == 0 ? 1.0 : 0.0;
    const double scale = pegasos && o_.t0 > 0 ? o_.lam * o_.t0 : 1.0;
    to_lanes(W, n_, L_, outputs(), v_.data());
    for (int64_t p = 0; p < n_ * L_; ++p) v_[p] *= scale;
    for (int k = 0; b && k < outputs(); ++k) {
        if (o_.feature > 0)
            v_[n_ * L_ + k] = scale * b[k] / o_.feature;
        else
            b_[k] = b[k];
    }
    recompute_norm();
}

// v was w_1, which goes; for the mean of iterates that is an addition of −w_1.
void PegasosBase::forget_first() {
    if (o_.average) each_lane(v_.size(), L_, [&](std::size_t p, int l) { lag_[p] -= carried_[l] * v_[p]; });
    std::fill(v_.begin(), v_.end(), 0.0);
    std::fill(norm_.begin(), norm_.end(), 0.0);
    first_ = 0.0;
}

void PegasosBase::select(Iterate which) {
    const bool mean = which == Iterate::average || which == Iterate::suffix;
    if ((mean && !o_.average) || (which > Iterate::suffix && !o_.random))
        throw std::invalid_argument("these iterates were not asked for when the solver was made");
    which_ = which;
}

void PegasosBase::keep_scores() { seen_.resize(U_.size()); }

void PegasosBase::scores(double* z, int64_t stride, int64_t early) const {
    if (seen_.empty()) throw std::logic_error("no scores were kept");
    for (int64_t i = 0; i < m_; ++i) std::copy_n(&seen_[i * L_], outputs(), z + i * stride);
    for (int64_t r = 0; r < std::min(early, m_); ++r)
        std::fill_n(z + order_[r] * stride, outputs(), std::numeric_limits<double>::quiet_NaN());
}

void PegasosBase::weights(double* W, double* b) const {
    const auto write = [&](auto&& entry, auto&& bias) {
        for (int k = 0; k < outputs(); ++k) {
            for (int64_t j = 0; j < n_; ++j) W[k * n_ + j] = entry(j * L_ + k, k);
            b[k] = bias(k) + o_.feature * entry(n_ * L_ + k, k);
        }
    };
    if (which_ == Iterate::last) {
        Buffer scale(L_);
        scales(L_, scale.data());
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

// The window's dual point: u_i is the mean of row i's slopes since the window began, at whatever weights they were
// found. A slope is a −∂ℓ_i, so it lies in the domain of u ↦ ℓ_i*(−u), which is convex: so does the mean, whether batches
// end with epochs or not. (Projections have shrunk older slopes, towards 0, which losses ≥ 0 have in their domain.)
// Random draws are divided by the mean number of visits instead; what leaves the domain is clipped by the caller.
void PegasosBase::duals(double* u, int64_t stride) const {
    const double m = double(m_);
    const std::vector<double> seen =
        sums_ ? batches_.shares(window_visits_, visits()) : std::vector<double>(std::size_t(m_));
    for (int64_t i = 0; i < m_; ++i)
        for (int k = 0; k < outputs(); ++k) {
            const int64_t p = i * L_ + k;
            u[i * stride + k] = !sums_        ? o_.lam * m * pi_[k] * U_[p]
                                : seen[i] > 0 ? pi_[k] * (U_[p] - window_[p]) * m / seen[i]
                                              : 0.0;
        }
}

template <class F>
void PegasosBase::fields(F& f) {
    f("v", v_), f("U", U_), f("window", window_), f("next_window", next_window_), f("pi", pi_), f("b", b_);
    f("norm", norm_), f("lag", lag_), f("sum", sum_), f("window_sum", window_sum_);
    f("next_window_sum", next_window_sum_), f("carried", carried_), f("b_sum", b_sum_);
    if (o_.schedule == Schedule::proximal) f("tau", tau_);
    f("random0", random_[0]), f("random1", random_[1]), f("seen", seen_);
    f.scalar("epoch", epoch_), f.scalar("at", at_), f.scalar("steps", steps_);
    f.scalar("window_visits", window_visits_), f.scalar("next_window_visits", next_window_visits_);
    f.scalar("window_steps", window_steps_), f.scalar("next_window_steps", next_window_steps_);
    f.scalar("draws", draws_), f.scalar("next0", next_[0]), f.scalar("next1", next_[1]);
}
State PegasosBase::state() const {
    FieldWriter f;
    const_cast<PegasosBase*>(this)->fields(f);
    return std::move(f.out);
}
void PegasosBase::restore(const State& s) {
    FieldReader f{s};
    fields(f);
    new_epoch();
    if (at_ > int64_t(order_.size())) throw std::invalid_argument("state: 'at' is past the end of its epoch");
    // Before batches ran over the end of an epoch the last one was short: such a state is of another fit.
    const int64_t k = batches_.size();
    if (o_.whole_batches && (steps_ * k != visits() || window_visits_ % k || next_window_visits_ % k))
        throw std::invalid_argument("state: 'steps' of other than batch_size rows");
    const bool started = std::any_of(v_.begin(), v_.end(), [](double v) { return v != 0; });
    first_ = o_.schedule == Schedule::pegasos && o_.t0 == 0 && visits() == 0 && started ? 1.0 : 0.0;
}

void PegasosBase::recompute_norm() {
    std::fill(norm_.begin(), norm_.end(), 0.0);
    each_lane(v_.size(), L_, [&](std::size_t p, int l) {
        const int part = out_->part(l);
        if (part < out_->parts) norm_[part] += v_[p] * v_[p];
    });
}

// Multiplies a vanishing pi into what it scales.
void PegasosBase::fold() {
    if (o_.average) flush();
    const auto scale = [&](auto& buffer) {
        each_lane(buffer.size(), L_, [&](std::size_t p, int l) { buffer[p] *= pi_[l]; });
    };
    scale(v_), scale(U_), scale(window_), scale(next_window_);
    std::fill(pi_.begin(), pi_.end(), 1.0);
    recompute_norm();
}

void PegasosBase::flush() {
    each_lane(v_.size(), L_, [&](std::size_t p, int l) { sum_[p] += carried_[l] * v_[p] - lag_[p]; });
    std::fill(lag_.begin(), lag_.end(), 0.0);
    std::fill(carried_.begin(), carried_.end(), 0.0);
}

// Two uniform draws from {w_1, …, w_t} (Lemma 3 of the 2011 paper) without knowing the last t: iterate t
// replaces a draw with probability 1/t, so after t the next replacement is at ⌊t/U⌋ + 1 with U uniform.
void PegasosBase::draw() {
    for (int r = 0; r < 2; ++r) {
        if (steps_ != next_[r]) continue;
        each_lane(v_.size(), L_, [&](std::size_t p, int l) { random_[r][p] = scale_[l] * v_[p]; });
        std::copy(b_.begin(), b_.end(), random_[r].begin() + std::ptrdiff_t(v_.size()));
        Rng rng(o_.seed ^ 0x72616e646f6d, std::uint64_t(draws_++));
        next_[r] = int64_t(std::min(double(steps_) / rng.uniform(), 9e15)) + 1;
    }
}

void PegasosBase::new_epoch() {
    batches_.draw(order_, epoch_);
    before_ = batches_.before(epoch_);
}

// What belongs to the epoch that has just ended; epochs() still counts it as its last row.
void PegasosBase::finish_epoch() {
    if (o_.average) flush();
    if (tracks_) recompute_norm();
    const int64_t done = epoch_ + 1;
    if ((done & (done - 1)) == 0) {  // 1, 2, 4, 8, …: the window reaches back to the last but one of these
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

}  // namespace pegasos
