// The interior point method for one part of a problem, a predictor-corrector step at a time: the row-wise
// arithmetic of box_path.hpp, joined to the products with the rows and the normal equations
//
//   (R + X̃ᵀΘ⁻¹X̃) Δβ = X̃ᵀ(s∘(a + Θ⁻¹r)) − Rβ
//
// of src/pegasos/_interior_point.py, with Mehrotra's predictor and corrector (1992) and Gondzio's centrality
// corrector (1996).
#pragma once
#include <cstdint>
#include <vector>

#include "pegasos/linear/box_path.hpp"
#include "pegasos/linear/normal_solver.hpp"
#include "pegasos/linear/passes.hpp"

namespace pegasos {

// The rows x̃ = (x, 1) that a method works on, all or those of `index`; without a bias x̃ = x.
struct Design {
    AnyRows rows;
    std::vector<std::int64_t> index;  // empty: all
    std::int64_t count, columns;
    bool bias;
    int threads;

    std::int64_t width() const { return columns + bias; }
    Subset subset() const { return {index.empty() ? nullptr : index.data(), count}; }
    // score (rows) = X̃β
    void forward(const double* beta, double* score) const;
    // sum (width) = X̃ᵀv
    void adjoint(const double* v, double* sum) const;
    // The normal matrix R + X̃ᵀ diag(d) X̃ (width × width), d ≥ 0; R is diagonal.
    Buffer normal_matrix(const double* d, const double* R) const;
};

class BoxSteps {
 public:
    // h, s, p: boxes × rows of the design. R, beta: its width. See BoxPath for `nearness`.
    BoxSteps(const Lapack& lapack, Design design, std::int64_t boxes, const double* h, const double* s,
             const double* p, const double* R, const double* beta, double nearness);

    // One step. False, and nothing has changed, if the normal equations have lost all precision.
    bool step();

    const Design& design() const { return design_; }
    const BoxPath& path() const { return path_; }
    const std::vector<double>& beta() const { return beta_; }
    // How far the last step went, of 1.
    double length() const { return length_; }
    std::int64_t steps() const { return steps_; }
    // ½βᵀRβ + Σ h (p − s score)₊
    double primal() const;
    // The gap as a share of that, and of what rounding errors of the scores can do to it: where the rows can
    // be fitted without loss, steps far below those make it worse.
    double relative_gap() const { return path_.gap() / (primal() + 1e-3 * path_.loss_at_zero()); }

    // u (rows) = Σ over a row's boxes of s a, for which X̃ᵀu = Rβ at the end of the path, and with more digits
    // than a has. There Θ⁻¹ is huge where 0 < a < h, and the Δa = Θ⁻¹(r − s∘Δscore) of such boxes is what is
    // left of numbers that cancel. What is missing of Rβ − X̃ᵀu is put right by those boxes, through normal
    // equations of a point on the path that keeps its digits.
    void duals(double* u) const;

    // Goes on from what a step changes: the path's state, β, and the length and number of steps.
    void restore(const double* path, const double* beta, double length, std::int64_t steps);

 private:
    // Completes the path's direction for its targets at hand, and Δβ with it; the longest step that stays
    // inside.
    double direction(const NormalSolver& solver, Buffer& d_beta);

    Lapack lapack_;
    Design design_;
    std::vector<double> R_, beta_;
    BoxPath path_;
    double length_ = 1;
    std::int64_t steps_ = 0;
    Buffer of_rows_;  // a number for each row, on its way to or from the path
};

}  // namespace pegasos
