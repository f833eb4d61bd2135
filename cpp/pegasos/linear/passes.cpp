#include "pegasos/linear/passes.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "pegasos/core/parallel.hpp"
#include "pegasos/linear/solver.hpp"

namespace pegasos {
namespace {

constexpr int64_t stretch = 2048;         // rows a task looks at
constexpr int64_t tile = 64;              // rows that are looked at again while they are in the cache
constexpr int64_t prefetch_distance = 4;  // rows between asking the cache for a sparse row and reading it

template <class F>
auto with_rows(const AnyRows& rows, F&& f) {
    return std::visit(std::forward<F>(f), rows);
}

template <class F>
void each_stretch(int64_t rows, int threads, F&& f) {
    parallel_for(threads, (rows + stretch - 1) / stretch,
                 [&](int64_t t) { f(t, t * stretch, std::min(rows, (t + 1) * stretch)); });
}

// Entries of that many rows.
template <class Rows>
int64_t entries_of(const Rows& rows, int64_t count) {
    return int64_t(double(rows.nnz()) * double(count) / double(std::max<int64_t>(1, rows.rows)));
}

// Whether columns increase within each of the rows first … last − 1: if so, they descend only from a row to
// the next. One loop over all entries, which is vectorised.
template <class T, class I>
bool increasing(const CsrRows<T, I>& r, int64_t first, int64_t last) {
    const auto [begin, end] = r.extent(first, last);
    I descents = 0, between_rows = 0;
    for (int64_t p = begin; p + 1 < end; ++p) descents += I(r.indices[p + 1] <= r.indices[p]);
    for (int64_t i = first; i < last; ++i) {
        const auto [p, stop] = r.extent(i);
        if (p > begin && p < stop) between_rows += I(r.indices[p] <= r.indices[p - 1]);
    }
    return descents == between_rows;
}

template <class T, class I>
void check_indices(const CsrRows<T, I>& r, int64_t first, int64_t last, Inspection& found) {
    const auto wrong = [&](I j) { return j < 0 || j >= r.cols; };
    const bool in_order = increasing(r, first, last);
    for (int64_t i = first; i < last; ++i) {
        const auto row = r.extent(i);
        const I *begin = r.indices + row.begin, *end = r.indices + row.end;
        if (begin == end) continue;
        // Columns that increase are all inside if the first and the last are.
        const bool row_in_order = in_order || std::adjacent_find(begin, end, std::greater_equal<I>()) == end;
        found.repeated |= !row_in_order;
        const bool outside = row_in_order ? wrong(*begin) || wrong(end[-1]) : std::any_of(begin, end, wrong);
        if (outside && found.bad_index_row < 0) {
            const I* which = std::find_if(begin, end, wrong);
            found.bad_index_row = i, found.bad_index = int64_t(which == end ? *begin : *which);
        }
    }
}
template <class T>
void check_indices(const DenseRows<T>&, int64_t, int64_t, Inspection&) {}

template <class T, class I>
void check_pointers(const CsrRows<T, I>& r, Inspection& found) {
    if (r.indptr[0] != 0) found.bad_pointer_row = 0;
    for (int64_t i = 0; i < r.rows && found.bad_pointer_row < 0; ++i)
        if (r.indptr[i + 1] < r.indptr[i] || int64_t(r.indptr[i + 1]) > r.stored) found.bad_pointer_row = i;
}
template <class T>
void check_pointers(const DenseRows<T>&, Inspection&) {}

}  // namespace

Inspection inspect(const AnyRows& any, double* squared_norms, int threads) {
    return with_rows(any, [&](const auto& rows) {
        Inspection all;
        check_pointers(rows, all);
        if (all.bad_pointer_row >= 0) return all;
        std::vector<Inspection> parts((rows.rows + stretch - 1) / stretch);
        const int useful = useful_threads(threads, rows.nnz());
        each_stretch(rows.rows, useful, [&](int64_t t, int64_t first, int64_t last) {
            Inspection& found = parts[t];
            // A tile is looked at twice, while the next one is on its way to the cache.
            for (int64_t begin = first; begin < last; begin += tile) {
                const int64_t end = std::min(last, begin + tile);
                check_indices(rows, begin, end, found);
                digest_rows(rows, begin, end, found.digest);
                for (int64_t i = begin; i < end; ++i) {
                    if (i + tile < rows.rows) rows.prefetch(i + tile);
                    squared_norms[i] = rows.squared_norm(i);
                    // ‖x‖² is finite only if every entry is; a finite row may still overflow it.
                    if (!std::isfinite(squared_norms[i]) && found.bad_value_row < 0)
                        rows.each(i, [&](int64_t j, double x) {
                            if (!std::isfinite(x) && found.bad_value_row < 0)
                                found.bad_value_row = i, found.bad_value_col = j;
                        });
                }
            }
        });
        for (const auto& p : parts) {
            if (all.bad_value_row < 0)
                all.bad_value_row = p.bad_value_row, all.bad_value_col = p.bad_value_col;
            if (all.bad_index_row < 0) all.bad_index_row = p.bad_index_row, all.bad_index = p.bad_index;
            all.repeated |= p.repeated;
            all.digest += p.digest;
        }
        return all;
    });
}

bool changed(const AnyRows& any, const Digest& a, const Digest& b) {
    return with_rows(any, [&](const auto& rows) { return !same_digest(rows, a, b); });
}

Digest digest_of(const AnyRows& any, int threads) {
    return with_rows(any, [&](const auto& rows) {
        std::vector<Digest> parts((rows.rows + stretch - 1) / stretch);
        each_stretch(rows.rows, threads, [&](int64_t t, int64_t first, int64_t last) {
            digest_rows(rows, first, last, parts[t]);
        });
        Digest all;
        for (const auto& p : parts) all += p;
        return all;
    });
}

namespace {

// Whether all columns of the rows first … last − 1 exist: one loop over all entries, which is vectorised.
template <class T, class I>
bool columns_exist(const CsrRows<T, I>& r, int64_t first, int64_t last) {
    using Unsigned = std::make_unsigned_t<I>;
    const auto [begin, end] = r.extent(first, last);
    const Unsigned largest = Unsigned(r.bounded(0).last);
    Unsigned any = 0;
    for (int64_t p = begin; p < end; ++p) any |= Unsigned(r.indices[p]) | (largest - Unsigned(r.indices[p]));
    return I(any) >= 0;  // the sign of an index that is negative, or larger than the largest
}
template <class T>
bool columns_exist(const DenseRows<T>&, int64_t, int64_t) {
    return true;
}

// z (a stretch of Z's column k0 and the count − 1 after it) = scores of the rows first … last − 1.
template <class Rows>
void score_rows(const Rows& rows, Subset subset, const double* W, const double* b, int K, int k0, int count,
                int64_t first, int64_t last, double* Z) {
    int64_t r = first;
    if (K == 1) {
        if constexpr (!Rows::sparse)  // they share what is loaded of the weights
            for (; r + 4 <= last; r += 4) {
                const int64_t i[4] = {subset[r], subset[r + 1], subset[r + 2], subset[r + 3]};
                rows.dot_four(i, W, Z + r);
                for (int k = 0; k < 4; ++k) Z[r + k] += b[0];
            }
        for (; r < last; ++r) {
            if (r + prefetch_distance < subset.count) rows.prefetch(subset[r + prefetch_distance]);
            Z[r] = rows.dot_bounded(subset[r], W) + b[0];
        }
        return;
    }
    double z[simd::lane_block];
    for (; r < last; ++r) {
        if (r + 1 < last) rows.prefetch_weights(subset[r + 1], W, simd::lane_block);
        rows.dot_lanes(subset[r], W, simd::lane_block, z);
        for (int k = 0; k < count; ++k) Z[r * K + k0 + k] = z[k] + b[k0 + k];
    }
}

// W += Σ C[r] x_r over the same rows, leaving out those with C[r] = 0; single outputs four rows at a time.
template <class Rows>
void add_rows(const Rows& rows, Subset subset, const double* C, int K, int k0, int count, int64_t first,
              int64_t last, double* W) {
    if (K == 1) {
        int64_t waiting[4];
        double c[4];
        int used = 0;
        for (int64_t r = first; r < last; ++r) {
            waiting[used] = subset[r], c[used] = C[r];
            used += C[r] != 0;
            if (used == 4) {
                rows.axpy_four(waiting, c, W);
                used = 0;
            }
        }
        for (int k = 0; k < used; ++k) rows.axpy(waiting[k], c[k], W);
        return;
    }
    // The weights of the next row to be added are fetched while this one is.
    const auto used = [&](int64_t r) {
        return std::any_of(C + r * K + k0, C + r * K + k0 + count, [](double v) { return v != 0; });
    };
    double c[simd::lane_block] = {};
    int64_t next = first;
    while (next < last && !used(next)) ++next;
    while (next < last) {
        const int64_t r = next;
        do ++next;
        while (next < last && !used(next));
        if (next < last) rows.prefetch_weights(subset[next], W, simd::lane_block);
        std::copy_n(C + r * K + k0, count, c);
        rows.axpy_lanes(subset[r], c, W, simd::lane_block);
    }
}

// What a pass is to compute. S = Cᵀ X unless C is null, of which each output's numbers go to sum and their
// squares, added up, to squares, unless these are null. Z = X Wᵀ + b unless Z is null; W null: W is S.
struct Task {
    int K;
    const double* W = nullptr;
    const double* b = nullptr;
    double* Z = nullptr;
    const double* C = nullptr;
    double* sum = nullptr;
    double* squares = nullptr;
    Digest* digest = nullptr;  // of all rows, unless null
    bool* columns = nullptr;   // whether all of their columns exist, unless null
};

// Eight outputs at a time: their weights, interleaved, are far smaller than those of all.
template <class Rows>
void pass(const Rows& rows, Subset subset, const Task& task, int threads) {
    const int64_t n = rows.cols, count = subset.count;
    const int K = task.K, L = K == 1 ? 1 : simd::lane_block;
    threads = useful_threads(threads, entries_of(rows, count) * std::min(K, L));
    // Sums need as many private copies of the weights as the data are worth; scores alone can be cut at will.
    const int64_t blocks = task.C ? std::clamp<int64_t>(rows.nnz() / (16 * (n + 1) + 65536), 1, 16)
                                  : (count + stretch - 1) / stretch;
    const auto weights_of = [&](int64_t size) {
        return WeightBuffer<double>(std::size_t(size), Roomy<double>(rows.room() * L));
    };
    std::vector<WeightBuffer<double>> parts(task.C ? blocks : 0);
    auto lanes = weights_of(task.W && K > 1 ? n * L : 0);
    std::vector<Digest> digests(task.digest ? blocks : 0);
    std::vector<char> missing(task.columns ? blocks : 0);
    for (int k0 = 0; k0 < K; k0 += L) {
        const int here = std::min(L, K - k0);
        const double* weights = task.W;
        if (task.W && K > 1) {
            to_lanes(task.W + k0 * n, n, L, here, lanes.data());
            weights = lanes.data();
        }
        const auto score = [&](int64_t first, int64_t last) {
            score_rows(rows, subset, weights, task.b, K, k0, here, first, last, task.Z);
        };
        parallel_for(threads, blocks, [&](int64_t t) {
            if (task.C) parts[t] = weights_of(n * L);
            const int64_t end = count * (t + 1) / blocks;
            for (int64_t first = count * t / blocks; first < end; first += tile) {
                const int64_t last = std::min(end, first + tile);
                if (task.W) score(first, last);
                if (task.C) add_rows(rows, subset, task.C, K, k0, here, first, last, parts[t].data());
                if (k0 > 0) continue;
                if (task.digest) digest_rows(rows, first, last, digests[t]);
                if (task.columns) missing[t] |= !columns_exist(rows, first, last);
            }
        });
        if (!task.C) continue;
        auto& sum = parts[0];
        for (int64_t t = 1; t < blocks; ++t)
            for (int64_t j = 0; j < n * L; ++j) sum[j] += parts[t][j];
        if (task.sum) from_lanes(sum.data(), n, L, here, task.sum + k0 * n);
        if (task.squares) {
            double squares[simd::lane_block];
            squared_lanes(sum.data(), n, L, squares);
            std::copy_n(squares, here, task.squares + k0);
        }
        if (task.Z && !task.W) {
            weights = sum.data();
            each_stretch(count, threads, [&](int64_t, int64_t first, int64_t last) { score(first, last); });
        }
    }
    if (task.digest)
        for (const auto& d : digests) *task.digest += d;
    if (task.columns) *task.columns = std::find(missing.begin(), missing.end(), 1) == missing.end();
}

void pass(const AnyRows& any, Subset subset, const Task& task, int threads) {
    with_rows(any, [&](const auto& rows) { pass(rows, subset, task, threads); });
}

}  // namespace

void scores(const AnyRows& any, Subset subset, const double* W, const double* b, int K, double* Z,
            int threads) {
    pass(any, subset, {.K = K, .W = W, .b = b, .Z = Z}, threads);
}

bool scores_unchecked(const AnyRows& any, const double* W, const double* b, int K, double* Z, int threads) {
    Inspection found;
    with_rows(any, [&](const auto& rows) { check_pointers(rows, found); });
    if (found.bad_pointer_row >= 0) return false;
    bool columns = true;
    const int64_t rows = with_rows(any, [](const auto& r) { return r.rows; });
    pass(any, {nullptr, rows}, {.K = K, .W = W, .b = b, .Z = Z, .columns = &columns}, threads);
    return columns;
}

void adjoint(const AnyRows& any, Subset subset, const double* C, int K, double* W, int threads) {
    pass(any, subset, {.K = K, .C = C, .sum = W}, threads);
}

void scores_and_squares(const AnyRows& any, Subset all, const double* W, const double* b, int K, double* Z,
                        const double* C, double* squares, int threads, Digest& digest) {
    pass(any, all, {.K = K, .W = W, .b = b, .Z = Z, .C = C, .squares = squares, .digest = &digest}, threads);
}

void dual_model(const AnyRows& any, Subset all, const double* C, const double* b, int K, double* W,
                double* squares, double* Z, int threads, Digest& digest) {
    pass(any, all, {.K = K, .b = b, .Z = Z, .C = C, .sum = W, .squares = squares, .digest = &digest},
         threads);
}

namespace {

// Adds d x̃ x̃ᵀ on and above the diagonal, entry by entry: for rows with few entries. Column indices increase.
struct SparseGram {
    int64_t n, N;
    double* M;
    std::vector<std::pair<int64_t, double>> entries{};

