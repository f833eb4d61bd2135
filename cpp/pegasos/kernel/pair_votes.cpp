#include "pegasos/kernel/pair_votes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pegasos/core/parallel.hpp"

namespace pegasos {
namespace {

using std::int64_t;

// Calls f(first row, rows) for as many rows as are decided about together, whose kernel values are packed.
template <class Real, class F>
void each_group(const PairMachine& m, const Real* K, int64_t stride, int64_t rows, int threads, F&& f) {
    const int64_t groups = (rows + pair_lanes - 1) / pair_lanes;
    threads = useful_threads(threads, m.vectors * m.classes * rows / 2);
    parallel_for(threads, groups, [&](int64_t g) {
        const int64_t first = g * pair_lanes;
        const int count = int(std::min<int64_t>(pair_lanes, rows - first));
        const int lanes = count == 1 ? 1 : count <= 8 ? 8 : pair_lanes;
        std::vector<double> packed(std::size_t(m.vectors * lanes), 0.0);
        for (int64_t v = 0; v < m.vectors; ++v)
            std::copy_n(K + v * stride + first, count, packed.data() + v * lanes);
        f(first, PairRows{packed.data(), lanes, count});
    });
}

// The same with what the pairs say of each class, f(row, wins, sums); a class's numbers are `lanes` apart.
template <class Real, class F>
void each_tally(const PairMachine& m, const Real* K, int64_t stride, int64_t rows, const int64_t* rank,
                int threads, F&& f) {
    each_group(m, K, stride, rows, threads, [&](int64_t first, const PairRows& x) {
        std::vector<double> wins(std::size_t(m.classes * x.lanes)), sums(wins.size());
        pair_table().tally(m, x, {rank, wins.data(), sums.data()});
        for (int l = 0; l < x.count; ++l) f(first + l, wins.data() + l, sums.data() + l, x.lanes);
    });
}

}  // namespace

template <class Real>
int64_t pair_winners(const PairMachine& m, const Real* K, int64_t stride, int64_t rows, const int64_t* rank,
                     int64_t* winner, int threads) {
    each_tally(m, K, stride, rows, rank, threads,
               [&](int64_t row, const double* wins, const double* sums, int lanes) {
                   int64_t best = 0;
                   bool finite = true;
                   for (int64_t c = 0; c < m.classes; ++c) {
                       const double w = wins[c * lanes], most = wins[best * lanes];
                       if (w > most || (w == most && rank[c] < rank[best])) best = c;
                       finite &= std::isfinite(sums[c * lanes]);
                   }
                   winner[row] = finite ? best : -1;
               });
    const int64_t* bad = std::find(winner, winner + rows, -1);
    return bad == winner + rows ? -1 : bad - winner;
}

template <class Real>
void pair_decisions(const PairMachine& m, const Real* K, int64_t stride, int64_t rows, double* out,
                    int threads) {
    each_tally(m, K, stride, rows, nullptr, threads,
               [&](int64_t row, const double* wins, const double* sums, int lanes) {
                   for (int64_t c = 0; c < m.classes; ++c) {
                       const double s = sums[c * lanes];
                       out[row * m.classes + c] = wins[c * lanes] + s / (3 * (std::abs(s) + 1));
                   }
               });
}

template <class Real>
void pair_scores(const PairMachine& m, const Real* K, int64_t stride, int64_t rows, double* out,
                 int threads) {
    each_group(m, K, stride, rows, threads,
               [&](int64_t first, const PairRows& x) { pair_table().scores(m, x, out + first * m.pairs()); });
}

template int64_t pair_winners<float>(const PairMachine&, const float*, int64_t, int64_t, const int64_t*,
                                     int64_t*, int);
template int64_t pair_winners<double>(const PairMachine&, const double*, int64_t, int64_t, const int64_t*,
                                      int64_t*, int);
template void pair_decisions<float>(const PairMachine&, const float*, int64_t, int64_t, double*, int);
template void pair_decisions<double>(const PairMachine&, const double*, int64_t, int64_t, double*, int);
template void pair_scores<float>(const PairMachine&, const float*, int64_t, int64_t, double*, int);
template void pair_scores<double>(const PairMachine&, const double*, int64_t, int64_t, double*, int);

}  // namespace pegasos
