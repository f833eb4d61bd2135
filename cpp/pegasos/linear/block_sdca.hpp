// SDCA in logical blocks that threads can share, with the same bits for any number of threads.
//
// A round takes the next tenth of the epoch's rows and cuts it into `blocks` parts. Every part ascends on its
// own copy of w with its steps damped by σ (q → σq: CoCoA+'s local problem, Ma et al. 2015); the parts'
// changes δu, δw = Σ_k δw_k are then added with the step γ ∈ [0, 1] that maximises
//
//   γ · gain − λγ⟨w, δw⟩ − (λγ²/2)‖δw‖²,
//   gain = (1/M) Σ c_i (conjugate(u_i + δ_i) − conjugate(u_i) − offset δ_i),
//
// a lower bound of the dual's increase for any concave conjugate, exact for the hinge loss. So the dual never
// falls, whatever σ; σ is lowered while γ wants to exceed 1 and raised when it falls short (Lee & Chang 2019
// for the line search; Ioannou et al. 2019 for cutting the rows anew each round).
#pragma once
#include <span>

#include "pegasos/linear/sdca.hpp"

namespace pegasos {

template <class Rows, class Output>
class BlockSdcaSolver final : public SdcaState<Rows, Output> {
 public:
    BlockSdcaSolver(Rows rows, Output out, Weights c, const double* squared_norms, SdcaOptions options)
        : SdcaState<Rows, Output>(rows, std::move(out), c, squared_norms, options), parts_(options.blocks) {
        this->sigma_ = std::max(1.0, options.blocks / 4.0);
        for (auto& p : parts_) p.W = this->W_;
        change_.resize(this->W_.size());
    }

    void advance(int64_t rows) override {
        this->begin_if_ended();
        const int64_t end = int64_t(this->order_.size()), a_round = std::max<int64_t>(1, (end + 9) / 10);
        const int64_t stop = std::min(end, this->at_ + rows);
        while (this->at_ < stop) {
            const int64_t count = std::min(a_round, end - this->at_);
            round(this->order_.data() + this->at_, count);
            this->at_ += count;
            this->visits_ += double(count);
        }
        if (this->epoch_ended()) this->finish_epoch();
    }

 private:
    struct Part {
        WeightBuffer<double> W{};
        std::vector<std::pair<int64_t, double>> moves{};  // row, change of its dual variable
        double gain = 0, value = 0, gap = 0;
    };

    void round(const int64_t* rows, int64_t count) {
        const int64_t blocks = int64_t(parts_.size()), m = this->ops_.rows.rows, n = this->ops_.rows.cols;
        const int threads =
            useful_threads(this->o_.threads, count * (this->ops_.rows.nnz() / m) + blocks * n);
        parallel_for(threads, blocks, [&](int64_t k) {
            ascend(parts_[k], rows + count * k / blocks, rows + count * (k + 1) / blocks);
        });
        // δw = Σ_k (W_k − W)/σ, in stretches of columns, each summed over the parts in order.
        const int64_t size = int64_t(change_.size()), stretch = 4096,
                      stretches = (size + stretch - 1) / stretch;
        std::vector<double> inner(stretches), square(stretches);
        parallel_for(threads, stretches, [&](int64_t s) {
            double a = 0, b = 0;
            for (int64_t j = s * stretch; j < std::min(size, (s + 1) * stretch); ++j) {
                double d = 0;
                for (const auto& p : parts_) d += p.W[j] - this->W_[j];
                change_[j] = d /= this->sigma_;
                a += d * this->W_[j];
                b += d * d;
            }
            inner[s] = a, square[s] = b;
        });
        double gain = 0, along = 0, length = 0;
        for (const auto& p : parts_) {
            gain += p.gain;
            this->value_[0] += p.value;
            this->gap_[0] += p.gap;
        }
        for (int64_t s = 0; s < stretches; ++s) along += inner[s], length += square[s];
        if (!(length > 0)) {
            apply(1.0);
            return;
        }
        const double best = (gain / this->c_.total - this->o_.lam * along) / (this->o_.lam * length);
        apply(std::clamp(best, 0.0, 1.0));
        if (best > 1.2) this->sigma_ = std::max(1.0, this->sigma_ / 1.3);
        if (best < 0.8) this->sigma_ = std::min(double(blocks), 1.5 * this->sigma_);
    }

    void ascend(Part& p, const int64_t* first, const int64_t* last) const {
        const auto& ops = this->ops_;
        auto out = ops.out;
        p.W = this->W_;
        p.moves.clear();
        p.gain = p.value = p.gap = 0;
        const std::span rows(first, last);
        for (int64_t r = 0; r < int64_t(rows.size()); ++r) {
            ops.prefetch(rows, r,
                         [&](int64_t i) { return std::array<const void*, 2>{&this->x2_[i], &this->u_[i]}; });
            const int64_t i = rows[r];
            const double c = this->c_[i], share = this->share(i), old = this->u_[i];
            if (c == 0) continue;
            double z, u = old;
            ops.dot(i, p.W.data(), &z);
            z += this->offset_[0];
            out.measure(i, &z, &old, c, &p.value, &p.gap);
            const double q = (this->x2_[i] + ops.feature * ops.feature) * share;
            out.step(i, &z, this->sigma_ * q, &u);
            if (u == old) continue;
            const double y = out.y(i, 0), coef = this->sigma_ * (u - old) * share;
            p.gain +=
                c * (out.loss.conjugate(u, y) - out.loss.conjugate(old, y) - this->offset_[0] * (u - old));
            p.moves.emplace_back(i, u - old);
            ops.axpy(i, &coef, p.W.data());
        }
    }

    void apply(double gamma) {
        for (const auto& p : parts_)
            for (const auto& [i, d] : p.moves) {
                const double y = this->ops_.out.y(i, 0);  // rounding must not carry u out of its domain
                this->u_[i] = std::clamp(this->u_[i] + gamma * d, this->ops_.out.loss.lower(y),
                                         this->ops_.out.loss.upper(y));
            }
        for (std::size_t j = 0; j < change_.size(); ++j) this->W_[j] += gamma * change_[j];
    }

    std::vector<Part> parts_;
    Buffer change_{};
};

}  // namespace pegasos
