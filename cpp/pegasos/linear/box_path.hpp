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

namespace pegasos {

class BoxPath {
 public:
    // h, s, p: boxes × rows. score: rows. Starts on the path with parameter μ through these scores.
    BoxPath(std::int64_t boxes, std::int64_t rows, const double* h, const double* s, const double* p,
            const double* score, double mu)
        : boxes_(boxes),
          m_(rows),
          size_(boxes * rows),
          h_(h, h + size_),
          s_(s, s + size_),
          p_(p, p + size_),
          score_(score, score + rows),
          a_(size_),
          t_(size_),
          z_(size_),
          v_(size_),
          inverse_(size_),
          cl_(size_),
          cu_(size_),
          da_(size_),
          d_score_(rows),
          next_cl_(size_),
          next_cu_(size_),
          next_da_(size_),
          next_d_score_(rows) {
        each([&](std::int64_t k, std::int64_t i) {
            // z − v = r with a z = t v = μ has one solution, written so that nothing cancels.
            const double r = s_[k] * score_[i] - p_[k], rh = r * h_[k];
            const double root = std::hypot(rh, 2 * mu);
            a_[k] = 2 * mu * h_[k] / (2 * mu + root + rh);
            t_[k] = 2 * mu * h_[k] / (2 * mu + root - rh);
            z_[k] = mu / a_[k];
            v_[k] = mu / t_[k];
        });
    }

    std::int64_t rows() const { return m_; }

    // d (rows) = Σ over a row's boxes of Θ⁻¹ = 1/(z/a + v/t): the weights of the normal matrix. Starts a
    // step.
    void weights(double* d) {
        std::fill_n(d, m_, 0.0);
        double sum = 0;
        each([&](std::int64_t k, std::int64_t i) {
            inverse_[k] = a_[k] * t_[k] / (z_[k] * t_[k] + v_[k] * a_[k]);
            d[i] += inverse_[k];
            sum += a_[k] * z_[k] + t_[k] * v_[k];
            next_cl_[k] = -a_[k] * z_[k];  // the predictor aims at complementarity zero
            next_cu_[k] = -t_[k] * v_[k];
        });
        mu_ = sum / double(2 * size_);
    }

    // q (rows) = Σ over a row's boxes of s(a + Θ⁻¹r) for the targets at hand: the right side of the normal
    // equations.
    void right_side(double* q) const {
        std::fill_n(q, m_, 0.0);
        each([&](std::int64_t k, std::int64_t i) { q[i] += s_[k] * (a_[k] + inverse_[k] * residual(k, i)); });
    }

    // Completes the direction for the change of the scores; returns the longest step ≤ 1 that stays inside.
    double complete(const double* d_score) {
        std::copy_n(d_score, m_, next_d_score_.begin());
        double most = 1;
        each([&](std::int64_t k, std::int64_t i) {
            const double da = inverse_[k] * (residual(k, i) - s_[k] * d_score[i]);
            next_da_[k] = da;
            const double dz = next_cl_[k] - z_[k] * da, dv = next_cu_[k] + v_[k] * da;  // times a, times t
            most = std::max({most, -da / a_[k], da / t_[k], -dz / (a_[k] * z_[k]), -dv / (t_[k] * v_[k])});
        });
        return 1 / most;
    }

    // The mean complementarity after a step of that length along the direction just completed.
    double complementarity(double step) const {
        double sum = 0;
        each([&](std::int64_t k, std::int64_t) {
            const double da = next_da_[k], dz = dz_of(k), dv = dv_of(k);
            sum += (a_[k] + step * da) * (z_[k] + step * dz) + (t_[k] - step * da) * (v_[k] + step * dv);
        });
        return sum / double(2 * size_);
    }

    // Mehrotra: aim at `target`, and allow for what the predictor just completed has left out.
    void correct(double target) {
        each([&](std::int64_t k, std::int64_t) {
            const double da = next_da_[k], dz = dz_of(k), dv = dv_of(k);
            next_cl_[k] = target - a_[k] * z_[k] - da * dz;
            next_cu_[k] = target - t_[k] * v_[k] + da * dv;
        });
    }

    // Accepts the direction just completed as the best so far.
    void keep() { cl_.swap(next_cl_), cu_.swap(next_cu_), da_.swap(next_da_), d_score_.swap(next_d_score_); }

    // Gondzio: targets that pull products which would end far from `target` after a step of length `reach`
    // towards it.
    void centre(double target, double reach) {
        const auto pull = [&](double product) {
            return std::max(std::clamp(product, 0.1 * target, 10 * target) - product, -10 * target);
        };
        each([&](std::int64_t k, std::int64_t) {
            const double da = da_[k], dz = (cl_[k] - z_[k] * da) / a_[k], dv = (cu_[k] + v_[k] * da) / t_[k];
            next_cl_[k] = cl_[k] + pull((a_[k] + reach * da) * (z_[k] + reach * dz));
            next_cu_[k] = cu_[k] + pull((t_[k] - reach * da) * (v_[k] + reach * dv));
        });
    }

    // Takes a step along the direction kept.
    void move(double step) {
        each([&](std::int64_t k, std::int64_t) {
            const double da = da_[k], dz = (cl_[k] - z_[k] * da) / a_[k], dv = (cu_[k] + v_[k] * da) / t_[k];
            a_[k] += step * da;
            t_[k] -= step * da;
            z_[k] += step * dz;
            v_[k] += step * dv;
        });
        for (std::int64_t i = 0; i < m_; ++i) score_[i] += step * d_score_[i];
    }

    double mu() const { return mu_; }
    // Σ over a row's boxes of s a.
    void signed_sums(double* u) const {
        std::fill_n(u, m_, 0.0);
        each([&](std::int64_t k, std::int64_t i) { u[i] += s_[k] * a_[k]; });
    }
    // Σ h (p − s score)₊: the losses at the current scores.
    double loss() const {
        double sum = 0;
        each(
            [&](std::int64_t k, std::int64_t i) { sum += h_[k] * std::max(0.0, p_[k] - s_[k] * score_[i]); });
        return sum;
    }

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
    }
    std::int64_t state_size() const { return 4 * size_ + m_; }

 private:
    // f(box, row) for every box; the boxes of one kind are consecutive.
    template <class F>
    void each(F&& f) const {
        for (std::int64_t b = 0; b < boxes_; ++b)
            for (std::int64_t i = 0; i < m_; ++i) f(b * m_ + i, i);
    }
    double residual(std::int64_t k, std::int64_t i) const {
        return p_[k] + z_[k] - v_[k] - s_[k] * score_[i] + next_cl_[k] / a_[k] - next_cu_[k] / t_[k];
    }
    double dz_of(std::int64_t k) const { return (next_cl_[k] - z_[k] * next_da_[k]) / a_[k]; }
    double dv_of(std::int64_t k) const { return (next_cu_[k] + v_[k] * next_da_[k]) / t_[k]; }

    std::int64_t boxes_, m_, size_;
    std::vector<double> h_, s_, p_, score_;
    std::vector<double> a_, t_, z_, v_, inverse_;
    std::vector<double> cl_, cu_, da_, d_score_;                      // the best direction so far
    std::vector<double> next_cl_, next_cu_, next_da_, next_d_score_;  // the one being made
    double mu_ = 0;
};

}  // namespace pegasos
