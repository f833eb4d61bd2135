// The kernels of linear/margin_lanes.hpp, compiled with PEGASOS_ISA set to the name of the instruction set.
#include "pegasos/linear/margin_lanes.hpp"

#include <cstring>

#include "pegasos/simd/vectors.hpp"

namespace pegasos {
namespace {

using std::int64_t;

template <int L>
struct Vector;
template <>
struct Vector<8> {
    typedef float Floats __attribute__((vector_size(32), may_alias));
    typedef int Ints __attribute__((vector_size(32)));
    static constexpr Ints number = {0, 1, 2, 3, 4, 5, 6, 7};
};
template <>
struct Vector<16> {
    typedef float Floats __attribute__((vector_size(64), may_alias));
    typedef int Ints __attribute__((vector_size(64)));
    static constexpr Ints number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};

template <class V>
V least(V a, V b) {
    return a < b ? a : b;
}
template <class V>
V most(V a, V b) {
    return a > b ? a : b;
}
template <class Ints>
bool any(Ints v) {
    std::uint64_t bits[sizeof v / 8], all = 0;
    std::memcpy(bits, &v, sizeof v);
    for (const std::uint64_t b : bits) all |= b;
    return all != 0;
}
template <int L>
void add(double* sum, double c, typename Vector<L>::Floats v) {
    float parts[L];
    std::memcpy(parts, &v, sizeof parts);
    for (int l = 0; l < L; l += simd::B)
        simd::store(sum + l, simd::load(sum + l) + c * simd::load(parts + l));
}

template <int L, class T, class Index>
inline void visit(const T* x, Index at, int64_t nnz, MarginVisit& v) {
    using F = typename Vector<L>::Floats;
    const auto weights = [&](int64_t k) -> F& { return *reinterpret_cast<F*>(v.W + at[k] * L); };
    const auto lanes = [](const float* p) -> const F& { return *reinterpret_cast<const F*>(p); };
    F s0{}, s1{}, s2{}, s3{};
    int64_t k = 0;
    for (; k + 4 <= nnz; k += 4) {
        s0 += float(x[k]) * weights(k);
        s1 += float(x[k + 1]) * weights(k + 1);
        s2 += float(x[k + 2]) * weights(k + 2);
        s3 += float(x[k + 3]) * weights(k + 3);
    }
    for (; k < nnz; ++k) s0 += float(x[k]) * weights(k);
    const F zero{}, top = zero + v.shape.most, used = lanes(v.used);
    const F z = ((s0 + s1) + (s2 + s3)) + (v.feature * lanes(v.bias) + lanes(v.offset));
    const F y = Vector<L>::number == v.own ? zero + 1 : zero - 1;
    const F a = y * lanes(v.u), slope = 1 - y * z;
    const float half = v.shape.bend / 2;
    const float steep = v.shape.bend > 0 ? 1 / v.shape.bend : 1e30f;
    const auto maximiser = [&](F g) { return least(most(g * steep, zero), top); };
    const F best = maximiser(slope);
    const F loss = used * (best * slope - half * (best * best));
    const F gap = loss - used * (a * slope - half * (a * a));
    add<L>(v.value, v.c, loss);
    add<L>(v.gap, v.c, gap);

    // A variable between its bounds was left where this is zero: how far it is from that, scores have moved
    // since.
    const F ascent = slope - v.shape.bend * a;
    const F open = used * (((a > zero) & (a < top)) ? zero + 1 : zero);
    *reinterpret_cast<F*>(v.moved) += open * ascent * ascent;
    *reinterpret_cast<F*>(v.open) += open;

    const float stiff = v.q + v.shape.bend, inverse = stiff > 1e-30f ? 1 / stiff : 1e30f;
    const F next = used * least(most(a + ascent * inverse, zero), top);
    const F change = next - a;
    *reinterpret_cast<F*>(v.mean) = y * (a + change * v.rest);
    if (any(change != zero)) {
        v.settled = false;
        *reinterpret_cast<F*>(v.u) = y * next;
        const F c = y * change * v.share;
        for (k = 0; k < nnz; ++k) weights(k) += c * float(x[k]);
        *reinterpret_cast<F*>(v.bias) += c * v.feature;
    } else {
        const F moved = used * (most(maximiser(slope + v.slack) - a, a - maximiser(slope - v.slack)));
        v.settled = !any(moved != zero);
    }
}

void square_kernel(const float* W, int64_t rows, int L, double* squares) {
    for (int l = 0; l < L; l += simd::B) {
        simd::Vec sum{};
        for (int64_t j = 0; j < rows; ++j) {
            const simd::Vec w = simd::load(W + j * L + l);
            sum += w * w;
        }
        simd::store(squares + l, simd::load(squares + l) + sum);
    }
}

template <int L, class T>
void dense(const T* x, int64_t n, MarginVisit& v) {
    visit<L>(x, simd::Consecutive{}, n, v);
}
template <int L, class T, class I>
void sparse(const T* x, Masked<I> at, int64_t nnz, MarginVisit& v) {
    visit<L>(x, at, nnz, v);
}

template <class T>
constexpr MarginKernels<T> table{
    {dense<8, T>, dense<16, T>},
    {sparse<8, T, std::int32_t>, sparse<16, T, std::int32_t>},
    {sparse<8, T, std::int64_t>, sparse<16, T, std::int64_t>},
};

}  // namespace

extern const MarginKernels<float> PEGASOS_TABLE(margin_float);
extern const MarginKernels<double> PEGASOS_TABLE(margin_double);
extern const SquareLanes PEGASOS_TABLE(squares);
const MarginKernels<float> PEGASOS_TABLE(margin_float) = table<float>;
const MarginKernels<double> PEGASOS_TABLE(margin_double) = table<double>;
const SquareLanes PEGASOS_TABLE(squares) = square_kernel;

}  // namespace pegasos
