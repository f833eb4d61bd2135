// Losses of all K scores of a row at once. Dual variables are kept as u = e_y − α with α in the simplex, so
// that W = (1/(λM)) Σ c_i u_i x_iᵀ as for the scalar losses.
//
//   value(s, y), slopes(s, y, g)     ℓ(s) and g = −∇ℓ(s)
//   conjugate(u, y)                  the loss's part of the dual objective
//   dual_step(u0, s, y, q, u, work)  the maximiser of  conjugate(u) − ⟨s, u − u0⟩ − (q/2)‖u − u0‖²,  q > 0
//   settled(s, u, y, slack)          u stays optimal while every score moves by at most slack; a loss that cannot
//                                    tell leaves it out
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

namespace pegasos {

// ℓ = max_r δ(y, r) + s_r − s_y, the cost-sensitive multiclass loss (2011 paper, Eq. 20; Crammer & Singer for
// δ = 0/1). δ(y, y) = 0, δ ≥ 0. The maximiser is the true label where it ties, then the lowest index.
// conjugate = ⟨α, δ(y, ·)⟩.
struct CrammerSinger {
    int classes;
    std::vector<double> cost;  // classes × classes, row = true label

    const double* costs(std::int32_t y) const { return cost.data() + std::int64_t(y) * classes; }

    int worst(const double* s, std::int32_t y) const {
        const double* d = costs(y);
        int best = y;
        double most = s[y];
        for (int r = 0; r < classes; ++r)
            if (d[r] + s[r] > most) most = d[r] + s[r], best = r;
        return best;
    }
    double value(const double* s, std::int32_t y) const {
        const int r = worst(s, y);
        return costs(y)[r] + s[r] - s[y];
    }
    void slopes(const double* s, std::int32_t y, double* g) const {
        std::fill_n(g, classes, 0.0);
        const int r = worst(s, y);
        if (r != y) g[y] = 1, g[r] = -1;
    }
    double conjugate(const double* u, std::int32_t y) const {
        const double* d = costs(y);
        double total = 0;
        for (int r = 0; r < classes; ++r)
            if (r != y) total -= u[r] * d[r];
        return total;
    }
    // α ← projection of α + (δ + s)/q onto the simplex.
    void dual_step(const double* u0, const double* s, std::int32_t y, double q, double* u,
                   std::vector<double>& work) const {
        const double* d = costs(y);
        work.resize(2 * classes);
        double *p = work.data(), *sorted = p + classes;
        for (int r = 0; r < classes; ++r) p[r] = (r == y) - u0[r] + (d[r] + s[r]) / q;
        std::copy_n(p, classes, sorted);
        std::sort(sorted, sorted + classes, std::greater<>());
        double sum = 0, level = 0;
        for (int r = 0; r < classes; ++r) {
            sum += sorted[r];
            const double candidate = (sum - 1) / (r + 1);
            if (sorted[r] > candidate) level = candidate;
        }
        for (int r = 0; r < classes; ++r) u[r] = (r == y) - std::max(0.0, p[r] - level);
    }
    // Moving every score by slack changes a difference of two by at most 2 slack.
    bool settled(const double* s, const double* u, std::int32_t y, double slack) const {
        for (int r = 0; r < classes; ++r)
            if (u[r] != 0 || (r != y && costs(y)[r] + s[r] - s[y] + 2 * slack >= 0)) return false;
        return true;
    }
};

// ℓ = log Σ_r e^{s_r − s_y} (2011 paper, Eq. 21);  g = e_y − softmax(s);  conjugate = entropy(α).
struct Multinomial {
    int classes;

    double value(const double* s, std::int32_t y) const {
        const double top = *std::max_element(s, s + classes);
        double sum = 0;
        for (int r = 0; r < classes; ++r) sum += std::exp(s[r] - top);
        return std::log(sum) + top - s[y];
    }
    void slopes(const double* s, std::int32_t y, double* g) const {
        const double top = *std::max_element(s, s + classes);
        double sum = 0;
        for (int r = 0; r < classes; ++r) sum += g[r] = std::exp(s[r] - top);
        for (int r = 0; r < classes; ++r) g[r] = (r == y) - g[r] / sum;
    }
    double conjugate(const double* u, std::int32_t y) const {
        double total = 0;
        for (int r = 0; r < classes; ++r) {
            const double a = (r == y) - u[r];
            if (a > 0) total -= a * std::log(a);
        }
        return total;
    }
    // Stationarity is t_r + q e^{t_r} = ρ_r − μ with t = ln α, ρ = s + q α0; μ makes Σα = 1. Σα falls with μ,
    // so μ is found by a bracketed Newton iteration; given μ, each t_r by Newton on an increasing convex
    // function.
    void dual_step(const double* u0, const double* s, std::int32_t y, double q, double* u,
                   std::vector<double>& work) const {
        work.resize(2 * classes);
        double *rho = work.data(), *t = rho + classes;
        double top = -1e300;
        for (int r = 0; r < classes; ++r) {
            rho[r] = s[r] + q * ((r == y) - u0[r]);
            top = std::max(top, rho[r]);
        }
        // All α ≤ 1/K at the upper end, the largest α ≥ 1 at the lower end.
        double lo = top - q, hi = top + std::log(double(classes)), mu = 0.5 * (lo + hi);
        for (int it = 0; it < 100; ++it) {
            double sum = 0, fall = 0;
            for (int r = 0; r < classes; ++r) {
                const double c = rho[r] - mu;
                // F(v) = v + q e^v − c; from any point at or above its root Newton descends to it without
                // overshooting.
                double v = c > 0 ? std::min(c, std::max(0.0, std::log(c / q))) : c;
                for (int inner = 0; inner < 60; ++inner) {
                    const double e = q * std::exp(v), step = (v + e - c) / (1 + e);
                    v -= step;
                    if (std::abs(step) <= 1e-15 * (1 + std::abs(v))) break;
                }
                t[r] = v;
                const double a = std::exp(v);
                sum += a;
                fall += a / (1 + q * a);
            }
            (sum > 1 ? lo : hi) = mu;
            if (std::abs(sum - 1) <= 1e-15 * classes) break;
            double next = mu + (sum - 1) / fall;
            if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
            if (next == mu) break;
            mu = next;
        }
        double sum = 0;
        for (int r = 0; r < classes; ++r) sum += t[r] = std::exp(t[r]);
        for (int r = 0; r < classes; ++r) u[r] = (r == y) - t[r] / sum;
    }
};

using AnyJointLoss = std::variant<CrammerSinger, Multinomial>;

}  // namespace pegasos
