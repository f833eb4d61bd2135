// Stochastic steps on a chain, one sequence or a mini-batch at a time.
//
//   min_w (λ/2)‖w‖² + (1/M) Σ c_i ℓ_i(w),   ψ_i(y) = φ(x_i, y_i) − φ(x_i, y)
//   hinge  ℓ_i(w) = max_y [cost(y_i, y) − ⟨w, ψ_i(y)⟩]      log  ℓ_i(w) = log Σ_y exp(−⟨w, ψ_i(y)⟩)
//
// Given: a corpus, λ.  Result: the last iterate or a mean of iterates; for the hinge loss also the labellings that were
// decoded, whose mean over whole epochs is a dual point (the window certificate).
//
//   Pegasos              w_t = V/(λ(t + t0)), V += c_i ψ_i(ŷ_i)     Shalev-Shwartz, Singer, Srebro & Cotter 2011, Example 5
//   perceptron           w = V, V += ψ_i(ŷ_i), ŷ_i decoded without cost      Collins 2002
//   passive-aggressive   w = V, V += min(C, ℓ_i/‖ψ_i‖²) ψ_i(ŷ_i)      Crammer et al. 2006 (PA-I)
//
// Scaling w would touch all of it, so that scores are those of V and costs are divided by the scale. The mean of iterates
// needs no pass either: with C_t = Σ_{j≤t} scale_j it is C_T V − U, U = Σ_t C_t (added at t).
#pragma once
#include <optional>

#include "pegasos/core/batches.hpp"
#include "pegasos/structured/chain_passes.hpp"

namespace pegasos {

enum class ChainRule { pegasos, perceptron, passive_aggressive };
enum class ChainLoss { hinge, log };
enum class ChainMean {
    none,
    all,
    window
};  // the mean of all iterates, or of those of the window, each times t + t0

struct ChainStepOptions {
    ChainRule rule;
    ChainLoss loss;
    ChainMean mean;
    double lam, t0;         // t0 in sequences
    double aggressiveness;  // PA's C
    double radius;          // project onto ‖w‖ ≤ radius; 0: never
    std::int64_t batch_size;
    Sampling sampling;
    std::uint64_t seed;
};

// The labellings that were decoded, where they were not right; `visits` of every sequence, right or wrong.
struct Decoded {
    std::vector<std::int64_t> rows{};
    std::vector<Label> labels{};
    std::vector<double> visits{};
};

// What a run is made of beside V, U and the labellings: everything from which it goes on to the same bits.
struct ChainProgress {
    std::int64_t epoch = 0, at = 0;
    double shrunk = 1.0;   // by projections
    double squares = 0.0;  // ‖V‖², where it is projected
    double carried = 0.0;  // C_t
    double total = 0.0;    // what the mean is divided by
};

template <class Real>
class ChainSteps {
 public:
    ChainSteps(const Chain& chain, const double* weight, const ChainStepOptions& options);

    // About so many tokens, never past the end of an epoch, and never less than a mini-batch.
    void advance(std::int64_t tokens);
    // A batch that runs over the end of an epoch counts as the end, until the next one begins.
    double epochs() const { return double(std::min(visits(), (at_.epoch + 1) * n_)) / double(n_); }
    bool epoch_ended() const { return at_.at == std::int64_t(order_.size()); }
    void begin_window();
    bool has_mean() const { return o_.mean != ChainMean::none && at_.total > 0; }
    void weights(bool mean, double* W) const;  // rows × labels
    const Decoded& decoded() const { return decoded_; }

    ChainProgress progress() const { return at_; }
    const LaneBuffer<Real>& sums() const { return V_; }
    const LaneBuffer<Real>& lag() const { return U_; }
    void restore(const ChainProgress&, const double* V, const double* U, Decoded decoded);

 private:
    std::int64_t visits() const { return batches_.before(at_.epoch) + at_.at; }
    double omega() const { return o_.t0 + double(visits()); }
    double scale() const;
    void look_at(std::int64_t i, std::int64_t next, Label* y, Real* marginals);
    void remember(std::int64_t i, const Label* y);
    void step(std::int64_t i, const Label* y, const Real* marginals);
    double passive_step(std::int64_t i, const Label* y);
    void add(std::int64_t place, double amount);
    void finish_step();
    void shrink();

    const Chain& chain_;
    const double* weight_;  // of each sequence, with mean 1; null: all are 1
    ChainStepOptions o_;
    std::int64_t n_;
    Batches batches_;
    double cost_scale_ = 1.0;  // the largest cost
    ChainProgress at_;
    LaneBuffer<Real> V_, U_, difference_;
    Decoded decoded_;
    ChainSpace<Real> space_;
    LaneBuffer<Real> T_, rows_, columns_, pairs_, marginals_;
    Buffer exact_pairs_;
    std::vector<Label> labels_;
    std::vector<std::int64_t> order_;
};

}  // namespace pegasos
