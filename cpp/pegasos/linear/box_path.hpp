// The arithmetic of an interior point step that is done row by row: everything but the products with the
// matrix.
//
// For every box (row of a problem's dual): 0 ≤ a ≤ h with slack t = h − a, multipliers z of a ≥ 0 and v of a
// ≤ h, sign s and linear term p; see src/pegasos/solvers/linear/interior_point.py for the whole method. Two boxes of one
// row (regression) lie `rows` apart. The path is
//
//   s∘score − p − z + v = 0,   a∘z = t∘v = μ
//
// and a direction with complementarity targets (cl, cu) is, given the change of the scores,
//
//   Δa = Θ⁻¹(r − s∘Δscore),  r = p + z − v − s∘score + cl/a − cu/t,  Δz = (cl − zΔa)/a,  Δv = (cu + vΔa)/t.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "pegasos/core/memory.hpp"
#include "pegasos/linear/box_kernels.hpp"

namespace pegasos {

class BoxPath {
 public:
    // h, s, p: boxes × rows. score: rows. Starts on the path through these scores, with a μ of `nearness`
    // times the size of what is to be balanced.
    BoxPath(std::int64_t boxes, std::int64_t rows, const double* h, const double* s, const double* p,
            const double* score, double nearness)
        : boxes_(boxes),
          m_(rows),
          size_(boxes * rows),
          h_(h, h + size_),
          s_(s, s + size_),
          p_(p, p + size_),
          score_(score, score + rows),
          d_score_(std::size_t(rows)),
          next_d_score_(std::size_t(rows)) {
        for (auto* x : {&a_, &t_, &z_, &v_, &over_a_, &over_t_, &over_az_, &over_tv_, &inverse_, &cl_, &cu_,
                        &da_, &next_cl_, &next_cu_, &next_da_})
            x->resize(std::size_t(size_));
        double sum = 0;
        each_box([&](std::size_t k, std::size_t i) {
            sum += h_[k] * std::abs(s_[k] * score_[i] - p_[k]);
            at_zero_ += h_[k] * std::max(p_[k], 0.0);
        });
        const double mu = std::max(nearness * sum / double(size_), 1e-300);
        each_box([&](std::size_t k, std::size_t i) {
            // z − v = r with a z = t v = μ has one solution, written so that nothing cancels.
            const double r = s_[k] * score_[i] - p_[k], rh = r * h_[k];
            const double root = std::hypot(rh, 2 * mu);
            a_[k] = 2 * mu * h_[k] / (2 * mu + root + rh);
            t_[k] = 2 * mu * h_[k] / (2 * mu + root - rh);
            z_[k] = mu / a_[k];
            v_[k] = mu / t_[k];
        });
        measure();
    }

    // The mean complementarity, and the sum of all: the duality gap, once the path is feasible.
    double mu() const { return gap_ / double(2 * size_); }
    double gap() const { return gap_; }

    // d (rows) = Σ over a row's boxes of Θ⁻¹: the weights of the normal matrix. Starts a step with the
    // predictor's direction, which aims at complementarity zero.
    void begin(double* d) {
        std::fill_n(d, m_, 0.0);
        each([&](const BoxRows& b) { kernels_.begin(b, d); });
    }
    // q (rows) = Σ over a row's boxes of s(a + Θ⁻¹r) for the targets at hand: the right side of the normal
    // equations.
    void right_side(double* q) {
        std::fill_n(q, m_, 0.0);
        each([&](const BoxRows& b) { kernels_.right_side(b, q); });
    }
    // Completes the direction for the change of the scores.
    void complete(const double* d_score) {
        std::copy_n(d_score, m_, next_d_score_.begin());
        each([&](const BoxRows& b) { kernels_.complete(b, d_score); });
    }
    // The longest step ≤ 1 along the direction just completed that stays inside; NaN for a direction that has
    // left the range of numbers.
    double reach() {
        double most = 1;
        each([&](const BoxRows& b) {
            const double share = kernels_.largest_share(b);
            most = share > most || std::isnan(share) ? share : most;
        });
        return 1 / most;
    }
    // The mean complementarity after a step of that length along it.
    double mu_after(double step) {
        double sum = 0;
        each([&](const BoxRows& b) { sum += kernels_.products_after(b, step); });
        return sum / double(2 * size_);
    }
    // Mehrotra's corrector of the direction just completed, the predictor.
    void correct(double target) {
        each([&](const BoxRows& b) { kernels_.correct(b, target); });
    }
    // Accepts the direction just completed as the best so far.
    void keep() { cl_.swap(next_cl_), cu_.swap(next_cu_), da_.swap(next_da_), d_score_.swap(next_d_score_); }
    // Gondzio's corrector of the direction kept.
    void centre(double target, double reach) {
        each([&](const BoxRows& b) { kernels_.centre(b, target, reach); });
    }
    // Takes a step along the direction kept.
    void move(double step) {
        each([&](const BoxRows& b) { kernels_.move(b, step); });
        for (std::size_t i = 0; i < std::size_t(m_); ++i) score_[i] += step * d_score_[i];
        measure();
    }

