// The loops of chain_kernels.hpp, compiled with PEGASOS_ISA set to the name of the instruction set this copy is for.
#include "pegasos/structured/chain_kernels.hpp"

#include "pegasos/simd/exponential.hpp"
#include "pegasos/simd/vectors.hpp"

namespace pegasos {
namespace {

using std::int32_t;
using std::int64_t;

// A vector fills one register: of several, comparisons would be made number by number.
#ifdef __AVX512F__
#define PEGASOS_WIDTH 64
#else
#define PEGASOS_WIDTH 32
#endif
typedef float Floats __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(PEGASOS_WIDTH)));
typedef int32_t Ints __attribute__((vector_size(32)));
typedef int64_t Longs __attribute__((vector_size(PEGASOS_WIDTH)));
typedef float LooseFloats __attribute__((vector_size(32), aligned(4), may_alias));
typedef double LooseDoubles __attribute__((vector_size(PEGASOS_WIDTH), aligned(8), may_alias));

template <class Real>
struct Of;
template <>
struct Of<float> {
    using Vec = Floats;
    using Bits = Ints;
    static constexpr float least_sum = 1e-30f, least_share = 1e-36f;
};
template <>
struct Of<double> {
    using Vec = Doubles;
    using Bits = Longs;
    static constexpr double least_sum = 1e-140, least_share = 1e-140;
};
template <class Real>
using VecOf = typename Of<Real>::Vec;
// Labels of a vector; those of a block fill one or two.
template <class Real>
constexpr int width = int(sizeof(VecOf<Real>) / sizeof(Real));

inline Floats load(const float* p) { return *reinterpret_cast<const LooseFloats*>(p); }
inline Doubles load(const double* p) { return *reinterpret_cast<const LooseDoubles*>(p); }
inline void store(float* p, Floats v) { *reinterpret_cast<LooseFloats*>(p) = v; }
inline void store(double* p, Doubles v) { *reinterpret_cast<LooseDoubles*>(p) = v; }

using simd::least;
using simd::most;

