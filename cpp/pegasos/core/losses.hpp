// One struct a loss, its formula right above it. z is the score, y the target (±1 or a real number).
//
//   value(z, y)             ℓ(z)
//   slope(z, y)             g = −ℓ′(z): minus a subgradient; the choice at a kink is written beside each loss
//   curvature(z, y)         ℓ″(z) where it exists, else 0
//   conjugate(u, y)         −ℓ*(−u), the loss's part of the dual objective
//   lower(y), upper(y)      the domain of u
//   dual_step(u0, z, y, q)  the maximiser over u of  −ℓ*(−u) − z(u − u0) − (q/2)(u − u0)²,  q > 0
//
// A row of weight c uses the same formulas: its dual variable is c·u with u in the unit domain, and q is
// multiplied by c.
//
// Some solvers need more of a loss, and ask whether it has it:
//
//   drift(u, z, y)          how far the score has moved since a step of its own left it on a kink
//   piecewise()             ℓ as a maximum of (y − z)u − ε|u|: Newton's method on envelopes, linear/envelope.hpp
//   margin_shape()          ℓ as a maximum of a (1 − yz) − (bend/2) a²: visits in single precision,
//                           linear/margin_lanes.hpp
//
// Parameters have no defaults here: those are in src/pegasos/losses/__init__.py.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

namespace pegasos {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline double soft_threshold(double t, double k) { return t > k ? t - k : t < -k ? t + k : 0.0; }

// Squared distances that scores have moved, and their number.
struct Drift {
    double squares = 0, count = 0;
    void operator+=(const Drift& other) { squares += other.squares, count += other.count; }
};

// ℓ(z) = max over lo ≤ u ≤ hi of (y − z)u − ε|u|, where by_sign means lo = min(0, y), hi = max(0, y), ε = 0.
struct Piecewise {
    bool by_sign;
    double lo, hi, epsilon;
};

// ℓ(z) = max over 0 ≤ a ≤ most of a (1 − yz) − (bend/2) a², u = ya.
struct MarginShape {
    float bend, most;
};
template <class Loss>
concept MarginShaped = requires(const Loss& loss) { loss.margin_shape(); };

// Margin losses are functions of the margin yz, with dual variable a = y u; these are their shared borders.
template <class Loss>
struct MarginLoss {
    double lower(double y) const { return y > 0 ? self().least() : -self().most(); }
    double upper(double y) const { return y > 0 ? self().most() : -self().least(); }
    double value(double z, double y) const { return self().at(y * z); }
    double slope(double z, double y) const { return y * self().fall(y * z); }
    double curvature(double z, double y) const { return self().bend(y * z); }
    double conjugate(double u, double y) const { return self().dual(y * u); }
    double dual_step(double u0, double z, double y, double q) const {
        return y * self().step(y * u0, y * z, q);
    }
    double least() const { return 0.0; }
    double most() const { return 1.0; }

