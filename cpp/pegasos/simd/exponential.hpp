// eˣ of vectors of floats or doubles. Only for the sources that are compiled once for each instruction set:
// nothing here may be shared between their copies.
#pragma once

namespace pegasos::simd {
namespace {

// `magic` rounds to whole numbers when it is added and taken away; `terms` of Taylor's series are enough.
template <class Real>
struct Exponential;
template <>
struct Exponential<float> {
    static constexpr float magic = 12582912.0f, floor = -87.0f, ceiling = 88.0f;
    static constexpr int mantissa = 23, bias = 127, terms = 7;
};
template <>
struct Exponential<double> {
    static constexpr double magic = 6755399441055744.0, floor = -708.0, ceiling = 709.0;
    static constexpr int mantissa = 52, bias = 1023, terms = 13;
};

// eˣ: x = n ln 2 + r with |r| ≤ ln 2 / 2, and Taylor's series for e^r, whose rest is below the last place. Bits is the
// vector of as many integers.
template <class Real, class Bits, class V>
V exponential(V x) {
    using S = Exponential<Real>;
    const V zero{}, low_end = zero + S::floor, high_end = zero + S::ceiling;
    const V above = x < low_end ? low_end : x, within = above < high_end ? above : high_end;
    const V n = (within * Real(1.44269504088896340736) + S::magic) - S::magic;
    // ln 2 in two parts, the first short enough that n times it is exact.
    constexpr Real high = sizeof(Real) == 4 ? Real(0.693359375) : Real(6.93147180369123816490e-01);
    constexpr Real low = sizeof(Real) == 4 ? Real(-2.12194440e-4) : Real(1.90821492927058770002e-10);
    const V r = (within - n * high) - n * low;
    constexpr double inverse[] = {
        1,         1,          1. / 2,      1. / 6,       1. / 24,       1. / 120,       1. / 720,
        1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800};
    V e = zero + Real(inverse[S::terms]);
#pragma GCC unroll 16
    for (int t = S::terms - 1; t >= 0; --t) e = e * r + Real(inverse[t]);
    Bits power = __builtin_convertvector(n, Bits);
    power = (power + S::bias) << S::mantissa;
    e *= (V)power;
    return x < zero + S::floor ? zero : e;
}

}  // namespace
}  // namespace pegasos::simd
