#include "pegasos/kernel/layout.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "pegasos/core/parallel.hpp"

namespace pegasos {
namespace {

constexpr int64_t piece = 1024;  // rows in a task

// Calls f(column, value) for every entry of row i that is not zero.
template <class Rows, class F>
void each_nonzero(const Rows& rows, int64_t i, F&& f) {
    if constexpr (Rows::sparse) {
        const auto [begin, end] = rows.extent(i);
        const auto at = rows.bounded(0);
        for (int64_t p = begin; p < end; ++p)
            if (const auto v = rows.data[p]; v != 0) f(at[p], v);
    } else {
        const auto* x = rows.row(i);
        for (int64_t k = 0; k < rows.cols; ++k)
            if (x[k] != 0) f(k, x[k]);
    }
}

}  // namespace

void count_nonzeros(const AnyRows& any, int64_t* of_row, int64_t* of_column, int threads) {
    std::visit(
        [&](const auto& rows) {
            // A share of the rows for each thread, which has columns of its own to count in.
            const int64_t shares = std::max(1, useful_threads(threads, rows.nnz())), cols = rows.cols;
            std::vector<std::vector<int64_t>> own{std::size_t(shares)};
            for (auto& columns : own) columns.resize(std::size_t(cols));
            parallel_for(int(shares), shares, [&](int64_t t) {
                int64_t* columns = own[std::size_t(t)].data();
                for (int64_t i = t * rows.rows / shares; i < (t + 1) * rows.rows / shares; ++i) {
                    int64_t count = 0;
                    each_nonzero(rows, i, [&](int64_t k, auto) { ++count, ++columns[k]; });
                    of_row[i] = count;
                }
            });
            std::fill_n(of_column, cols, int64_t(0));
            for (const auto& columns : own)
                for (int64_t k = 0; k < cols; ++k) of_column[k] += columns[std::size_t(k)];
        },
        any);
}

template <class Value>
void renumber(const AnyRows& any, const std::int32_t* rank, const int64_t* indptr, std::int32_t* indices,
              Value* data, int threads) {
    const int64_t count = std::visit([](const auto& rows) { return rows.rows; }, any);
    const int64_t entries = std::visit([](const auto& rows) { return rows.nnz(); }, any);
    parallel_for(useful_threads(threads, entries), (count + piece - 1) / piece, [&](int64_t t) {
        std::vector<std::pair<std::int32_t, Value>> row;
        for (int64_t i = t * piece; i < std::min(count, (t + 1) * piece); ++i) {
            row.clear();
            std::visit(
                [&](const auto& rows) {
                    each_nonzero(rows, i, [&](int64_t k, auto v) { row.emplace_back(rank[k], Value(v)); });
                },
                any);
            std::sort(row.begin(), row.end(), [](const auto& p, const auto& q) { return p.first < q.first; });
            // Rows may have changed since they were counted.
            int64_t p = indptr[i];
            for (const auto& [k, v] : row)
                if (p < indptr[i + 1]) indices[p] = k, data[p++] = v;
            for (; p < indptr[i + 1]; ++p) indices[p] = 0, data[p] = Value(0);
        }
    });
}

template void renumber<float>(const AnyRows&, const std::int32_t*, const int64_t*, std::int32_t*, float*,
                              int);
template void renumber<double>(const AnyRows&, const std::int32_t*, const int64_t*, std::int32_t*, double*,
                               int);

}  // namespace pegasos
