#include "pegasos/linear/box_steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace pegasos {

void Design::forward(const double* beta, double* score) const {
    const double none = 0;
    scores(rows, subset(), beta, bias ? beta + columns : &none, 1, score, threads);
}

void Design::adjoint(const double* v, double* sum) const {
    pegasos::adjoint(rows, subset(), v, 1, sum, threads);
    if (bias) sum[columns] = std::accumulate(v, v + count, 0.0);
}

Buffer Design::normal_matrix(const double* d, const double* R) const {
    const std::int64_t full = columns + 1, n = width();
    Buffer M(std::size_t(full * full));
    gram(rows, subset(), d, M.data(), threads);
    if (!bias)  // what is left out is the last column, and the last row
        for (std::int64_t j = 1; j < n; ++j) std::copy_n(M.data() + j * full, n, M.data() + j * n);
    for (std::int64_t j = 0; j < n; ++j) M[std::size_t(j * n + j)] += R[j];
    return M;
}

namespace {

// The relative gap down to which steps lose next to nothing to rounding.
constexpr double accurate_gap = 1e-7;

std::vector<double> scores_of(const Design& design, const double* beta) {
    std::vector<double> score(std::size_t(design.count));
    design.forward(beta, score.data());
    return score;
}

}  // namespace

BoxSteps::BoxSteps(const Lapack& lapack, Design design, std::int64_t boxes, const double* h, const double* s,
                   const double* p, const double* R, const double* beta, double nearness)
    : lapack_(lapack),
      design_(std::move(design)),
      R_(R, R + design_.width()),
      beta_(beta, beta + design_.width()),
      path_(boxes, design_.count, h, s, p, scores_of(design_, beta).data(), nearness),
      of_rows_(std::size_t(design_.count)) {}

double BoxSteps::direction(const NormalSolver& solver, Buffer& d_beta) {
    Buffer right(beta_.size());
    path_.right_side(of_rows_.data());
    design_.adjoint(of_rows_.data(), right.data());
    for (std::size_t j = 0; j < right.size(); ++j) right[j] -= R_[j] * beta_[j];
    solver.solve(right.data(), d_beta.data());
    design_.forward(d_beta.data(), of_rows_.data());
    path_.complete(of_rows_.data());
    return path_.reach();
}

bool BoxSteps::step() {
    path_.begin(of_rows_.data());
    const Buffer M = design_.normal_matrix(of_rows_.data(), R_.data());
    const NormalSolver solver(lapack_, M.data(), design_.width());
    if (!solver.good()) return false;

    Buffer d_beta(beta_.size()), other(beta_.size());
    const double mu = path_.mu(), predicted = direction(solver, d_beta);
    const double target = mu * std::pow(std::max(path_.mu_after(predicted) / mu, 1e-5), 3);
    path_.correct(target);
    double far = direction(solver, d_beta);
    if (!std::isfinite(far)) return false;
    path_.keep();
    if (far <= 0.9) {  // a centrality corrector: it costs two passes, a normal matrix many more
        path_.centre(target, std::min(1.0, 1.08 * far + 0.1));
        const double farther = direction(solver, other);
        if (farther >= far + 0.01) {
            far = farther;
            d_beta.swap(other);
            path_.keep();
        }
    }
    // Almost to the border: the nearer the closer the path is to its end, where it converges quadratically;
    // but rounding must not carry it across.
    length_ = std::clamp(1 - relative_gap(), 0.995, 1 - 1e-6) * far;
    path_.move(length_);
    for (std::size_t j = 0; j < beta_.size(); ++j) beta_[j] += length_ * d_beta[j];
    ++steps_;
    return true;
}

void BoxSteps::duals(double* u) const {
    path_.signed_sums(u);
    const double open = relative_gap();
    if (!(open < accurate_gap)) return;

    Buffer d(of_rows_.size()), left(beta_.size()), change(beta_.size());
    path_.weights_at(path_.gap() * (accurate_gap / open), d.data());
    const Buffer M = design_.normal_matrix(d.data(), R_.data());
    const NormalSolver solver(lapack_, M.data(), design_.width());
    if (!solver.good()) return;
    design_.adjoint(u, left.data());
    for (std::size_t j = 0; j < left.size(); ++j) left[j] = R_[j] * beta_[j] - left[j];
    solver.solve(left.data(), change.data());
    Buffer score(of_rows_.size());
    design_.forward(change.data(), score.data());
    for (std::size_t i = 0; i < d.size(); ++i) u[i] += d[i] * score[i];
}

double BoxSteps::primal() const {
    double penalty = 0;
    for (std::size_t j = 0; j < beta_.size(); ++j) penalty += R_[j] * beta_[j] * beta_[j];
    return 0.5 * penalty + path_.loss();
}

void BoxSteps::restore(const double* path, const double* beta, double length, std::int64_t steps) {
    path_.restore(path);
    std::copy_n(beta, beta_.size(), beta_.begin());
    length_ = length;
    steps_ = steps;
}

}  // namespace pegasos
