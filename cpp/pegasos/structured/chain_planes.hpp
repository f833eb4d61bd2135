// Block coordinate Frank–Wolfe on a chain, fully corrective in each block (Lacoste-Julien et al. 2013; planes with exact
// block steps as in Shah, Kolmogorov & Lampert 2015).
//
//   max_α (1/M) Σ_i c_i Σ_p α_ip cost_ip − (λ/2)‖w(α)‖²,   w(α) = (1/(λM)) Σ_i c_i Σ_p α_ip ψ_ip,   Σ_p α_ip ≤ 1
//
// the dual of the hinge loss, over labellings ("planes") that were decoded so far; what a sequence's α lack of 1 is its
// right labelling, ψ = 0. A visit decodes a sequence at the current w, adds the labelling if it is new, and maximises the
// dual over the planes of that sequence, by steps that move weight from the worst plane to the best. With
// h_p = cost_p − ⟨w, ψ_p⟩ the sequence's own gap is h(decoded) − Σ α_p h_p.
#pragma once
#include <utility>

#include "pegasos/core/sampling.hpp"
#include "pegasos/structured/chain_passes.hpp"

namespace pegasos {

struct ChainPlaneOptions {
    double lam, total;     // λ and M
    double unused_passes;  // a plane without weight for so long is dropped
    std::uint64_t seed;
};

// All planes, sequence by sequence.
struct PlaneTable {
    std::vector<std::int64_t> rows{};
    std::vector<Label> labels{};
    std::vector<double> alpha{}, unused{};
};

class ChainPlanes {
 public:
    // `weight`: c_i; null: all are 1.
    ChainPlanes(const Chain& chain, const double* weight, const ChainPlaneOptions& options);

    // Some visits, until so many tokens have been looked at or the pass ends; `cached`: of planes that are there, without
    // decoding.
    void advance(std::int64_t tokens, bool cached);
    bool pass_ended() const { return at_ == n_; }
    // Of the pass so far, or of the last one: Σ_i (c_i/M) of each sequence's gap and of its loss, as they were when it
    // was visited.
    double gap() const { return gap_; }
    double loss() const { return loss_; }
    // How many visits a pass has had, and how many passes of either kind there were.
    std::int64_t at() const { return at_; }
    std::int64_t passes() const { return passes_; }

    void weights(double* W) const;      // rows × labels
    void set_weights(const double* W);  // those of the planes: what rounding has added is taken away
    void set_double();                  // from now on in double precision
    bool is_double() const { return double_; }
    double squares() const;  // ‖w‖²

    PlaneTable table() const;
    // Planes of a dual point, added to those that are there; `unused` may be null. The weights stay as they are.
    void add_planes(const PlaneList&, const double* alpha, const double* unused);
    // Where a run that is gone on with was.
    void go_on(std::int64_t passes, std::int64_t at, double gap, double loss);

 private:
    struct Block {
        std::vector<Label> labels{};  // planes × tokens
        std::vector<double> alpha{}, cost{}, unused{}, gram{};
        std::int64_t size() const { return std::int64_t(alpha.size()); }
    };
    template <class Real>
    void visit(std::int64_t i, std::int64_t next, bool cached, Real* W);  // `next`: the one after it, or −1
    template <class Real>
    void scores_of(std::int64_t i, bool cached, const Real* W);
    template <class Real>
    void correct(std::int64_t i, double gap, Real* W, double* h);
    std::int64_t add_plane(std::int64_t i, const Label* y);
    void drop(std::int64_t i);
    double weight(std::int64_t i) const { return weight_ ? weight_[i] : 1.0; }
    template <class F>
    void each_local(std::int64_t i, const Label* y, F&& f);

    const Chain& chain_;
    const double* weight_;
    ChainPlaneOptions o_;
    std::int64_t n_;
    double cost_scale_;  // the largest cost
    std::vector<Block> blocks_;
    std::vector<std::int32_t> local_;  // the number of each attribute within its sequence
    std::int64_t most_local_ = 0;
    Buffer W_;              // in double precision
    LaneBuffer<float> Wf_;  // … or in single
    bool double_ = false;
    ChainSpace<float> single_;
    ChainSpace<double> exact_;
    Buffer difference_;  // ψ of a plane over the attributes of its sequence
    std::vector<Label> decoded_;
    std::vector<double> change_, h_;
    std::vector<std::pair<Label, double>> amounts_;  // of the labels of a token
    std::vector<std::int64_t> order_, touched_;
    std::int64_t passes_ = 0, at_ = 0;
    double gap_ = 0.0, loss_ = 0.0;
};

}  // namespace pegasos