    template <class Rows>
    void add(const Rows& rows, int64_t i, double d) {
        entries.clear();
        rows.each(i, [&](int64_t j, double x) { entries.emplace_back(j, x); });
        entries.emplace_back(n, 1.0);
        for (std::size_t a = 0; a < entries.size(); ++a) {
            const double da = d * entries[a].second;
            double* line = M + entries[a].first * N;
            for (std::size_t b = a; b < entries.size(); ++b) line[entries[b].first] += da * entries[b].second;
        }
    }
    void flush() {}
};

// The same by blocks of scaled rows √d x̃ that fit the cache.
struct DenseGram {
    int64_t n, N, rows;  // so many rows at most are added
    double* M;
    int64_t room = std::min(std::max<int64_t>(16, 16384 / N), rows), used = 0;
    Buffer block = Buffer(room * N);
    simd::Syrk syrk = simd::syrk();

    template <class Rows>
    void add(const Rows& from, int64_t i, double d) {
        const double root = std::sqrt(d);
        double* line = &block[used * N];
        if constexpr (Rows::sparse) std::fill_n(line, N, 0.0);
        from.each(i, [&](int64_t j, double x) { line[j] = root * x; });
        line[n] = root;
        if (++used == room) flush();
    }
    void flush() {
        syrk(block.data(), used, int(N), M);
        used = 0;
    }
};

}  // namespace

void gram(const AnyRows& any, Subset subset, const double* d, double* M, int threads) {
    with_rows(any, [&](const auto& rows) {
        const int64_t n = rows.cols, N = (n + simd::lane_block) / simd::lane_block * simd::lane_block;
        // A sparse row costs nnz² entry by entry, and N² at a much better rate when filled up.
        const double per_row = double(rows.nnz()) / double(std::max<int64_t>(1, rows.rows));
        const bool fill = !rows.sparse || 16 * per_row * per_row > double(N * N);
        const int64_t blocks = std::clamp<int64_t>(rows.nnz() / (N * N + 65536), 1, 16);
        std::vector<Buffer> parts(blocks);
        const int64_t work = int64_t(per_row * double(entries_of(rows, subset.count)));
        parallel_for(useful_threads(threads, work), blocks, [&](int64_t t) {
            parts[t].assign(N * N, 0.0);
            const int64_t first = subset.count * t / blocks, last = subset.count * (t + 1) / blocks;
            const auto accumulate = [&](auto gram) {
                for (int64_t r = first; r < last; ++r)
                    if (d[r] != 0) gram.add(rows, subset[r], d[r]);
                gram.flush();
            };
            if (fill)
                accumulate(DenseGram{n, N, last - first, parts[t].data()});
            else
                accumulate(SparseGram{n, N, parts[t].data()});
        });
        for (int64_t j = 0; j <= n; ++j)
            for (int64_t k = j; k <= n; ++k) {
                double sum = 0;
                for (const auto& p : parts) sum += p[j * N + k];
                M[j * (n + 1) + k] = M[k * (n + 1) + j] = sum;
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
