// The kernels of simd/kernels.hpp, compiled with PEGASOS_ISA set to the name of the instruction set this copy is for.
#include "pegasos/simd/kernels.hpp"

#include "pegasos/simd/vectors.hpp"

namespace pegasos::simd {
namespace {

using std::int64_t;
static_assert(B == lane_block);
// later + k begins with 8 − k zeros, followed by k ones.
constexpr double later[2 * B] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};

template <class T>
double dot(const T* x, const double* w, int64_t n) {
    Vec a0{}, a1{}, a2{}, a3{};
    int64_t j = 0;
    for (; j + 4 * B <= n; j += 4 * B) {
        a0 += load(x + j) * load(w + j);
        a1 += load(x + j + B) * load(w + j + B);
        a2 += load(x + j + 2 * B) * load(w + j + 2 * B);
        a3 += load(x + j + 3 * B) * load(w + j + 3 * B);
    }
    for (; j + B <= n; j += B) a0 += load(x + j) * load(w + j);
    if (j < n && n >= B) {
        // The last eight once more, without those that have been counted: faster than one by one.
        const Vec fresh = load(later + (n - j));
        a1 += load(x + n - B) * (load(w + n - B) * fresh);
        j = n;
    }
    double tail = 0;
    for (; j < n; ++j) tail += double(x[j]) * w[j];
    return sum((a0 + a1) + (a2 + a3)) + tail;
}

template <class T>
void axpy(double c, const T* x, double* w, int64_t n) {
    int64_t j = 0;
    for (; j + B <= n; j += B) store(w + j, load(w + j) + c * load(x + j));
    for (; j < n; ++j) w[j] += c * double(x[j]);
}

template <class T>
double squared_norm(const T* x, int64_t n) {
    Vec a{};
    int64_t j = 0;
    for (; j + B <= n; j += B) {
        const Vec v = load(x + j);
        a += v * v;
    }
    double tail = 0;
    for (; j < n; ++j) tail += double(x[j]) * double(x[j]);
    return sum(a) + tail;
}

template <class T>
void digest(const void* from, int64_t n, int64_t at, std::uint64_t* sums) {
    using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    typedef Word Words __attribute__((vector_size(64)));
    typedef Word LooseWords __attribute__((vector_size(64), aligned(4), may_alias));
    constexpr int64_t width = 64 / sizeof(Word);
    const char* x = static_cast<const char*>(from);
    const auto word = [x](int64_t k) {
        Word w;
        __builtin_memcpy(&w, x + k * int64_t(sizeof(Word)), sizeof w);
        return w;
    };
    // so_far: the sum of all sums so far, so that of B blocks block b is in it B − b times.
    Words sum{}, so_far{};
    const int64_t blocks = n / width;
    for (int64_t b = 0; b < blocks; ++b) {
        sum += *reinterpret_cast<const LooseWords*>(x + b * 64);
        so_far += sum;
    }
    Word total = 0, moment = 0;
    for (int64_t l = 0; l < width; ++l) {
        total += sum[l];
        moment += Word(at + l) * sum[l] + Word(width) * (Word(blocks) * sum[l] - so_far[l]);
    }
    for (int64_t k = blocks * width; k < n; ++k) {
        total += word(k);
        moment += Word(at + k) * word(k);
    }
    sums[0] += total;
    sums[1] += moment;
}

template <class T>
void dot_four(const T* const* x, const double* w, int64_t n, double* out) {
    Vec a[4]{};
    int64_t j = 0;
    for (; j + B <= n; j += B) {
        const Vec wj = load(w + j);
        for (int r = 0; r < 4; ++r) a[r] += load(x[r] + j) * wj;
    }
    if (j < n && n >= B) {
        const Vec wj = load(w + n - B) * load(later + (n - j));
        for (int r = 0; r < 4; ++r) a[r] += load(x[r] + n - B) * wj;
        j = n;
    }
    for (int r = 0; r < 4; ++r) {
        out[r] = sum(a[r]);
        for (int64_t k = j; k < n; ++k) out[r] += double(x[r][k]) * w[k];
    }
}

template <class T>
void axpy_four(const double* c, const T* const* x, double* w, int64_t n) {
    int64_t j = 0;
    for (; j + B <= n; j += B)
        store(w + j, load(w + j) + ((c[0] * load(x[0] + j) + c[1] * load(x[1] + j)) +
                                    (c[2] * load(x[2] + j) + c[3] * load(x[3] + j))));
    for (; j < n; ++j)
        w[j] += (c[0] * double(x[0][j]) + c[1] * double(x[1][j])) +
                (c[2] * double(x[2][j]) + c[3] * double(x[3][j]));
}

#ifdef __AVX512F__
// Eight entries of a row at a time, the last few under a mask. Columns of a row are distinct, so that
// scattering what was gathered loses nothing.
struct Eight {
    __mmask8 mask;
    // A mask the compiler knows to be full would let it leave the target of a gather as it was, which the
    // processor then waits for.
    explicit Eight(int64_t left) : mask(__mmask8(left >= 8 ? 0xff : (1u << left) - 1)) {
        asm("" : "+Yk"(mask));
    }