template <class Real>
Real total(const Real* p, int lanes) {
    constexpr int w = width<Real>;
    VecOf<Real> s = load(p);
    for (int l = w; l < lanes; l += w) s += load(p + l);
    if constexpr (w == 4)
        return (s[0] + s[2]) + (s[1] + s[3]);
    else
        return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// Work on lanes, up to six vectors at a time so that they share what they read: f<number of vectors>(first lane).
template <class Real, class F>
void each_block(int lanes, F&& f) {
    constexpr int w = width<Real>;
    int at = 0;
    for (; lanes - at > 6 * w; at += 4 * w) f.template operator()<4>(at);
    switch ((lanes - at) / w) {
        case 6:
            return f.template operator()<6>(at);
        case 5:
            return f.template operator()<5>(at);
        case 4:
            return f.template operator()<4>(at);
        case 3:
            return f.template operator()<3>(at);
        case 2:
            return f.template operator()<2>(at);
        default:
            return f.template operator()<1>(at);
    }
}

// --- scores ----------------------------------------------------------------------------------------------------------

// Weights of the attributes that come so many places later are asked for in advance.
constexpr int64_t ahead = 24;

template <class Real>
void score(const Real* W, int stride, int lanes, const TokenAttributes& x, Real* out) {
    using V = VecOf<Real>;
    constexpr int line = 64 / int(sizeof(Real));
    const int64_t last = x.indptr[x.tokens];
    each_block<Real>(lanes, [&]<int N>(int at) {
        for (int64_t t = 0; t < x.tokens; ++t) {
            V sum[N] = {};
            for (int64_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
                if (k + ahead < last) {
                    const Real* later = W + int64_t(x.ids[k + ahead]) * stride + at;
                    for (int l = 0; l < N * width<Real>; l += line) __builtin_prefetch(later + l);
                }
                const Real* row = W + int64_t(x.ids[k]) * stride + at;
                if (x.values) {
                    const Real v = Real(x.values[k]);
#pragma GCC unroll 6
                    for (int n = 0; n < N; ++n) sum[n] += v * load(row + n * width<Real>);
                } else {
#pragma GCC unroll 6
                    for (int n = 0; n < N; ++n) sum[n] += load(row + n * width<Real>);
                }
            }
#pragma GCC unroll 6
            for (int n = 0; n < N; ++n) store(out + t * lanes + at + n * width<Real>, sum[n]);
        }
    });
}

template <class Real>
void add(Real* W, int labels, int lanes, const TokenAttributes& x, const Real* p, int part, int parts) {
    constexpr int w = width<Real>;
    for (int64_t t = 0; t < x.tokens; ++t)
        for (int64_t k = x.indptr[t]; k < x.indptr[t + 1]; ++k) {
            if (parts > 1 && x.ids[k] % parts != part) continue;
            const Real v = x.values ? Real(x.values[k]) : Real(1);
            const Real* from = p + t * lanes;
            Real* row = W + int64_t(x.ids[k]) * labels;
            int l = 0;
            for (; l + w <= labels; l += w) store(row + l, load(row + l) + v * load(from + l));
            for (; l < labels; ++l) row[l] += v * from[l];
        }
}

// --- the best labelling ----------------------------------------------------------------------------------------------

// α_t[j] = s_t[j] + max_i (α_{t-1}[i] + T[i][j])
template <class Real>
Real decode(const Real* scores, const Real* T, const Real* begin, const Real* end, int labels, int lanes,
            int64_t tokens, Real* alpha, Label* y) {
    using V = VecOf<Real>;
    for (int l = 0; l < lanes; l += width<Real>) store(alpha + l, load(scores + l) + load(begin + l));
    for (int64_t t = 1; t < tokens; ++t) {
        const Real *from = alpha + (t - 1) * lanes, *s = scores + t * lanes;
        Real* to = alpha + t * lanes;
        each_block<Real>(lanes, [&]<int N>(int at) {
            V best[N];
#pragma GCC unroll 6
            for (int n = 0; n < N; ++n) best[n] = from[0] + load(T + at + n * width<Real>);
            for (int i = 1; i < labels; ++i) {
                const Real* row = T + i * lanes + at;
#pragma GCC unroll 6
                for (int n = 0; n < N; ++n) best[n] = most(best[n], from[i] + load(row + n * width<Real>));
            }
#pragma GCC unroll 6
            for (int n = 0; n < N; ++n)
                store(to + at + n * width<Real>, best[n] + load(s + at + n * width<Real>));
        });
    }
    Real* last = alpha + (tokens - 1) * lanes;
    int at = 0;
    Real best = last[0] + end[0];
    for (int l = 1; l < labels; ++l)
        if (last[l] + end[l] > best) best = last[l] + end[l], at = l;
    if (!y) return best;
    y[tokens - 1] = Label(at);
    for (int64_t t = tokens - 1; t > 0;
         --t) {  // no pointers back are kept: one column a token is looked at again
        const Real* from = alpha + (t - 1) * lanes;
        int before = 0;
        Real high = from[0] + T[at];
        for (int i = 1; i < labels; ++i) {
            const Real value = from[i] + T[i * lanes + at];
            if (value > high) high = value, before = i;
        }
        y[t - 1] = Label(at = before);
    }
    return best;
}

// --- sums over all labellings ----------------------------------------------------------------------------------------

template <class Real>
void exponentials(const Real* x, int64_t count, Real shift, Real* out) {
    for (int64_t k = 0; k < count; k += width<Real>)
        store(out + k, simd::exponential<Real, typename Of<Real>::Bits>(load(x + k) - shift));
}

// Σ_i from[i] M[i][:] for all lanes.
template <class Real>
void product(const Real* from, const Real* M, int labels, int lanes, Real* out) {
    using V = VecOf<Real>;
    each_block<Real>(lanes, [&]<int N>(int at) {
        V sum[N] = {};
        for (int i = 0; i < labels; ++i)
#pragma GCC unroll 6
            for (int n = 0; n < N; ++n) sum[n] += from[i] * load(M + i * lanes + at + n * width<Real>);
#pragma GCC unroll 6
        for (int n = 0; n < N; ++n) store(out + at + n * width<Real>, sum[n]);
    });
}

// With e_t = exp(s_t − max s_t): α_0 = e_0, α_t = e_t · (α_{t-1} exp T), each divided by its sum c_t; β goes back
// likewise, divided by the same sums, so that α_t β_t are marginals. log Z = Σ_t (max s_t + log c_t) + (tokens − 1) shift.
//
// A label whose α is next to nothing may be on the best path all the same, if tokens that follow make up for it, and then
// its β is as large as its α is small. So α that are too small end the attempt, but for those of labels that no path
// reaches. Where none is, α_t β_t ≤ 1 keeps β, and what is made of it, within range.
template <class Real>
double forward_backward(Real* scores, const ExpTransitions<Real>& T, const Reach<Real>& reach,
                        const Real* end, int labels, int lanes, int64_t tokens, Real* alpha, Real weight,
                        Real* pairs) {
    using V = VecOf<Real>;
    double log_z = double(tokens - 1) * T.shift;
    Real* const sums = alpha + tokens * lanes;  // a number a token
    for (int64_t t = 0; t < tokens; ++t) {
        Real *e = scores + t * lanes, *a = alpha + t * lanes;
        const Real* from = reach.at(t, lanes);
        const bool last = t + 1 == tokens;
        for (int l = 0; l < lanes; l += width<Real>) store(e + l, load(e + l) + load(from + l));
        if (last)
            for (int l = 0; l < lanes; l += width<Real>) store(e + l, load(e + l) + load(end + l));
        Real high = e[0];
        for (int l = 1; l < labels; ++l) high = e[l] > high ? e[l] : high;
        if (!(double(high) > no_path)) return std::nan("");
        exponentials(e, lanes, high, e);
        for (int l = labels; l < lanes; ++l) e[l] = 0;
        if (t > 0) {
            product(a - lanes, T.rows, labels, lanes, a);
            for (int l = 0; l < lanes; l += width<Real>) store(a + l, load(a + l) * load(e + l));
        } else {
            for (int l = 0; l < lanes; l += width<Real>) store(a + l, load(e + l));
        }
        const Real sum = total(a, lanes);
        if (!(sum > Of<Real>::least_sum)) return std::nan("");
        sums[t] = sum;
        V smallest =
            V{} + 1;  // of the labels that are reached: from and end are 0 there, and below −1 elsewhere
        for (int l = 0; l < lanes; l += width<Real>) {
            const V share = load(a + l) / sum;
            store(a + l, share);
            smallest = least(smallest, share - load(from + l) - (last ? load(end + l) : V{}));
        }
        for (int l = 0; l < width<Real>; ++l)
            if (!(smallest[l] >= Of<Real>::least_share)) return std::nan("");
        log_z += double(high) + std::log(double(sum));
    }
    Real* const beta = sums + tokens;  // lanes
    Real* const g = beta + lanes;      // lanes
    for (int l = 0; l < lanes; ++l) beta[l] = 1;
    for (int64_t t = tokens - 1; t >= 0; --t) {
        Real *e = scores + t * lanes, *a = alpha + t * lanes;
        for (int l = 0; l < lanes; l += width<Real>) {
            store(g + l, load(e + l) * load(beta + l) / sums[t]);
            store(e + l, load(a + l) * load(beta + l));
        }
        if (t == 0) break;
        const Real* from = reach.at(t - 1, lanes);
        const Real* before = a - lanes;
        for (int i = 0; i < labels; ++i) {
            const Real share = weight * before[i];
            Real* row = pairs + i * lanes;
            for (int l = 0; l < lanes; l += width<Real>) store(row + l, load(row + l) + share * load(g + l));
        }
        product(g, T.columns, labels, lanes, beta);
        for (int l = 0; l < lanes; l += width<Real>) {  // of labels that are not reached, β may be anything
            const V b = load(beta + l);
            store(beta + l, load(from + l) < Real(0) ? V{} : b);
        }
    }
    return log_z;
}

template <class Real>
constexpr ChainKernels<Real> table{score<Real>, decode<Real>, exponentials<Real>, forward_backward<Real>,
                                   add<Real>};

}  // namespace

extern const ChainKernels<float> PEGASOS_TABLE(chain_float);
extern const ChainKernels<double> PEGASOS_TABLE(chain_double);
const ChainKernels<float> PEGASOS_TABLE(chain_float) = table<float>;
const ChainKernels<double> PEGASOS_TABLE(chain_double) = table<double>;

}  // namespace pegasos
