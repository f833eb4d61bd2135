// Eight doubles as one value, lowered by the compiler to whatever registers there are. Only for the sources
// that are compiled once for each instruction set: nothing here may be shared between their copies.
#pragma once
#include <cstdint>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace pegasos::simd {
namespace {

constexpr int B = 8;

// Values lie where vectors belong; what may lie anywhere in memory has types of its own, because templates
// forget attributes and would take the one for the other.
typedef double Vec __attribute__((vector_size(64)));
typedef double LooseVec __attribute__((vector_size(64), aligned(8), may_alias));
typedef float LooseVecF __attribute__((vector_size(32), aligned(4), may_alias));

inline Vec load(const double* p) { return *reinterpret_cast<const LooseVec*>(p); }
inline Vec load(const float* p) {
#ifdef __AVX512F__
    return Vec(_mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p)));  // GCC makes five instructions of the other
#else
    return __builtin_convertvector(*reinterpret_cast<const LooseVecF*>(p), Vec);
#endif
}
inline void store(double* p, Vec v) { *reinterpret_cast<LooseVec*>(p) = v; }
inline double sum(Vec v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

// For text that serves eight rows at once and the last few, one by one: V is Vec or double.
template <class V>
V load_as(const double* p) {
    if constexpr (sizeof(V) == sizeof(double))
        return *p;
    else
        return load(p);
}
template <class V>
void store_as(double* p, V v) {
    if constexpr (sizeof(V) == sizeof(double))
        *p = v;
    else
        store(p, v);
}
template <class V>
V least(V a, V b) {
    return a < b ? a : b;
}
template <class V>
V most(V a, V b) {
    return a < b ? b : a;
}

// Dense and sparse rows differ only in where feature k lives; dense ones have it at k.
struct Consecutive {
    std::int64_t operator[](std::int64_t k) const { return k; }
};

}  // namespace
}  // namespace pegasos::simd

#define PEGASOS_JOIN_(a, b) a##b
#define PEGASOS_JOIN(a, b) PEGASOS_JOIN_(a, b)
#define PEGASOS_TABLE(type) PEGASOS_JOIN(PEGASOS_JOIN(table_, type), PEGASOS_JOIN(_, PEGASOS_ISA))