    // u (rows) = Σ over a row's boxes of s a.
    void signed_sums(double* u) const {
        std::fill_n(u, m_, 0.0);
        each_box([&](std::size_t k, std::size_t i) { u[i] += s_[k] * a_[k]; });
    }
    // d (rows) = Σ over a row's boxes of what Θ⁻¹ would be with this a on the path with that gap: there Θ =
    // μ/a² + μ/t².
    void weights_at(double gap, double* d) const {
        const double mu = gap / double(2 * size_);
        std::fill_n(d, m_, 0.0);
        each_box([&](std::size_t k, std::size_t i) {
            const double aa = a_[k] * a_[k], tt = t_[k] * t_[k];
            d[i] += aa * tt / (mu * (aa + tt));
        });
    }
    // The losses at the current scores, and at scores of zero.
    double loss() const { return loss_; }
    double loss_at_zero() const { return at_zero_; }

    // The arrays a step changes, one after the other: a, t, z, v, score.
    std::vector<double> state() const {
        std::vector<double> all;
        for (const auto* x : {&a_, &t_, &z_, &v_, &score_}) all.insert(all.end(), x->begin(), x->end());
        return all;
    }
    void restore(const double* all) {
        for (auto* x : {&a_, &t_, &z_, &v_, &score_}) {
            std::copy_n(all, x->size(), x->begin());
            all += x->size();
        }
        measure();
    }
    std::int64_t state_size() const { return 4 * size_ + m_; }

 private:
    // f for the boxes of one kind after the other.
    template <class F>
    void each(F&& f) {
        for (std::int64_t b = 0; b < boxes_; ++b) {
            const auto at = [&](Buffer& x) { return x.data() + b * m_; };
            f(BoxRows{m_,      at(h_),  at(s_),      at(p_),       score_.data(), at(a_),       at(t_),
                      at(z_),  at(v_),  at(over_a_), at(over_t_),  at(over_az_),  at(over_tv_), at(inverse_),
                      at(cl_), at(cu_), at(da_),     at(next_cl_), at(next_cu_),  at(next_da_)});
        }
    }
    // f(box, row) for every box.
    template <class F>
    void each_box(F&& f) const {
        const std::size_t m = std::size_t(m_);
        for (std::size_t first = 0; first < std::size_t(size_); first += m)
            for (std::size_t i = 0; i < m; ++i) f(first + i, i);
    }
    // Gap and loss are functions of the state, so that they are known wherever a path comes from.
    void measure() {
        gap_ = loss_ = 0;
        each([&](const BoxRows& b) { gap_ += kernels_.products(b), loss_ += kernels_.loss(b); });
    }

    const BoxKernels& kernels_ = box_kernels();
    std::int64_t boxes_, m_, size_;
    Buffer h_, s_, p_, score_;
    Buffer a_, t_, z_, v_;
    Buffer over_a_, over_t_, over_az_, over_tv_, inverse_;
    Buffer cl_, cu_, da_, d_score_;                      // the best direction so far
    Buffer next_cl_, next_cu_, next_da_, next_d_score_;  // the one being made
    double gap_ = 0, loss_ = 0, at_zero_ = 0;
};

}  // namespace pegasos
