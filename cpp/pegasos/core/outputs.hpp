// What a row asks of the weights: one score (Single), a score for each of several independent classes
// (OneVsRest), or all class scores together (Joint). A solver is written once against these:
//
//   lanes()                          how many interleaved weight vectors there are
//   parts()                          how many independent problems they make up
//   part(l)                          the one that lane l belongs to
//   slopes(i, z, g)                  g = −∇ℓ_i at the scores z (0 in lanes that only pad)
//   step(i, z, q, u)                 replaces the dual variables u by the maximiser of core/losses.hpp
//   measure(i, z, u, c, value, gap)  adds c times loss and Fenchel gap  ℓ(z) + ℓ*(−u) + ⟨u, z⟩ ≥ 0  of each
//                                    part; returns the largest of the row's gaps
//   drift(i, z, u)                   how far scores have moved since the row was left, if the loss can tell
//   settled(i, z, u, slack)          u stays optimal while every score moves by at most slack
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "pegasos/core/joint_losses.hpp"
#include "pegasos/core/losses.hpp"
#include "pegasos/core/rows.hpp"

namespace pegasos {

template <class Loss>
concept Drifting = requires(const Loss& loss) { loss.drift(0.0, 0.0, 0.0); };
template <class Loss>
concept Settling = requires(const Loss& loss) { loss.settled(nullptr, nullptr, 0, 0.0); };

template <class Loss>
struct Single {
    Loss loss;
    const double* target;

    static constexpr bool joint = false;
    static constexpr int lanes() { return 1; }
    static constexpr int parts() { return 1; }
    static constexpr int part(int) { return 0; }

    double y(int64_t i, int) const { return target[i]; }
    const void* place(int64_t i) const { return target + i; }
    void slopes(int64_t i, const double* z, double* g) const { g[0] = loss.slope(z[0], target[i]); }
    void step(int64_t i, const double* z, double q, double* u) {
        u[0] = q > 0 ? loss.dual_step(u[0], z[0], target[i], q) : loss.slope(z[0], target[i]);
    }
    double measure(int64_t i, const double* z, const double* u, double c, double* value, double* gap) const {
        const double v = loss.value(z[0], target[i]);
        const double mine = v - loss.conjugate(u[0], target[i]) + u[0] * z[0];
        value[0] += c * v;
        gap[0] += c * mine;
        return mine;
    }
    Drift drift(int64_t i, const double* z, const double* u) const
        requires Drifting<Loss>
    {
        return loss.drift(u[0], z[0], target[i]);
    }
    bool settled(int64_t i, const double* z, const double* u, double slack) const {
        return loss.slope(z[0] - slack, target[i]) == u[0] && loss.slope(z[0] + slack, target[i]) == u[0];
    }
};

template <class Loss>
struct OneVsRest {
    Loss loss;
    const std::int32_t* label;
    std::int32_t first;  // lane l is class first + l
    int count;           // classes here; the lanes beyond only pad

    static constexpr bool joint = false;
    int lanes() const { return (count + simd::lane_block - 1) / simd::lane_block * simd::lane_block; }
    int parts() const { return count; }
    static int part(int l) { return l; }

    double y(int64_t i, int l) const { return label[i] == first + l ? 1.0 : -1.0; }
    const void* place(int64_t i) const { return label + i; }
    void slopes(int64_t i, const double* z, double* g) const {
        for (int l = 0; l < count; ++l) g[l] = loss.slope(z[l], y(i, l));
        std::fill(g + count, g + lanes(), 0.0);
    }
    void step(int64_t i, const double* z, double q, double* u) {
        for (int l = 0; l < count; ++l)
            u[l] = q > 0 ? loss.dual_step(u[l], z[l], y(i, l), q) : loss.slope(z[l], y(i, l));
    }
    double measure(int64_t i, const double* z, const double* u, double c, double* value, double* gap) const {
        double most = 0;
        for (int l = 0; l < count; ++l) {
            const double v = loss.value(z[l], y(i, l));
            const double mine = v - loss.conjugate(u[l], y(i, l)) + u[l] * z[l];
            value[l] += c * v;
            gap[l] += c * mine;
            most = std::max(most, mine);
        }
        return most;
    }
    Drift drift(int64_t i, const double* z, const double* u) const
        requires Drifting<Loss>
    {
        Drift sum;
        for (int l = 0; l < count; ++l) sum += loss.drift(u[l], z[l], y(i, l));
        return sum;
    }
    bool settled(int64_t i, const double* z, const double* u, double slack) const {
        for (int l = 0; l < count; ++l)
            if (loss.slope(z[l] - slack, y(i, l)) != u[l] || loss.slope(z[l] + slack, y(i, l)) != u[l])
                return false;
        return true;
    }
};

template <class Loss>
struct Joint {
    Loss loss;
    const std::int32_t* label;
    std::vector<double> work{}, next{};

    static constexpr bool joint = true;
    int lanes() const { return (loss.classes + simd::lane_block - 1) / simd::lane_block * simd::lane_block; }
    static constexpr int parts() { return 1; }
    static constexpr int part(int) { return 0; }

    const void* place(int64_t i) const { return label + i; }
    void slopes(int64_t i, const double* z, double* g) const {
        loss.slopes(z, label[i], g);
        std::fill(g + loss.classes, g + lanes(), 0.0);
    }
    void step(int64_t i, const double* z, double q, double* u) {
        if (!(q > 0)) return loss.slopes(z, label[i], u);
        next.resize(loss.classes);
        loss.dual_step(u, z, label[i], q, next.data(), work);
        std::copy(next.begin(), next.end(), u);
    }
    double measure(int64_t i, const double* z, const double* u, double c, double* value, double* gap) const {
        const double v = loss.value(z, label[i]);
        double mine = v - loss.conjugate(u, label[i]);
        for (int l = 0; l < loss.classes; ++l) mine += u[l] * z[l];
        value[0] += c * v;
        gap[0] += c * mine;
        return mine;
    }
    bool settled(int64_t i, const double* z, const double* u, double slack) const {
        if constexpr (Settling<Loss>) return loss.settled(z, u, label[i], slack);
        return false;
    }
};

}  // namespace pegasos
