#include "pegasos/passes.hpp"

#include <algorithm>
#include <cmath>

#include "pegasos/parallel.hpp"
#include "pegasos/solver.hpp"

namespace pegasos {
namespace {

constexpr int64_t stretch = 2048;  // rows a task looks at

template <class F>
auto with_rows(const AnyRows& rows, F&& f) {
    return std::visit(std::forward<F>(f), rows);
}

template <class F>
void each_stretch(int64_t rows, int threads, F&& f) {
    parallel_for(threads, (rows + stretch - 1) / stretch,
                 [&](int64_t t) { f(t, t * stretch, std::min(rows, (t + 1) * stretch)); });
}

template <class T, class I>
void check_row(const CsrRows<T, I>& r, int64_t i, Inspection& found) {
    int64_t previous = -1;
    for (int64_t p = r.indptr[i]; p < int64_t(r.indptr[i + 1]); ++p) {
        const int64_t j = int64_t(r.indices[p]);
        if (j < 0 || j >= r.cols) {
            if (found.bad_index_row < 0) found.bad_index_row = i, found.bad_index = j;
            return;
        }
        found.repeated |= j <= previous;
        previous = j;
    }
}
template <class T>
void check_row(const DenseRows<T>&, int64_t, Inspection&) {}

template <class T, class I>
void check_pointers(const CsrRows<T, I>& r, int64_t stored, Inspection& found) {
    if (r.indptr[0] != 0) found.bad_pointer_row = 0;
    for (int64_t i = 0; i < r.rows && found.bad_pointer_row < 0; ++i)
        if (r.indptr[i + 1] < r.indptr[i] || int64_t(r.indptr[i + 1]) > stored) found.bad_pointer_row = i;
}
template <class T>
void check_pointers(const DenseRows<T>&, int64_t, Inspection&) {}

}  // namespace

Inspection inspect(const AnyRows& any, int64_t stored, double* squared_norms, int threads) {
    return with_rows(any, [&](const auto& rows) {
        Inspection all;
        check_pointers(rows, stored, all);
        if (all.bad_pointer_row >= 0) return all;
        std::vector<Inspection> parts((rows.rows + stretch - 1) / stretch);
        each_stretch(rows.rows, threads, [&](int64_t t, int64_t first, int64_t last) {
            Inspection& found = parts[t];
            for (int64_t i = first; i < last; ++i) {
                check_row(rows, i, found);
                squared_norms[i] = rows.squared_norm(i);
                // ‖x‖² is finite only if every entry is; a finite row may still overflow it.
                if (!std::isfinite(squared_norms[i]) && found.bad_value_row < 0)
                    rows.each(i, [&](int64_t j, double x) {
                        if (!std::isfinite(x) && found.bad_value_row < 0)
                            found.bad_value_row = i, found.bad_value_col = j;
                    });
            }
        });
        for (const auto& p : parts) {
            if (all.bad_value_row < 0) all.bad_value_row = p.bad_value_row, all.bad_value_col = p.bad_value_col;
            if (all.bad_index_row < 0) all.bad_index_row = p.bad_index_row, all.bad_index = p.bad_index;
            all.repeated |= p.repeated;
        }
        return all;
    });
}

void scores(const AnyRows& any, Subset subset, const double* W, const double* b, int K, double* Z, int threads) {
    with_rows(any, [&](const auto& rows) {
        const int64_t n = rows.cols;
        if (K == 1) {
            each_stretch(subset.count, threads, [&](int64_t, int64_t first, int64_t last) {
                for (int64_t r = first; r < last; ++r) Z[r] = rows.dot(subset[r], W) + b[0];
            });
            return;
        }
        const int L = (K + simd::lane_block - 1) / simd::lane_block * simd::lane_block;
        Buffer lanes(n * L);
        for (int k = 0; k < K; ++k)
            for (int64_t j = 0; j < n; ++j) lanes[j * L + k] = W[k * n + j];
        each_stretch(subset.count, threads, [&](int64_t, int64_t first, int64_t last) {
            Buffer z(L);
            for (int64_t r = first; r < last; ++r) {
                rows.dot_lanes(subset[r], lanes.data(), L, z.data());
                for (int k = 0; k < K; ++k) Z[r * K + k] = z[k] + b[k];
            }
        });
    });
}

void adjoint(const AnyRows& any, Subset subset, const double* C, int K, double* W, int threads) {
    with_rows(any, [&](const auto& rows) {
        const int64_t n = rows.cols;
        const int L = K == 1 ? 1 : (K + simd::lane_block - 1) / simd::lane_block * simd::lane_block;
        // As many private copies of W as the data are worth.
        const int64_t blocks = std::clamp<int64_t>(rows.nnz() / (16 * (n + 1) + 65536), 1, 16);
        std::vector<Buffer> parts(blocks);
        parallel_for(threads, blocks, [&](int64_t t) {
            Buffer &mine = parts[t], c(L);
            mine.assign(n * L, 0.0);
            for (int64_t r = subset.count * t / blocks; r < subset.count * (t + 1) / blocks; ++r) {
                const double* cr = C + r * K;
                if (std::all_of(cr, cr + K, [](double v) { return v == 0; })) continue;
                if (K == 1) {
                    rows.axpy(subset[r], cr[0], mine.data());
                } else {
                    std::copy_n(cr, K, c.begin());
                    rows.axpy_lanes(subset[r], c.data(), mine.data(), L);
                }
            }
        });
        for (int k = 0; k < K; ++k)
            for (int64_t j = 0; j < n; ++j) {
                double sum = 0;
                for (const auto& p : parts) sum += p[j * L + k];
                W[k * n + j] = sum;
            }
    });
}

void gram(const AnyRows& any, Subset subset, const double* d, double* M, int threads) {
    with_rows(any, [&](const auto& rows) {
        const int64_t n = rows.cols, N = n + 1;
        const int64_t blocks = std::clamp<int64_t>(rows.nnz() / (16 * N * N + 65536), 1, 16);
        std::vector<Buffer> parts(blocks);
        parallel_for(threads, blocks, [&](int64_t t) {
            Buffer& mine = parts[t];
            mine.assign(N * N, 0.0);
            std::vector<std::pair<int64_t, double>> row;
            for (int64_t r = subset.count * t / blocks; r < subset.count * (t + 1) / blocks; ++r) {
                if (d[r] == 0) continue;
                row.clear();
                rows.each(subset[r], [&](int64_t j, double x) { row.emplace_back(j, x); });
                row.emplace_back(n, 1.0);
                for (std::size_t a = 0; a < row.size(); ++a) {  // indices increase: only the upper triangle is touched
                    const double da = d[r] * row[a].second;
                    double* line = &mine[row[a].first * N];
                    for (std::size_t b = a; b < row.size(); ++b) line[row[b].first] += da * row[b].second;
                }
            }
        });
        for (int64_t j = 0; j < N; ++j)
            for (int64_t k = j; k < N; ++k) {
                double sum = 0;
                for (const auto& p : parts) sum += p[j * N + k];
                M[j * N + k] = M[k * N + j] = sum;
            }
    });
}

void column_scales(const AnyRows& any, double* scale) {
    with_rows(any, [&](const auto& rows) {
        std::fill_n(scale, rows.cols, 0.0);
        for (int64_t i = 0; i < rows.rows; ++i)
            rows.each(i, [&](int64_t j, double x) { scale[j] = std::max(scale[j], std::abs(x)); });
    });
}

}  // namespace pegasos
