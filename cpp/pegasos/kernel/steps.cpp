#include "pegasos/kernel/steps.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pegasos/core/rng.hpp"

namespace pegasos {
namespace {

// The curvature that a row without one is given, as in LIBSVM: zero rows, and kernels that are not positive
// semi-definite.
constexpr double least_curvature = 1e-12;

// Later places see what place p has gained.
template <class Real>
void spread(const KernelBlock<Real>& block, std::int64_t p, double coef) {
    const Real* row = block.K + p * block.stride;
    for (std::int64_t q = p; q < block.count; ++q) block.score[q] += coef * double(row[q]);
}

double scale_of(const KernelPegasos& o, const PegasosProgress& at) {
    const double omega = o.t0 + at.visits;
    return omega > 0 ? at.pi / (o.lam * omega) : 0.0;
}

// Two uniform draws from all iterates so far (Lemma 3 of the 2011 paper); see PegasosSolver::draw.
void draw(const KernelPegasos& o, PegasosProgress& at, double scale) {
    double* next[] = {&at.next0, &at.next1};
    for (int r = 0; r < 2; ++r) {
        if (at.steps != *next[r]) continue;
        for (std::int64_t i = 0; i < o.rows; ++i) o.random[r][i] = scale * o.U[i];
        Rng rng(o.seed ^ 0x72616e646f6d, std::uint64_t(at.draws));
        at.draws += 1;
        *next[r] = std::floor(std::min(at.steps / rng.uniform(), 9e15)) + 1;
    }
}

// Multiplies a vanishing π into what it scales; the caller does so with what is not seen here.
template <class Real>
void fold(const KernelPegasos& o, const KernelBlock<Real>& block, PegasosProgress& at) {
    for (std::int64_t i = 0; o.lag && i < o.rows; ++i) {
        o.sum[i] += at.carried * o.U[i] - o.lag[i];
        o.lag[i] = 0;
    }
    at.carried = 0;
    for (std::int64_t i = 0; i < o.rows; ++i) o.U[i] *= at.pi;
    for (std::int64_t p = 0; p < block.count; ++p) block.score[p] *= at.pi, block.change[p] *= at.pi;
    at.total *= at.pi, at.norm *= at.pi * at.pi, at.folded *= at.pi;
    at.pi = 1;
}

template <class Real, class Loss>
void pegasos_batch(const Loss& loss, const KernelPegasos& o, const KernelBlock<Real>& block,
                   std::int64_t first, std::int64_t k, std::vector<double>& g, PegasosProgress& at) {
    const double B2 = o.feature * o.feature, scale = scale_of(o, at);
    at.steps += 1;
    if (o.lag) at.carried += scale, at.passed += scale * at.folded, at.bias_sum += at.bias;
    if (o.random[0]) draw(o, at, scale);
    for (std::int64_t r = 0; r < k; ++r)
        g[std::size_t(r)] = loss.slope(scale * (block.score[first + r] + B2 * at.total) + at.bias,
                                       o.y[block.rows[first + r]]);
    for (std::int64_t r = 0; r < k; ++r) {
        const std::int64_t p = first + r, i = block.rows[p];
        const double slope = g[std::size_t(r)], c = o.c[i];
        if (slope == 0 || c == 0) continue;
        const double unit = slope / at.pi, coef = c * unit;
        o.U[i] += unit;
        if (o.lag) o.lag[i] += unit * at.carried;
        block.change[p] += coef;
        if (o.subgradient) at.bias += o.bias_rate * c * slope / (double(k) * std::sqrt(at.steps));
        if (block.K) {
            // ‖v + coef φ‖² = ‖v‖² + 2 coef ⟨v, φ⟩ + coef² K(x, x)
            const double K = double(block.K[p * block.stride + p]) + B2;
            at.norm += coef * (2 * (block.score[p] + B2 * at.total) + coef * K);
            spread(block, p, coef);
        }
        at.total += coef;
    }
    at.visits += double(k);
    if (block.K && o.radius > 0) {
        const double length = scale_of(o, at) * std::sqrt(std::max(0.0, at.norm));
        if (length > o.radius) at.pi *= o.radius / length;
        if (at.pi < 1e-9) fold(o, block, at);
    }
}

}  // namespace

template <class Real>
void pegasos_steps(const AnyLoss& any, const KernelPegasos& o, const KernelBlock<Real>& block,
                   PegasosProgress& at) {
    std::vector<double> g(std::size_t(std::min(o.batch_size, block.count)));
    std::visit(
        [&](const auto& loss) {
            for (std::int64_t first = 0; first < block.count; first += o.batch_size)
                pegasos_batch(loss, o, block, first, std::min(o.batch_size, block.count - first), g, at);
        },
        any);
}

template <class Real>
double sdca_steps(const AnyLoss& any, const KernelSdca& o, const KernelBlock<Real>& block, double sum) {
    const double B2 = o.feature * o.feature;
    std::visit(
        [&](const auto& loss) {
            for (std::int64_t p = 0; p < block.count; ++p) {
                const std::int64_t i = block.rows[p];
                const double share = o.c[i] * o.unit;
                if (share == 0) continue;
                const double z = block.score[p] + B2 * sum + o.offset;
                const double K = double(block.K[p * block.stride + p]) + B2;
                const double next = loss.dual_step(o.u[i], z, o.y[i], std::max(K, least_curvature) * share);
                const double coef = (next - o.u[i]) * share;
                o.u[i] = next;
                if (coef == 0) continue;
                block.change[p] += coef;
                sum += coef;
                spread(block, p, coef);
            }
        },
        any);
    return sum;
}

template void pegasos_steps(const AnyLoss&, const KernelPegasos&, const KernelBlock<float>&,
                            PegasosProgress&);
template void pegasos_steps(const AnyLoss&, const KernelPegasos&, const KernelBlock<double>&,
                            PegasosProgress&);
template double sdca_steps(const AnyLoss&, const KernelSdca&, const KernelBlock<float>&, double);
template double sdca_steps(const AnyLoss&, const KernelSdca&, const KernelBlock<double>&, double);

}  // namespace pegasos
