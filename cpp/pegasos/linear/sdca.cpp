// All of linear/sdca.hpp that need not know how rows are laid out.
#include "pegasos/linear/sdca.hpp"

namespace pegasos {

template <class Real>
SdcaState<Real>::SdcaState(const RowsShape& rows, std::unique_ptr<Output> out, Weights c,
                           const double* squared_norms, const SdcaOptions& options)
    : m_(rows.rows),
      n_(rows.cols),
      out_(std::move(out)),
      c_(c),
      x2_(squared_norms),
      o_(options),
      L_(out_->lanes),
      W_(rows.weights<Real>(L_)),
      u_(m_ * L_),
      offset_(L_),
      active_(m_),
      settled_(m_),
      value_(parts()),
      gap_(parts()),
      last_value_(parts()),
      last_gap_(parts(), infinity) {
    std::iota(active_.begin(), active_.end(), 0);
    new_epoch();
}

template <class Real>
SdcaState<Real>::~SdcaState() = default;

template <class Real>
void SdcaState<Real>::online(double* gap, double* loss) const {
    for (int k = 0; k < parts(); ++k) gap[k] = last_gap_[k] / c_.total, loss[k] = last_value_[k] / c_.total;
}

template <class Real>
void SdcaState<Real>::penalties(double* penalty) const {
    Buffer squares(L_);
    if constexpr (std::is_same_v<Real, float>)
        square_lanes()(W_.data(), n_ + 1, L_, squares.data());
    else
        squared_lanes(W_.data(), n_ + 1, L_, squares.data());
    std::fill_n(penalty, parts(), 0.0);
    for (int l = 0; l < outputs(); ++l) penalty[out_->part(l)] += 0.5 * o_.lam * squares[l];
}

template <class Real>
void SdcaState<Real>::weights(double* W, double* b) const {
    from_lanes(W_.data(), n_, L_, outputs(), W);
    biases(b);
}
template <class Real>
void SdcaState<Real>::biases(double* b) const {
    for (int k = 0; k < outputs(); ++k) b[k] = offset_[k] + o_.feature * W_[n_ * L_ + k];
}
template <class Real>
void SdcaState<Real>::offsets(double* offset) const {
    std::copy_n(offset_.begin(), outputs(), offset);
}
template <class Real>
void SdcaState<Real>::duals(double* u, int64_t stride) const {
    for (int64_t i = 0; i < m_; ++i) std::copy_n(&u_[i * L_], outputs(), u + i * stride);
}

template <class Real>
void SdcaState<Real>::start(const double* u, const double* W, const double* offset) {
    const int K = outputs();
    to_lanes(W, n_, L_, K, W_.data());
    Buffer bias(K);
    for (int64_t i = 0; i < m_; ++i)
        for (int k = 0; k < K; ++k) {
            u_[i * L_ + k] = Real(u[i * K + k]);
            bias[k] += o_.feature * share(i) * u[i * K + k];
        }
    for (int k = 0; k < K; ++k) offset_[k] = offset[k], W_[n_ * L_ + k] = Real(bias[k]);
}

template <class Real>
void SdcaState<Real>::reactivate(const double* z) {
    if (active() == m_) return;
    choose(z);
    if (epoch_ended()) restart_ = true;
}
template <class Real>
void SdcaState<Real>::leave_out(const double* z, double slack) {
    if (!o_.shrinking || !std::isfinite(slack)) return;
    slack_ = slack;
    choose(z);
    new_epoch();
}

template <class Real>
template <class F>
void SdcaState<Real>::fields(F& f) {
    f("W", W_), f("u", u_), f("offset", offset_), f("value", value_), f("gap", gap_);
    f("last_value", last_value_), f("last_gap", last_gap_), f("active", active_), f("order", order_);
    f.scalar("epoch", epoch_), f.scalar("at", at_), f.scalar("visits", visits_), f.scalar("slack", slack_);
    f.scalar("worst", worst_), f.scalar("sigma", sigma_), f.scalar("restart", restart_);
    f("settled", settled_);
}
template <class Real>
State SdcaState<Real>::state() const {
    FieldWriter f;
    const_cast<SdcaState*>(this)->fields(f);
    return std::move(f.out);
}
template <class Real>
void SdcaState<Real>::restore(const State& s) {
    FieldReader f{s};
    fields(f);
}

// Makes those rows active that are not settled at the scores z.
template <class Real>
void SdcaState<Real>::choose(const double* z) {
    constexpr int64_t stretch = 256;
    const int K = outputs();
    Buffer u(stretch * K);
    char settled[stretch];
    active_.resize(m_);
    int64_t count = 0;
    for (int64_t first = 0; first < m_; first += stretch) {
        const int64_t rows = std::min(stretch, m_ - first);
        for (int64_t r = 0; r < rows; ++r)
            for (int k = 0; k < K; ++k) u[r * K + k] = double(u_[(first + r) * L_ + k]);
        out_->settled_rows(first, rows, z + first * K, u.data(), slack_, settled);
        for (int64_t r = 0; r < rows; ++r) {
            // Without a branch, which would be mispredicted half of the time.
            active_[count] = first + r;
            count += std::isnan(z[(first + r) * K]) | !settled[r];
        }
    }
    if (count == 0) active_[count++] = 0;
    active_.resize(count);
    std::fill(settled_.begin(), settled_.end(), 0);
}

// Rows that were found settled in this epoch leave the active ones, unless none would be left.
template <class Real>
void SdcaState<Real>::drop_settled() {
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

template <class Real>
void SdcaState<Real>::new_epoch() {
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
template <class Real>
void SdcaState<Real>::begin_if_ended() {
    if (at_ < int64_t(order_.size()) && !restart_) return;
    ++epoch_;
    new_epoch();
}
template <class Real>
void SdcaState<Real>::finish_epoch() {
    if (o_.multiplier)
        for (int l = 0; l < L_; ++l) offset_[l] += o_.feature * W_[n_ * L_ + l];
    last_value_.swap(value_), last_gap_.swap(gap_);
    std::fill(value_.begin(), value_.end(), 0.0);
    std::fill(gap_.begin(), gap_.end(), 0.0);
    slack_ = worst_, worst_ = 0;
}

template <class Real>
SerialSdca<Real>::SerialSdca(const RowsShape& rows, std::unique_ptr<Output> out, Weights c,
                             const double* squared_norms, const SdcaOptions& options)
    : SdcaState<Real>(rows, std::move(out), c, squared_norms, options),
      z_(this->L_),
      next_(this->L_),
      mean_(in_single ? this->u_.size() : 0) {}

template <class Real>
SerialSdca<Real>::~SerialSdca() = default;

template <class Real>
void SerialSdca<Real>::advance(int64_t rows) {
    this->begin_if_ended();
    if constexpr (in_single) begin_visits();
    allowed_ = slack();
    visit(std::min(int64_t(this->order_.size()), this->at_ + rows));
    if constexpr (in_single) end_visits();
    if (this->epoch_ended()) {
        if (drift_.count > 0) this->worst_ = 2 * std::sqrt(drift_.squares / drift_.count);
        drift_ = {};
        this->drop_settled();
        this->finish_epoch();
    }
}

template <class Real>
void SerialSdca<Real>::averages(double* u, int64_t stride) const {
    if (mean_.empty() || !this->epoch_ended()) return this->duals(u, stride);
    for (int64_t i = 0; i < this->m_; ++i) std::copy_n(&mean_[i * this->L_], this->outputs(), u + i * stride);
}
template <class Real>
void SerialSdca<Real>::start(const double* u, const double* W, const double* offset) {
    SdcaState<Real>::start(u, W, offset);
    if constexpr (in_single) mean_ = this->u_;
}

template <class Real>
State SerialSdca<Real>::state() const {
    State s = SdcaState<Real>::state();
    s.emplace_back("mean", Buffer(mean_.begin(), mean_.end()));
    s.emplace_back("drift", Buffer{drift_.squares, drift_.count});
    return s;
}
template <class Real>
void SerialSdca<Real>::restore(const State& s) {
    SdcaState<Real>::restore(s);
    FieldReader{s}("mean", mean_);
    Buffer drift(2);
    FieldReader{s}("drift", drift);
    drift_ = {drift[0], drift[1]};
}

template <class Real>
void SerialSdca<Real>::begin_visits() {
    if constexpr (in_single) {
        const int L = this->L_;
        numbers_.assign(4 * L, 0.0f);
        sums_.assign(2 * L, 0.0);
        std::copy_n(this->offset_.begin(), L, numbers_.begin());
        std::fill_n(numbers_.begin() + L, this->outputs(), 1.0f);
        lanes_.shape = this->out_->margin_shape().value();
        lanes_.W = this->W_.data(), lanes_.bias = &this->W_[this->n_ * L];
        lanes_.offset = numbers_.data(), lanes_.used = numbers_.data() + L;
        lanes_.value = sums_.data(), lanes_.gap = sums_.data() + L;
        lanes_.feature = float(this->o_.feature);
        lanes_.moved = numbers_.data() + 2 * L, lanes_.open = numbers_.data() + 3 * L;
    }
}
template <class Real>
void SerialSdca<Real>::end_visits() {
    for (int k = 0; k < this->outputs(); ++k)
        this->value_[k] += lanes_.value[k], this->gap_[k] += lanes_.gap[k];
    drift_ = drifted();
    this->worst_ = infinity;
}

template class SdcaState<float>;
template class SdcaState<double>;
template class SerialSdca<float>;
template class SerialSdca<double>;

}  // namespace pegasos
