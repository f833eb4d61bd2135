// What a row asks of the weights: one score, a score for each of several independent classes (one-vs-rest), or
// all class scores together (joint). A solver's loop over the rows is written once against these:
//
//   slopes(i, z, g)                  g = −∇ℓ_i at the scores z (0 in lanes that only pad)
//   step(i, z, q, u)                 replaces the dual variables u by the maximiser of core/losses.hpp
//   measure(i, z, u, c, value, gap)  adds c times loss and Fenchel gap  ℓ(z) + ℓ*(−u) + ⟨u, z⟩ ≥ 0  of each
//                                    part; returns the largest of the row's gaps
//   drift(i, z, u)                   how far scores have moved since the row was left, if the loss can tell
//   settled(i, z, u, slack)          u stays optimal while every score moves by at most slack
//   place(i)                         the address of the row's target, for prefetching
//
// There are two of them. Single<Loss> is one score, compiled into the loop together with the loss: such a visit
// is over in some twenty nanoseconds. Output is everything else, called by pointer: a visit of eight lanes or
// more takes so long that the call does not show, and its loops are compiled once, and not once for each loss. What
// takes many rows at a call, or is called once in an epoch, is Output's alone, for one score as well.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "pegasos/core/joint_losses.hpp"
#include "pegasos/core/losses.hpp"
#include "pegasos/core/rows.hpp"

namespace pegasos {

template <class Loss>
concept Drifting = requires(const Loss& loss) { loss.drift(0.0, 0.0, 0.0); };
template <class Loss>
concept Settling = requires(const Loss& loss) { loss.settled(nullptr, nullptr, 0, 0.0); };

// The rows' weights in the objective (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i: c_i and M = Σ c_i.
struct Weights {
    const double* weight;  // null: all 1
    double total;
    double operator[](int64_t i) const { return weight ? weight[i] : 1.0; }
};

struct Targets {
    const double* value = nullptr;        // of one score
    const std::int32_t* label = nullptr;  // of several
    std::int32_t first = 0;               // one-vs-rest: lane l is class first + l
    int count = 1;                        // classes here
};

class Output {
 public:
    // Lanes are as many as outputs, which callers see, or more: those beyond only pad.
    Output(const Targets& t, int outputs_, bool joint_)
        : targets(t),
          outputs(outputs_),
          lanes(t.value ? 1 : (outputs + simd::lane_block - 1) / simd::lane_block * simd::lane_block),
          parts(joint_ ? 1 : outputs),
          joint(joint_) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    virtual ~Output() = default;

    const Targets targets;
    const int outputs, lanes, parts;  // parts: the independent problems that they make up
    const bool joint;
    static constexpr bool single = false;
    // The part that lane l belongs to; for lanes that pad, `parts` or more, or one to which they add nothing.
    int part(int l) const { return joint ? 0 : l; }
    const void* place(int64_t i) const { return targets.label + i; }

    virtual void slopes(int64_t i, const double* z, double* g) const = 0;
    virtual void step(int64_t i, const double* z, double q, double* u) = 0;
    virtual double measure(int64_t i, const double* z, const double* u, double c, double* value,
                           double* gap) const = 0;
    virtual Drift drift(int64_t i, const double* z, const double* u) const = 0;
    virtual bool settled(int64_t i, const double* z, const double* u, double slack) const = 0;

    // settled, for `count` rows from `first` on with `outputs` numbers each in z and u.
    virtual void settled_rows(int64_t first, int64_t count, const double* z, const double* u, double slack,
                              char* settled) const = 0;
    // The bias that is best for k rows alone, and slopes that add up to zero (2011 paper, Eq. 24). Where the
    // best bias lies on a kink, the slopes on its two sides are mixed: the indicator alone is no subgradient
    // there. Scores z include b, which is replaced; z and g have `lanes` numbers a row. Joint losses do nothing.
    virtual void balance(const int64_t* rows, int64_t k, const Weights& c, const double* z, double* b,
                         double* g) const = 0;
    // For visits in single precision (linear/margin_lanes.hpp), if the loss has one and the parts are classes.
    virtual std::optional<MarginShape> margin_shape() const = 0;
};
std::unique_ptr<Output> make_output(const AnyLoss&, const Targets&);
std::unique_ptr<Output> make_output(const AnyJointLoss&, const Targets&);

template <class Loss>
struct Single {
    Loss loss;
    const double* target;

    static constexpr bool single = true;
    static constexpr int parts = 1;
    static constexpr int part(int) { return 0; }

    double y(int64_t i) const { return target[i]; }
    const void* place(int64_t i) const { return target + i; }
    void slopes(int64_t i, const double* z, double* g) const { g[0] = loss.slope(z[0], target[i]); }
    void step(int64_t i, const double* z, double q, double* u) const {
        u[0] = q > 0 ? loss.dual_step(u[0], z[0], target[i], q) : loss.slope(z[0], target[i]);
    }
    double measure(int64_t i, const double* z, const double* u, double c, double* value, double* gap) const {
        const double v = loss.value(z[0], target[i]);
        const double mine = v - loss.conjugate(u[0], target[i]) + u[0] * z[0];
        value[0] += c * v;
        gap[0] += c * mine;
        return mine;
    }
    Drift drift(int64_t i, const double* z, const double* u) const {
        if constexpr (Drifting<Loss>)
            return loss.drift(u[0], z[0], target[i]);
        else
            return {};
    }
    bool settled(int64_t i, const double* z, const double* u, double slack) const {
        return loss.slope(z[0] - slack, target[i]) == u[0] && loss.slope(z[0] + slack, target[i]) == u[0];
    }
};

}  // namespace pegasos