    __m512d values(const float* x) const {
        return _mm512_maskz_cvtps_pd(mask, _mm256_maskz_loadu_ps(mask, x));
    }
    __m512d values(const double* x) const { return _mm512_maskz_loadu_pd(mask, x); }
    __m256i columns(Bounded<std::int32_t> at) const {
        return _mm256_min_epu32(_mm256_maskz_loadu_epi32(mask, at.index), _mm256_set1_epi32(int(at.last)));
    }
    __m512i columns(Bounded<std::int64_t> at) const {
        return _mm512_maskz_min_epu64(mask, _mm512_maskz_loadu_epi64(mask, at.index),
                                      _mm512_set1_epi64(std::int64_t(at.last)));
    }
    __m512d gather(__m256i at, const double* w) const {
        return _mm512_mask_i32gather_pd(_mm512_setzero_pd(), mask, at, w, 8);
    }
    __m512d gather(__m512i at, const double* w) const {
        return _mm512_mask_i64gather_pd(_mm512_setzero_pd(), mask, at, w, 8);
    }
    void scatter(double* w, __m256i at, __m512d v) const { _mm512_mask_i32scatter_pd(w, mask, at, v, 8); }
    void scatter(double* w, __m512i at, __m512d v) const { _mm512_mask_i64scatter_pd(w, mask, at, v, 8); }
};

template <class T, class I>
double gathered_dot(const T* x, Bounded<I> at, int64_t nnz, const double* w) {
    const Eight all(8);
    __m512d even = _mm512_setzero_pd(), odd = even;
    int64_t k = 0;
    for (; k + 16 <= nnz; k += 16) {
        even = _mm512_fmadd_pd(all.gather(all.columns(at + k), w), all.values(x + k), even);
        odd = _mm512_fmadd_pd(all.gather(all.columns(at + k + 8), w), all.values(x + k + 8), odd);
    }
    for (; k < nnz; k += 8) {
        const Eight last(nnz - k);
        even = _mm512_fmadd_pd(last.gather(last.columns(at + k), w), last.values(x + k), even);
    }
    return sum(Vec(even) + Vec(odd));
}
template <class T, class I>
void scattered_axpy(double c, const T* x, Bounded<I> at, int64_t nnz, double* w) {
    const __m512d factor = _mm512_set1_pd(c);
    for (int64_t k = 0; k < nnz; k += 8) {
        const Eight some(nnz - k);
        const auto j = some.columns(at + k);
        some.scatter(w, j, _mm512_fmadd_pd(factor, some.values(x + k), some.gather(j, w)));
    }
}
#define PEGASOS_GATHER(kernel) kernel
#else
#define PEGASOS_GATHER(kernel) nullptr
#endif

// Two features at a time into two accumulators for each of N blocks of lanes.
template <int N, class T, class Index>
inline void dot_blocks(const T* x, Index at, int64_t nnz, const double* W, int L, double* out) {
    Vec even[N]{}, odd[N]{};
    int64_t k = 0;
    for (; k + 2 <= nnz; k += 2) {
        const double x0 = x[k], x1 = x[k + 1];
        const double *w0 = W + at[k] * L, *w1 = W + at[k + 1] * L;
        for (int b = 0; b < N; ++b) {
            even[b] += x0 * load(w0 + b * B);
            odd[b] += x1 * load(w1 + b * B);
        }
    }
    if (k < nnz) {
        const double* w0 = W + at[k] * L;
        for (int b = 0; b < N; ++b) even[b] += double(x[k]) * load(w0 + b * B);
    }
    for (int b = 0; b < N; ++b) store(out + b * B, even[b] + odd[b]);
}

template <class T, class Index>
inline void dot_lanes_at(const T* x, Index at, int64_t nnz, const double* W, int L, double* out) {
    int l = 0;
    for (; l + 4 * B <= L; l += 4 * B) dot_blocks<4>(x, at, nnz, W + l, L, out + l);
    for (; l + 2 * B <= L; l += 2 * B) dot_blocks<2>(x, at, nnz, W + l, L, out + l);
    for (; l < L; l += B) dot_blocks<1>(x, at, nnz, W + l, L, out + l);
}

template <class T, class Index>
inline void axpy_lanes_at(const double* c, const T* x, Index at, int64_t nnz, double* W, int L) {
    for (int l = 0; l < L; l += B) {
        const Vec cl = load(c + l);
        double* Wl = W + l;
        for (int64_t k = 0; k < nnz; ++k) {
            double* w = Wl + at[k] * L;
            store(w, load(w) + cl * double(x[k]));
        }
    }
}

template <class T>
constexpr Kernels<T> table{
    dot<T>,
    axpy<T>,
    squared_norm<T>,
    digest<T>,
    dot_four<T>,
    axpy_four<T>,
    PEGASOS_GATHER((gathered_dot<T, std::int32_t>)),
    PEGASOS_GATHER((gathered_dot<T, std::int64_t>)),
    PEGASOS_GATHER((scattered_axpy<T, std::int32_t>)),
    PEGASOS_GATHER((scattered_axpy<T, std::int64_t>)),
    [](const T* x, const double* W, int64_t n, int L, double* out) {
        dot_lanes_at(x, Consecutive{}, n, W, L, out);
    },
    [](const double* c, const T* x, double* W, int64_t n, int L) {
        axpy_lanes_at(c, x, Consecutive{}, n, W, L);
    },
    [](const T* x, Masked<std::int32_t> at, int64_t nnz, const double* W, int L, double* out) {
        dot_lanes_at(x, at, nnz, W, L, out);
    },
    [](const T* x, Masked<std::int64_t> at, int64_t nnz, const double* W, int L, double* out) {
        dot_lanes_at(x, at, nnz, W, L, out);
    },
    [](const double* c, const T* x, Masked<std::int32_t> at, int64_t nnz, double* W, int L) {
        axpy_lanes_at(c, x, at, nnz, W, L);
    },
    [](const double* c, const T* x, Masked<std::int64_t> at, int64_t nnz, double* W, int L) {
        axpy_lanes_at(c, x, at, nnz, W, L);
    },
};

// A tile of AᵀA: I × 8J entries held in registers while the rows stream by.
template <int I, int J>
inline void syrk_tile(const double* A, int64_t rows, int N, int i, int j, double* M) {
    Vec c[I][J]{};
    for (int64_t r = 0; r < rows; ++r) {
        const double* a = A + r * N;
        Vec b[J];
        for (int q = 0; q < J; ++q) b[q] = load(a + j + q * B);
        for (int p = 0; p < I; ++p)
            for (int q = 0; q < J; ++q) c[p][q] += a[i + p] * b[q];
    }
    for (int p = 0; p < I; ++p)
        for (int q = 0; q < J; ++q) {
            double* m = M + int64_t(i + p) * N + j + q * B;
            store(m, load(m) + c[p][q]);
        }
}

void syrk_kernel(const double* A, int64_t rows, int N, double* M) {
#ifdef __AVX512F__
    constexpr int I = 8, J = 2;  // 16 of 32 registers
#else
    constexpr int I = 4, J = 1;
#endif
    int j = 0;
    for (; j + J * B <= N; j += J * B)
        for (int i = 0; i < j + J * B; i += I) syrk_tile<I, J>(A, rows, N, i, j, M);
    for (; j < N; j += B)
        for (int i = 0; i < j + B; i += I) syrk_tile<I, 1>(A, rows, N, i, j, M);
}

}  // namespace

extern const Kernels<float> PEGASOS_TABLE(float);
extern const Kernels<double> PEGASOS_TABLE(double);
const Kernels<float> PEGASOS_TABLE(float) = table<float>;
const Kernels<double> PEGASOS_TABLE(double) = table<double>;
extern const Syrk PEGASOS_TABLE(syrk);
const Syrk PEGASOS_TABLE(syrk) = syrk_kernel;

}  // namespace pegasos::simd
