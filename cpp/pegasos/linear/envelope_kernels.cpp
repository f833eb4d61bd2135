// The kernels of linear/envelope.hpp, compiled with PEGASOS_ISA set to the name of the instruction set this copy is
// for.
#include "pegasos/linear/envelope.hpp"
#include "pegasos/simd/vectors.hpp"

namespace pegasos {
namespace {

using simd::B;
using simd::least;
using simd::load_as;
using simd::most;
using simd::store_as;
using simd::Vec;
using std::int64_t;

// lo, hi and u(z) for a row's y; ε/δ and 1/δ are the same for all.
template <class V, bool by_sign>
struct Row {
    V lo, hi;
    Row(const Piecewise& p, V y) {
        const V zero{};
        lo = by_sign ? least(zero, y) : zero + p.lo;
        hi = by_sign ? most(zero, y) : zero + p.hi;
    }
    V u(V u0, V gap, double inverse, double threshold) const {
        V v = u0 + gap * inverse;
        if constexpr (!by_sign) {
            const V zero{};
            v = most(v - threshold, zero) + least(v + threshold, zero);
        }
        return least(most(v, lo), hi);
    }
};

template <class V, bool by_sign>
void look_at(const Piecewise& p, const EnvelopeRows& r, int64_t i, double* u, double* curvature, V& loss,
             V& conjugate) {
    const V zero{}, y = load_as<V>(r.y + i), h = load_as<V>(r.h + i), gap = y - load_as<V>(r.z + i);
    const double inverse = 1 / r.delta;
    const Row<V, by_sign> row(p, y);
    const V at = row.u(load_as<V>(r.u0 + i), gap, inverse, p.epsilon * inverse);
    store_as<V>(u + i, at);
    const V bent = h * inverse;
    V inside = row.lo < at ? bent : zero;
    inside = at < row.hi ? inside : zero;
    // ε makes 0 a corner too.
    if (p.epsilon > 0) inside = at == zero ? zero : inside;
    store_as<V>(curvature + i, inside);
    loss += h * most(most(row.hi * (gap - p.epsilon), row.lo * (gap + p.epsilon)), zero);
    conjugate += h * (y * at - p.epsilon * most(at, -at));
}

template <bool by_sign>
EnvelopeSums look(const Piecewise& p, const EnvelopeRows& r, double* u, double* curvature) {
    Vec loss{}, conjugate{};
    EnvelopeSums tail;
    int64_t i = 0;
    for (; i + B <= r.count; i += B) look_at<Vec, by_sign>(p, r, i, u, curvature, loss, conjugate);
    for (; i < r.count; ++i) look_at<double, by_sign>(p, r, i, u, curvature, tail.loss, tail.conjugate);
    return {simd::sum(loss) + tail.loss, simd::sum(conjugate) + tail.conjugate};
}

template <class V, bool by_sign>
V slope_at(const Piecewise& p, const EnvelopeRows& r, const double* dz, double t, int64_t i) {
    const V y = load_as<V>(r.y + i), d = load_as<V>(dz + i), gap = y - (load_as<V>(r.z + i) + t * d);
    const double inverse = 1 / r.delta;
    const Row<V, by_sign> row(p, y);
    return load_as<V>(r.h + i) * d * row.u(load_as<V>(r.u0 + i), gap, inverse, p.epsilon * inverse);
}

template <bool by_sign>
double slope(const Piecewise& p, const EnvelopeRows& r, const double* dz, double t) {
    Vec sum{};
    double tail = 0;
    int64_t i = 0;
    for (; i + B <= r.count; i += B) sum += slope_at<Vec, by_sign>(p, r, dz, t, i);
    for (; i < r.count; ++i) tail += slope_at<double, by_sign>(p, r, dz, t, i);
    return simd::sum(sum) + tail;
}

}  // namespace

extern const EnvelopeKernels PEGASOS_TABLE(envelope);
const EnvelopeKernels PEGASOS_TABLE(envelope) = {
    [](const Piecewise& p, const EnvelopeRows& r, double* u, double* curvature) {
        return p.by_sign ? look<true>(p, r, u, curvature) : look<false>(p, r, u, curvature);
    },
    [](const Piecewise& p, const EnvelopeRows& r, const double* dz, double t) {
        return p.by_sign ? slope<true>(p, r, dz, t) : slope<false>(p, r, dz, t);
    },
};

}  // namespace pegasos
