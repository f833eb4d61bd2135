// The loops of kernel/panels.hpp, compiled with PEGASOS_ISA set to the name of the instruction set this copy
// is for.
#include "pegasos/kernel/panels.hpp"

#include "pegasos/simd/exponential.hpp"
#include "pegasos/simd/vectors.hpp"

namespace pegasos {
namespace {

using std::int32_t;
using std::int64_t;

// The widest register: a lane group fills one, or two halves. Templates forget attributes, so what may lie
// anywhere in memory has types of its own.
#ifdef __AVX512F__
#define PEGASOS_WIDTH 64
#else
#define PEGASOS_WIDTH 32
#endif
constexpr int parts = 64 / PEGASOS_WIDTH, doubles = PEGASOS_WIDTH / 8;
typedef float Floats __attribute__((vector_size(PEGASOS_WIDTH)));
typedef double Doubles __attribute__((vector_size(PEGASOS_WIDTH)));
typedef int32_t Ints __attribute__((vector_size(PEGASOS_WIDTH)));
typedef int64_t Longs __attribute__((vector_size(PEGASOS_WIDTH)));
typedef float LooseFloats __attribute__((vector_size(PEGASOS_WIDTH), aligned(4), may_alias));
typedef double LooseDoubles __attribute__((vector_size(PEGASOS_WIDTH), aligned(8), may_alias));
typedef float LooseHalf __attribute__((vector_size(PEGASOS_WIDTH / 2), aligned(4), may_alias));
// Eight floats, for the way from lanes to rows.
typedef float Eight __attribute__((vector_size(32)));
typedef int32_t EightInts __attribute__((vector_size(32)));
typedef float LooseEight __attribute__((vector_size(32), aligned(4), may_alias));

inline Floats load(const float* p) { return *reinterpret_cast<const LooseFloats*>(p); }
inline Doubles load(const double* p) { return *reinterpret_cast<const LooseDoubles*>(p); }
inline void store(float* p, Floats v) { *reinterpret_cast<LooseFloats*>(p) = v; }
inline void store(double* p, Doubles v) { *reinterpret_cast<LooseDoubles*>(p) = v; }

template <class Real>
struct Of;
template <>
struct Of<float> {
    using Vec = Floats;
    using Bits = Ints;
    static constexpr float beyond = 10.0f;
};
template <>
struct Of<double> {
    using Vec = Doubles;
    using Bits = Longs;
    static constexpr double beyond = 20.0;
};
template <class Real>
using VecOf = typename Of<Real>::Vec;

template <class V>
V most(V a, V b) {
    return a < b ? b : a;
}
template <class V>
V least(V a, V b) {
    return a < b ? a : b;
}
template <class V>
V magnitude(V v) {
    return most(v, -v);
}

// --- sums over the entries of x --------------------------------------------------------------------------

struct Dot {
    template <bool sparse, class Real, class V>
    static V add(V sum, Real x, V a) {
        return sum + x * a;
    }
};
struct Absolute {
    template <bool sparse, class Real, class V>
    static V add(V sum, Real x, V a) {
        const V apart = magnitude(a - x);
        return sum + (sparse ? apart - magnitude(a) : apart);
    }
};
struct ChiSquared {
    template <bool sparse, class Real, class V>
    static V add(V sum, Real x, V a) {
        const V zero{}, total = a + x, apart = a - x;
        const V term = total > zero ? apart * apart / (total > zero ? total : zero + 1) : zero;
        return sum + (sparse ? term - a : term);
    }
};

// Sums of `count` dense rows at once: enough independent chains to hide the latency of each.
template <class Op, class Real, class Value, int count>
void dense_sums(const Value* const* x, int64_t cols, const Real* packed, Real* out) {
    using V = VecOf<Real>;
    constexpr int L = kernel_lanes<Real>, part = L / parts;
    V s[count][parts] = {};
    for (int64_t k = 0; k < cols; ++k) {
        V a[parts];
#pragma GCC unroll 2
        for (int h = 0; h < parts; ++h) a[h] = load(packed + k * L + h * part);
#pragma GCC unroll 16
        for (int r = 0; r < count; ++r) {
            const Real v = Real(x[r][k]);
#pragma GCC unroll 2
            for (int h = 0; h < parts; ++h) s[r][h] = Op::template add<false>(s[r][h], v, a[h]);
        }
    }
    for (int r = 0; r < count; ++r)
        for (int h = 0; h < parts; ++h) store(out + r * L + h * part, s[r][h]);
}

template <class Op, class Real, class Value>
void sums(const DensePanelRows<Value>& x, const int64_t* rows, const std::uint8_t*, int count,
          const Real* packed, Real* out) {
    constexpr int together = parts == 1 ? 16 : 6, L = kernel_lanes<Real>;
    const Value* p[kernel_tile];
    for (int c = 0; c < count; ++c) p[c] = x.data + rows[c] * x.stride;
    int c = 0;
    for (; c + together <= count; c += together)
        dense_sums<Op, Real, Value, together>(p + c, x.cols, packed, out + c * L);
    for (; c + 4 <= count; c += 4) dense_sums<Op, Real, Value, 4>(p + c, x.cols, packed, out + c * L);
    for (; c < count; ++c) dense_sums<Op, Real, Value, 1>(p + c, x.cols, packed, out + c * L);
}

// One row, from its entry number `from` on: a single chain of additions, so that sums are symmetric.
template <class Op, class Real, class Value, class Index, class V, int lines>
void sparse_rest(const Value* data, Bounded<Index> columns, int64_t from, int64_t end, const Real* packed,
                 V (&s)[lines]) {
    constexpr int part = int(sizeof(V) / sizeof(Real)), width = part * lines;
    for (int64_t p = from; p < end; ++p) {
        const Real v = Real(data[p]);
        const Real* a = packed + columns[p] * width;
#pragma GCC unroll 4
        for (int h = 0; h < lines; ++h) s[h] = Op::template add<true>(s[h], v, load(a + h * part));
    }
}

// Sums of `count` sparse rows side by side, as far as the shortest of them goes, then what is left of each.
template <class Op, class Real, class Value, class Index, int count>
void sparse_sums(const SparsePanelRows<Value, Index>& x, const int64_t* rows, const Real* packed,
                 Real* const* out) {
    using V = VecOf<Real>;
    constexpr int lines = 2 * parts, part = kernel_lanes<Real> / parts, width = part * lines;
    const Value* data[count];
    Bounded<Index> columns[count];
    int64_t size[count], shortest = INT64_MAX;
    for (int r = 0; r < count; ++r) {
        const int64_t begin = x.pointer(rows[r]), end = x.pointer(rows[r] + 1);
        data[r] = x.data + begin;
        columns[r] = x.columns + begin;
        size[r] = end > begin ? end - begin : 0;
        shortest = size[r] < shortest ? size[r] : shortest;
    }
    V s[count][lines] = {};
    for (int64_t p = 0; p < shortest; ++p)
#pragma GCC unroll 8
        for (int r = 0; r < count; ++r) {
            const Real v = Real(data[r][p]);
            const Real* a = packed + columns[r][p] * width;
#pragma GCC unroll 4
            for (int h = 0; h < lines; ++h) s[r][h] = Op::template add<true>(s[r][h], v, load(a + h * part));
        }
#pragma GCC unroll 8
    for (int r = 0; r < count; ++r) {
        sparse_rest<Op>(data[r], columns[r], shortest, size[r], packed, s[r]);
#pragma GCC unroll 4
        for (int h = 0; h < lines; ++h) store(out[r] + h * part, s[r][h]);
    }
}

template <class Op, class Real, class Value, class Index>
void sums(const SparsePanelRows<Value, Index>& x, const int64_t* rows, const std::uint8_t* order, int count,
          const Real* packed, Real* out) {
    constexpr int together = parts == 1 ? 4 : 2, width = 2 * kernel_lanes<Real>;
    int64_t row[kernel_tile];
    Real* to[kernel_tile];
    for (int c = 0; c < count; ++c) row[c] = rows[order[c]], to[c] = out + order[c] * width;
    int c = 0;
    for (; c + together <= count; c += together)
        sparse_sums<Op, Real, Value, Index, together>(x, row + c, packed, to + c);
    for (; c < count; ++c) sparse_sums<Op, Real, Value, Index, 1>(x, row + c, packed, to + c);
}

// --- kernel functions ------------------------------------------------------------------------------------

template <class Real, class V>
V exponential(V x) {
    return simd::exponential<Real, typename Of<Real>::Bits>(x);
}

template <class Real, class V>
V tangent(V x) {
    const V zero{}, size = least(magnitude(x), zero + Of<Real>::beyond);
    const V t = 1 - 2 / (exponential<Real, V>(2 * size) + 1);
    return x < zero ? -t : t;
}

template <class V>
V power(V x, int64_t degree) {
    V result = V{} + 1;
    for (; degree > 0; degree >>= 1, x *= x)
        if (degree & 1) result *= x;
    return result;
}

template <class Real, int lines, class F>
void each_part(Real* s, int count, F&& f) {
    constexpr int part = kernel_lanes<Real> / parts, width = part * lines;
    for (int c = 0; c < count; ++c)
#pragma GCC unroll 4
        for (int h = 0; h < lines; ++h)
            store(s + c * width + h * part, f(load(s + c * width + h * part), c, h));
}

template <class Real, int lines, class Job>
void finish(const Job& job, const int64_t* rows, int count, Real* s) {
    using V = VecOf<Real>;
    const Kernel& kernel = *job.kernel;
    const Real gamma = Real(kernel.gamma), c0 = Real(kernel.coef0);
    V norms[lines] = {};
    if (job.lane_norms)
        for (int h = 0; h < lines; ++h) norms[h] = load(job.lane_norms + h * (kernel_lanes<Real> / parts));
    switch (kernel.kind) {
        case KernelKind::linear:
            break;
        case KernelKind::poly:
            each_part<Real, lines>(s, count,
                                   [&](V v, int, int) { return power<V>(gamma * v + c0, kernel.degree); });
            break;
        case KernelKind::sigmoid:
            each_part<Real, lines>(s, count, [&](V v, int, int) { return tangent<Real, V>(gamma * v + c0); });
            break;
        case KernelKind::rbf:
            each_part<Real, lines>(s, count, [&](V v, int c, int h) {
                const V apart = most(norms[h] + job.row_norms[rows[c]] - 2 * v, V{});
                return exponential<Real, V>(-gamma * apart);
            });
            break;
        case KernelKind::laplacian:
        case KernelKind::chi2:
            each_part<Real, lines>(s, count, [&](V v, int, int h) {
                return exponential<Real, V>(-gamma * most(norms[h] + v, V{}));
            });
            break;
    }
}

// --- from lanes to rows ----------------------------------------------------------------------------------

// Of sixteen numbers, a's and b's, those at the places given. GCC 11 does not know clang's name for it.
template <int... at>
Eight picked(Eight a, Eight b) {
#ifdef __clang__
    return __builtin_shufflevector(a, b, at...);
#else
    return __builtin_shuffle(a, b, EightInts{at...});
#endif
}

// Eight by eight, by three rounds of exchanges at distance 1, 2 and 4.
void transpose_eight(const float* s, int width, float* const* out, int64_t at) {
    Eight r[8], t[8];
    for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const LooseEight*>(s + i * width);
    for (int i = 0; i < 8; i += 2) {
        t[i] = picked<0, 8, 2, 10, 4, 12, 6, 14>(r[i], r[i + 1]);
        t[i + 1] = picked<1, 9, 3, 11, 5, 13, 7, 15>(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = i; j < i + 2; ++j) {
            r[j] = picked<0, 1, 8, 9, 4, 5, 12, 13>(t[j], t[j + 2]);
            r[j + 2] = picked<2, 3, 10, 11, 6, 7, 14, 15>(t[j], t[j + 2]);
        }
    for (int j = 0; j < 4; ++j) {
        t[j] = picked<0, 1, 2, 3, 8, 9, 10, 11>(r[j], r[j + 4]);
        t[j + 4] = picked<4, 5, 6, 7, 12, 13, 14, 15>(r[j], r[j + 4]);
    }
    for (int l = 0; l < 8; ++l)
        if (out[l]) *reinterpret_cast<LooseEight*>(out[l] + at) = t[l];
}

template <class Real, int width>
void scatter(const Real* s, int count, Real* const* out, int64_t at) {
    int c = 0;
    if constexpr (sizeof(Real) == 4)
        for (; c + 8 <= count; c += 8)
            for (int h = 0; h < width; h += 8) transpose_eight(s + c * width + h, width, out + h, at + c);
    for (int l = 0; l < width; ++l)
        if (out[l])
            for (int r = c; r < count; ++r) out[l][at + r] = s[r * width + l];
}

template <class Real, class Rows>
void panel(const Rows& x, const PanelJob<Real>& job) {
    constexpr int width = Rows::lines * kernel_lanes<Real>;
    alignas(64) Real s[kernel_tile * width];
    int64_t rows[kernel_tile];
    for (int64_t done = 0; done < job.count; done += kernel_tile) {
        const int count = int(job.count - done < kernel_tile ? job.count - done : kernel_tile);
        for (int c = 0; c < count; ++c) {
            const int64_t at = job.first + done + c;
            rows[c] = job.index ? job.index[at] : at;
        }
        switch (job.kernel->kind) {
            case KernelKind::laplacian:
                sums<Absolute>(x, rows, job.order + done, count, job.packed, s);
                break;
            case KernelKind::chi2:
                sums<ChiSquared>(x, rows, job.order + done, count, job.packed, s);
                break;
            default:
                sums<Dot>(x, rows, job.order + done, count, job.packed, s);
        }
        finish<Real, Rows::lines * parts>(job, rows, count, s);
        scatter<Real, width>(s, count, job.out, done);
    }
}

// --- rows drawn towards lanes ----------------------------------------------------------------------------

// pull[k] += Σ_c w[c] x_c[k], four rows at a time.
template <class Real, class Value>
void draw(const DensePanelRows<Value>& x, const int64_t* rows, int count, const Real* w, Real* pull) {
    constexpr int L = kernel_lanes<Real>, part = L / parts;
    int c = 0;
    for (; c + 4 <= count; c += 4) {
        const Value* p[4];
        for (int r = 0; r < 4; ++r) p[r] = x.data + rows[c + r] * x.stride;
        for (int64_t k = 0; k < x.cols; ++k)
#pragma GCC unroll 2
            for (int h = 0; h < parts; ++h) {
                VecOf<Real> sum = load(pull + k * L + h * part);
#pragma GCC unroll 4
                for (int r = 0; r < 4; ++r) sum += Real(p[r][k]) * load(w + (c + r) * L + h * part);
                store(pull + k * L + h * part, sum);
            }
    }
    for (; c < count; ++c)
        for (int64_t k = 0; k < x.cols; ++k)
            for (int l = 0; l < L; ++l)
                pull[k * L + l] += Real(x.data[rows[c] * x.stride + k]) * w[c * L + l];
}

template <class Real, class Value, class Index>
void draw(const SparsePanelRows<Value, Index>& x, const int64_t* rows, int count, const Real* w, Real* pull) {
    constexpr int lines = 2 * parts, part = kernel_lanes<Real> / parts, width = part * lines;
    for (int c = 0; c < count; ++c) {
        VecOf<Real> own[lines];
        for (int h = 0; h < lines; ++h) own[h] = load(w + c * width + h * part);
        const int64_t end = x.pointer(rows[c] + 1);
        for (int64_t p = x.pointer(rows[c]); p < end; ++p) {
            Real* to = pull + x.columns[p] * width;
#pragma GCC unroll 4
            for (int h = 0; h < lines; ++h)
                store(to + h * part, load(to + h * part) + Real(x.data[p]) * own[h]);
        }
    }
}

template <class Real, class Rows>
void pull(const Rows& x, const PullJob<Real>& job) {
    constexpr int width = Rows::lines * kernel_lanes<Real>;
    alignas(64) Real s[kernel_tile * width];
    int64_t rows[kernel_tile];
    std::uint8_t order[kernel_tile];  // sorting rows by length would take longer than it saves here
    for (int c = 0; c < kernel_tile; ++c) order[c] = std::uint8_t(c);
    for (int64_t done = 0; done < job.count; done += kernel_tile) {
        const int count = int(job.count - done < kernel_tile ? job.count - done : kernel_tile);
        for (int c = 0; c < count; ++c) rows[c] = job.first + done + c;
        sums<Dot>(x, rows, order, count, job.packed, s);
        finish<Real, Rows::lines * parts>(job, rows, count, s);
        each_part<Real, Rows::lines * parts>(
            s, count, [&](VecOf<Real> v, int c, int) { return v * Real(job.coef[rows[c]]); });
        Real sum[width] = {};
        for (int c = 0; c < count; ++c)
            for (int l = 0; l < width; ++l) sum[l] += s[c * width + l];
        for (int l = 0; l < width; ++l) job.value[l] += double(sum[l]);
        draw(x, rows, count, s, job.pull);
    }
}

// --- rows added up ---------------------------------------------------------------------------------------

inline Doubles widened(const double* p) { return load(p); }
inline Doubles widened(const float* p) {
    return __builtin_convertvector(*reinterpret_cast<const LooseHalf*>(p), Doubles);
}

// A few rows at a time, each read in one go: more of them than the processor can follow would be read slowly.
template <class Real, int rows_together>
void add_some(const Real* const* rows, const double* coef, double* F, int64_t n) {
    int64_t j = 0;
    for (; j + doubles <= n; j += doubles) {
        Doubles s = load(F + j);
#pragma GCC unroll 8
        for (int r = 0; r < rows_together; ++r) s += coef[r] * widened(rows[r] + j);
        store(F + j, s);
    }
    for (; j < n; ++j)
        for (int r = 0; r < rows_together; ++r) F[j] += coef[r] * double(rows[r][j]);
}

template <class Real>
void add(const Real* const* rows, const double* coef, int count, double* F, int64_t n) {
    int r = 0;
    for (; r + 8 <= count; r += 8) add_some<Real, 8>(rows + r, coef + r, F, n);
    for (; r < count; ++r) add_some<Real, 1>(rows + r, coef + r, F, n);
}

// --- the working set of SMO ------------------------------------------------------------------------------

constexpr double infinite = __builtin_inf();

// The largest value, and of equal ones the first.
struct Best {
    Doubles value, index;
    void see(Doubles v, Doubles at) {
        const auto better = v > value;
        value = better ? v : value;
        index = better ? at : index;
    }
    int64_t first() const {
        double v = value[0], at = index[0];
        for (int u = 1; u < doubles; ++u)
            if (value[u] > v || (value[u] == v && index[u] < at)) v = value[u], at = index[u];
        return int64_t(at);
    }
};

template <class Real>
BlockResult smo_block(const BlockProblem<Real>& p) {
    const int64_t padded = (p.k + 7) / 8 * 8;
    const Doubles nothing = Doubles{} - infinite;
    Doubles start;
    for (int u = 0; u < doubles; ++u) start[u] = u;
    // Added to g, −∞ and ∞ take a variable out of the search for the largest that can grow, the smallest that
    // can fall.
    const auto refresh = [&](int64_t t) {
        p.up[t] = p.a[t] < p.hi[t] ? 0.0 : -infinite;
        p.low[t] = p.a[t] > p.lo[t] ? 0.0 : infinite;
    };
    for (int64_t t = 0; t < p.k; ++t) refresh(t);
    for (int64_t t = p.k; t < padded; ++t) p.up[t] = -infinite, p.low[t] = infinite;
    BlockResult result{0, 0, 0, false};
    double threshold = p.absolute, step = 0;
    int64_t i = 0, j = 0;
    for (;;) {
        Best top{nothing, start};
        Doubles at = start;
        const Real *Ki = p.K + i * p.stride, *Kj = p.K + j * p.stride;
        for (int64_t t = 0; t < padded; t += doubles, at += doubles) {
            const Doubles g = load(p.g + t) - step * (widened(Ki + t) - widened(Kj + t));
            store(p.g + t, g);
            top.see(g + load(p.up + t), at);
        }
        i = top.first();
        Ki = p.K + i * p.stride;
        const double gi = p.g[i] + p.up[i], Kii = p.diagonal[i];
        Best gain{nothing, start};
        Doubles least_low = -nothing;
        at = start;
        for (int64_t t = 0; t < padded; t += doubles, at += doubles) {
            const Doubles v = load(p.g + t) + load(p.low + t), apart = gi - v;
            least_low = least(least_low, v);
            const Doubles bend = most((Kii + load(p.diagonal + t)) - 2 * widened(Ki + t), Doubles{} + 1e-12);
            gain.see(apart > Doubles{} ? apart * apart / bend : nothing, at);
        }
        double bottom = least_low[0];
        for (int u = 1; u < doubles; ++u) bottom = least_low[u] < bottom ? least_low[u] : bottom;
        result.last = gi - bottom;
        if (result.steps == 0) {
            result.first = result.last;
            if (p.relative * result.first > threshold) threshold = p.relative * result.first;
        }
        if (!(result.last > threshold) || result.steps >= p.max_steps) return result;
        ++result.steps;
        j = gain.first();
        const double scale = Kii > p.diagonal[j] ? Kii : p.diagonal[j];
        double bend = Kii + p.diagonal[j] - 2 * double(Ki[j]);
        if (bend < -1e-5 * (scale > 0 ? scale : -scale)) result.indefinite = true;
        if (bend < 1e-12) bend = 1e-12;
        step = (gi - p.g[j]) / bend;
        const double room_i = p.hi[i] - p.a[i], room_j = p.a[j] - p.lo[j];
        if (step >= room_i || step >= room_j) {
            step = room_i < room_j ? room_i : room_j;
            // The one that is stopped lands on its bound exactly.
            p.a[i] = room_i <= room_j ? p.hi[i] : p.a[i] + step;
            p.a[j] = room_j <= room_i ? p.lo[j] : p.a[j] - step;
        } else {
            p.a[i] += step;
            p.a[j] -= step;
        }
        refresh(i);
        refresh(j);
    }
}

// How far two variables go that no constraint joins.
struct Moves {
    double x, y;
};

// The largest gi x + gj y − ½ (Kii x² + 2 Kij x y + Kjj y²) over low_x ≤ x ≤ high_x, low_y ≤ y ≤ high_y: inside,
// or else on the best of the four edges. Kii and Kjj are positive.
struct TwoInBox {
    double gi, gj, Kii, Kij, Kjj, low_x, high_x, low_y, high_y;

    double gain(Moves m) const {
        return gi * m.x + gj * m.y - 0.5 * (Kii * m.x * m.x + 2 * Kij * m.x * m.y + Kjj * m.y * m.y);
    }
    static double within(double v, double low, double high) { return v < low ? low : v > high ? high : v; }
    Moves best() const {
        const double bend = Kjj - Kij * (Kij / Kii);
        if (bend > 1e-12 * Kjj) {
            const double y = (gj - gi * (Kij / Kii)) / bend, x = (gi - Kij * y) / Kii;
            if (x >= low_x && x <= high_x && y >= low_y && y <= high_y) return {x, y};
        }
        Moves found{0, 0};
        double most = -infinite;
        const auto see = [&](Moves m) {
            if (const double v = gain(m); v > most) most = v, found = m;
        };
        const auto on_x = [&](double x) { see({x, within((gj - Kij * x) / Kjj, low_y, high_y)}); };
        const auto on_y = [&](double y) { see({within((gi - Kij * y) / Kii, low_x, high_x), y}); };
        on_x(low_x), on_x(high_x), on_y(low_y), on_y(high_y);
        return found;
    }
};

template <class Real>
BlockResult box_block(const BlockProblem<Real>& p) {
    const int64_t padded = (p.k + 7) / 8 * 8;
    const Doubles nothing = Doubles{} - infinite;
    Doubles start;
    for (int u = 0; u < doubles; ++u) start[u] = u;
    // As in smo_block: −∞ and ∞ take out what cannot grow, or cannot fall.
    const auto refresh = [&](int64_t t) {
        p.up[t] = p.a[t] < p.hi[t] ? 0.0 : -infinite;
        p.low[t] = p.a[t] > p.lo[t] ? 0.0 : infinite;
    };
    const auto leave_out = [&](int64_t t) { p.up[t] = -infinite, p.low[t] = infinite; };
    for (int64_t t = 0; t < p.k; ++t) refresh(t);
    for (int64_t t = p.k; t < padded; ++t) leave_out(t);
    BlockResult result{0, 0, 0, false};
    double threshold = p.absolute;
    Moves step{0, 0};
    int64_t i = 0, j = 0;
    const auto move = [&](int64_t t, double by) {
        const double to = p.a[t] + by;
        // What is stopped lands on its bound exactly.
        p.a[t] = by >= p.hi[t] - p.a[t] || to > p.hi[t]   ? p.hi[t]
                 : by <= p.lo[t] - p.a[t] || to < p.lo[t] ? p.lo[t]
                                                          : to;
        refresh(t);
    };
    for (;;) {
        Best worst{nothing, start};
        Doubles at = start;
        const Real *Ki = p.K + i * p.stride, *Kj = p.K + j * p.stride;
        for (int64_t t = 0; t < padded; t += doubles, at += doubles) {
            const Doubles g = load(p.g + t) - (step.x * widened(Ki + t) + step.y * widened(Kj + t));
            store(p.g + t, g);
            worst.see(most(g + load(p.up + t), -(g + load(p.low + t))), at);
        }
        i = worst.first();
        Ki = p.K + i * p.stride;
        const double gi = p.g[i], grows = gi + p.up[i], falls = -(gi + p.low[i]);
        result.last = grows > falls ? grows : falls;
        if (result.steps == 0) {
            result.first = result.last;
            if (p.relative * result.first > threshold) threshold = p.relative * result.first;
        }
        if (!(result.last > threshold) || result.steps >= p.max_steps) return result;
        ++result.steps;
        // With i moved as far as is best for it alone, what a step of another gains: beside one that has met a
        // bound, or together with one that follows.
        const double Kii = p.diagonal[i] > 1e-12 ? p.diagonal[i] : 1e-12;
        const double room = gi > 0 ? p.hi[i] - p.a[i] : p.lo[i] - p.a[i];
        const bool stopped = gi > 0 ? gi >= room * Kii : gi <= room * Kii;
        const double alone = stopped ? room : gi / Kii, follows = stopped ? 0.0 : 1 / Kii;
        leave_out(i);
        Best gain{nothing, start};
        at = start;
        for (int64_t t = 0; t < padded; t += doubles, at += doubles) {
            const Doubles K = widened(Ki + t), r = load(p.g + t) - alone * K;
            const Doubles apart = most(r + load(p.up + t), -(r + load(p.low + t)));
            const Doubles bend = most(load(p.diagonal + t) - follows * K * K, Doubles{} + 1e-12);
            gain.see(apart > Doubles{} ? apart * apart / bend : nothing, at);
        }
        j = gain.first();
        if (p.diagonal[i] < 0) result.indefinite = true;
        if (p.up[j] != 0 && p.low[j] != 0) {  // there is no other, or none gains
            step = {alone, 0};
        } else {
            const double Kjj = p.diagonal[j] > 1e-12 ? p.diagonal[j] : 1e-12, Kij = double(Ki[j]);
            const double scale = p.diagonal[i] > p.diagonal[j] ? p.diagonal[i] : p.diagonal[j];
            if (p.diagonal[i] * p.diagonal[j] - Kij * Kij < -1e-5 * scale * scale) result.indefinite = true;
            step = TwoInBox{gi,
                            p.g[j],
                            Kii,
                            Kij,
                            Kjj,
                            p.lo[i] - p.a[i],
                            p.hi[i] - p.a[i],
                            p.lo[j] - p.a[j],
                            p.hi[j] - p.a[j]}
                       .best();
            move(j, step.y);
        }
        move(i, step.x);
    }
}

template <class Real, class Rows>
constexpr PanelEntry<Real, Rows> entry{&panel<Real, Rows>, &pull<Real, Rows>};

}  // namespace

extern const KernelTable PEGASOS_TABLE(kernel);
const KernelTable PEGASOS_TABLE(kernel) = {
    entry<float, DensePanelRows<float>>,
    entry<float, SparsePanelRows<float, int32_t>>,
    entry<float, SparsePanelRows<float, int64_t>>,
    entry<double, DensePanelRows<float>>,
    entry<double, DensePanelRows<double>>,
    entry<double, SparsePanelRows<float, int32_t>>,
    entry<double, SparsePanelRows<float, int64_t>>,
    entry<double, SparsePanelRows<double, int32_t>>,
    entry<double, SparsePanelRows<double, int64_t>>,
    {&add<float>, &smo_block<float>, &box_block<float>},
    {&add<double>, &smo_block<double>, &box_block<double>},
};

}  // namespace pegasos