 private:
    const Loss& self() const { return static_cast<const Loss&>(*this); }
};

// ℓ = max(0, 1 − yz);  −ℓ*(−u) = a on [0, 1].  At yz = 1 the slope is 0.
struct Hinge : MarginLoss<Hinge> {
    double at(double s) const { return std::max(0.0, 1 - s); }
    double fall(double s) const { return s < 1 ? 1.0 : 0.0; }
    double bend(double) const { return 0.0; }
    double dual(double a) const { return a; }
    double step(double a0, double s, double q) const { return std::clamp(a0 + (1 - s) / q, 0.0, 1.0); }
    // A step that ends between the bounds leaves the score on the kink; this is how far it has gone since.
    Drift drift(double u, double z, double y) const {
        const double a = y * u;
        return a > 0 && a < 1 ? Drift{(1 - y * z) * (1 - y * z), 1} : Drift{};
    }
    Piecewise piecewise() const { return {true, 0, 0, 0}; }
    MarginShape margin_shape() const { return {0, 1}; }
};

// ℓ = max(0, 1 − yz)²;  −ℓ*(−u) = a − a²/4 on a ≥ 0.
struct SquaredHinge : MarginLoss<SquaredHinge> {
    double at(double s) const { return s < 1 ? (1 - s) * (1 - s) : 0.0; }
    double fall(double s) const { return s < 1 ? 2 * (1 - s) : 0.0; }
    double bend(double s) const { return s < 1 ? 2.0 : 0.0; }
    double dual(double a) const { return a - a * a / 4; }
    double step(double a0, double s, double q) const {
        return std::max(0.0, a0 + (1 - s - a0 / 2) / (q + 0.5));
    }
    double most() const { return infinity; }
    MarginShape margin_shape() const { return {0.5f, std::numeric_limits<float>::infinity()}; }
};

// ℓ = 0 for yz ≥ 1,  1 − yz − γ/2 for yz ≤ 1 − γ,  (1 − yz)²/(2γ) between;  −ℓ*(−u) = a − γa²/2 on [0, 1].
struct SmoothedHinge : MarginLoss<SmoothedHinge> {
    double gamma;
    double at(double s) const {
        return s >= 1 ? 0.0 : s <= 1 - gamma ? 1 - s - gamma / 2 : (1 - s) * (1 - s) / (2 * gamma);
    }
    double fall(double s) const { return std::clamp((1 - s) / gamma, 0.0, 1.0); }
    double bend(double s) const { return s < 1 && s > 1 - gamma ? 1 / gamma : 0.0; }
    double dual(double a) const { return a - gamma * a * a / 2; }
    double step(double a0, double s, double q) const {
        return std::clamp(a0 + (1 - s - gamma * a0) / (q + gamma), 0.0, 1.0);
    }
    MarginShape margin_shape() const { return {float(gamma), 1}; }
};

// ℓ = log(1 + e^{−yz});  −ℓ*(−u) = −a ln a − (1 − a) ln(1 − a) on [0, 1].
struct Log : MarginLoss<Log> {
    static double sigmoid(double s) {  // 1/(1 + e^s)
        return s > 0 ? std::exp(-s) / (1 + std::exp(-s)) : 1 / (1 + std::exp(s));
    }
    double at(double s) const { return s > 0 ? std::log1p(std::exp(-s)) : std::log1p(std::exp(s)) - s; }
    double fall(double s) const { return sigmoid(s); }
    double bend(double s) const {
        const double p = sigmoid(s);
        return p * (1 - p);
    }
    double dual(double a) const {
        return (a > 0 ? -a * std::log(a) : 0.0) + (a < 1 ? -(1 - a) * std::log1p(-a) : 0.0);
    }
    // The new margin t solves t = s + q(a(t) − a0), a(t) = 1/(1 + e^t). F(t) = t − s − q(a(t) − a0)
    // increases, and its root lies between the values of a(t) = 0 and 1, so a bracketed Newton iteration
    // cannot leave.
    double step(double a0, double s, double q) const {
        double lo = s - q * a0, hi = s + q * (1 - a0);
        double t = std::clamp(s, lo, hi);
        for (int it = 0; it < 60; ++it) {
            const double a = sigmoid(t), F = t - s - q * (a - a0);
            (F > 0 ? hi : lo) = t;
            double next = t - F / (1 + q * a * (1 - a));
            if (!(next > lo && next < hi)) next = 0.5 * (lo + hi);
            if (std::abs(next - t) <= 1e-15 * (1 + std::abs(t))) {
                t = next;
                break;
            }
            t = next;
        }
        return sigmoid(t);
    }
};

// ℓ = max(0, |y − z| − ε);  −ℓ*(−u) = yu − ε|u| on [−1, 1].  At |y − z| = ε the slope is 0.
struct EpsilonInsensitive {
    double epsilon;
    double value(double z, double y) const { return std::max(0.0, std::abs(y - z) - epsilon); }
    double slope(double z, double y) const { return y - z > epsilon ? 1.0 : z - y > epsilon ? -1.0 : 0.0; }
    double curvature(double, double) const { return 0.0; }
    double conjugate(double u, double y) const { return y * u - epsilon * std::abs(u); }
    double lower(double) const { return -1.0; }
    double upper(double) const { return 1.0; }
    double dual_step(double u0, double z, double y, double q) const {
        return std::clamp(soft_threshold(u0 + (y - z) / q, epsilon / q), -1.0, 1.0);
    }
    Piecewise piecewise() const { return {false, -1, 1, epsilon}; }
};

// ℓ = max(0, |y − z| − ε)²;  −ℓ*(−u) = yu − ε|u| − u²/4 on R.
struct SquaredEpsilonInsensitive {
    double epsilon;
    double value(double z, double y) const {
        const double r = std::max(0.0, std::abs(y - z) - epsilon);
        return r * r;
    }
    double slope(double z, double y) const { return 2 * soft_threshold(y - z, epsilon); }
    double curvature(double z, double y) const { return std::abs(y - z) > epsilon ? 2.0 : 0.0; }
    double conjugate(double u, double y) const { return y * u - epsilon * std::abs(u) - u * u / 4; }
    double lower(double) const { return -infinity; }
    double upper(double) const { return infinity; }
    double dual_step(double u0, double z, double y, double q) const {
        return soft_threshold((q * u0 + y - z) / (q + 0.5), epsilon / (q + 0.5));
    }
};

// ℓ = (y − z)²/2;  −ℓ*(−u) = yu − u²/2 on R.
struct Squared {
    double value(double z, double y) const { return 0.5 * (y - z) * (y - z); }
    double slope(double z, double y) const { return y - z; }
    double curvature(double, double) const { return 1.0; }
    double conjugate(double u, double y) const { return y * u - u * u / 2; }
    double lower(double) const { return -infinity; }
    double upper(double) const { return infinity; }
    double dual_step(double u0, double z, double y, double q) const { return u0 + (y - z - u0) / (q + 1); }
};

// ℓ = r²/2 for |r| ≤ δ, δ|r| − δ²/2 beyond, r = y − z;  −ℓ*(−u) = yu − u²/2 on [−δ, δ].
struct Huber {
    double delta;
    double value(double z, double y) const {
        const double r = std::abs(y - z);
        return r <= delta ? r * r / 2 : delta * r - delta * delta / 2;
    }
    double slope(double z, double y) const { return std::clamp(y - z, -delta, delta); }
    double curvature(double z, double y) const { return std::abs(y - z) < delta ? 1.0 : 0.0; }
    double conjugate(double u, double y) const { return y * u - u * u / 2; }
    double lower(double) const { return -delta; }
    double upper(double) const { return delta; }
    double dual_step(double u0, double z, double y, double q) const {
        return std::clamp(u0 + (y - z - u0) / (q + 1), -delta, delta);
    }
};

// ℓ = τ max(0, r) + (1 − τ) max(0, −r), r = y − z;  −ℓ*(−u) = yu on [τ − 1, τ].  At r = 0 the slope is 0.
struct Quantile {
    double tau;
    double value(double z, double y) const { return y > z ? tau * (y - z) : (1 - tau) * (z - y); }
    double slope(double z, double y) const { return y > z ? tau : y < z ? tau - 1 : 0.0; }
    double curvature(double, double) const { return 0.0; }
    double conjugate(double u, double y) const { return y * u; }
    double lower(double) const { return tau - 1; }
    double upper(double) const { return tau; }
    double dual_step(double u0, double z, double y, double q) const {
        return std::clamp(u0 + (y - z) / q, tau - 1, tau);
    }
    Piecewise piecewise() const { return {false, tau - 1, tau, 0}; }
};

using AnyLoss = std::variant<Hinge, SquaredHinge, SmoothedHinge, Log, EpsilonInsensitive,
                             SquaredEpsilonInsensitive, Squared, Huber, Quantile>;

}  // namespace pegasos
