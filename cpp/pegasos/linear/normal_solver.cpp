#include "pegasos/linear/normal_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "pegasos/simd/kernels.hpp"

namespace pegasos {

NormalSolver::NormalSolver(const Lapack& lapack, const double* M, std::int64_t n)
    : lapack_(lapack), M_(M), n_(n), scale_(std::size_t(n)), factor_(std::size_t(n * n)) {
    if (n < 1 || n > std::numeric_limits<int>::max()) throw std::invalid_argument("M has no size for LAPACK");
    for (std::int64_t j = 0; j < n; ++j) {
        const double diagonal = M[j * n + j];
        scale_[std::size_t(j)] = diagonal > 0 ? 1 / std::sqrt(diagonal) : 1.0;  // a column may be empty
    }
    for (double ridge = 1e-15; !good_ && ridge <= 1; ridge *= 100) good_ = factorise(ridge);
}

bool NormalSolver::factorise(double ridge) {
    // LAPACK's lower triangle, column by column, is the upper one in rows.
    for (std::int64_t j = 0; j < n_; ++j) {
        const double scale = scale_[std::size_t(j)];
        double* line = factor_.data() + j * n_;
        for (std::int64_t k = j; k < n_; ++k) line[k] = M_[j * n_ + k] * scale * scale_[std::size_t(k)];
        line[j] += ridge;
    }
    char uplo = 'L';
    int n = int(n_), info = 0;
    lapack_.potrf(&uplo, &n, factor_.data(), &n, &info);
    // Some LAPACKs let a NaN through, which then is on the diagonal.
    for (std::int64_t j = 0; j < n_ && info == 0; ++j) info = !(factor_[std::size_t(j * n_ + j)] > 0);
    return info == 0;
}

// By substitution with Lᵀ, whose rows are consecutive: LAPACK's own takes longer to begin than a narrow
// matrix takes to be done, and no less for a wide one.
void NormalSolver::solve_once(const double* r, double* x) const {
    const auto& kernels = simd::kernels<double>();
    const auto line = [&](std::int64_t j) { return factor_.data() + j * n_ + j; };
    for (std::int64_t j = 0; j < n_; ++j) x[j] = r[j] * scale_[std::size_t(j)];
    for (std::int64_t j = 0; j < n_; ++j) {
        x[j] /= *line(j);
        kernels.axpy(-x[j], line(j) + 1, x + j + 1, n_ - j - 1);
    }
    for (std::int64_t j = n_ - 1; j >= 0; --j)
        x[j] = (x[j] - kernels.dot(line(j) + 1, x + j + 1, n_ - j - 1)) / *line(j);
    for (std::int64_t j = 0; j < n_; ++j) x[j] *= scale_[std::size_t(j)];
}

double NormalSolver::scaled_length(const double* r) const {
    double sum = 0;
    for (std::int64_t j = 0; j < n_; ++j)
        sum += (r[j] * scale_[std::size_t(j)]) * (r[j] * scale_[std::size_t(j)]);
    return std::sqrt(sum);
}

void NormalSolver::solve(const double* r, double* x) const {
    const auto& dot = simd::kernels<double>().dot;
    const std::size_t n = std::size_t(n_);
    Buffer trial(n), residual(n), change(n);
    solve_once(r, trial.data());
    std::copy(trial.begin(), trial.end(), x);
    const double enough = 1e-14 * scaled_length(r);
    double size = std::numeric_limits<double>::infinity();
    for (int round = 1;; ++round) {
        for (std::size_t j = 0; j < n; ++j) residual[j] = r[j] - dot(M_ + j * n, trial.data(), n_);
        const double length = scaled_length(residual.data());
        if (!(length < 0.5 * size)) return;
        size = length;
        std::copy(trial.begin(), trial.end(), x);
        if (length <= enough || round == 3) return;
        solve_once(residual.data(), change.data());
        for (std::size_t j = 0; j < n; ++j) trial[j] += change[j];
    }
}

}  // namespace pegasos
