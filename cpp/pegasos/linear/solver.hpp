// The contract every solver keeps: a resumable state machine over borrowed data. It never prints, reads the
// clock or decides when to stop; the loop in src/pegasos/fit/loop.py does.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pegasos/core/memory.hpp"
#include "pegasos/core/outputs.hpp"
#include "pegasos/core/sampling.hpp"

namespace pegasos {

// A LaneBuffer (core/memory.hpp) with room for so many numbers at least, however few are in use: all that masked
// columns may lead to (simd/columns.hpp). Room beyond those in use is never touched unless rows change under a
// fit.
template <class T>
struct Roomy : CacheAligned<T> {
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;
    std::size_t room = 0;
    Roomy() = default;
    explicit Roomy(int64_t numbers) : room(std::size_t(numbers)) {}
    template <class U>
    Roomy(const Roomy<U>& other) : room(other.room) {}
    template <class U>
    struct rebind {
        using other = Roomy<U>;
    };
    T* allocate(std::size_t n) { return CacheAligned<T>::allocate(std::max(n, room)); }
    template <class U>
    bool operator==(const Roomy<U>& other) const {
        return room == other.room;
    }
};
template <class Real>
using WeightBuffer = std::vector<Real, Roomy<Real>>;

// W (K × n) from and to L interleaved lanes, in stretches of columns that stay in the nearest cache.
template <class F>
void each_weight(int64_t n, int K, F&& f) {
    constexpr int64_t stretch = 64;
    for (int64_t first = 0; first < n; first += stretch)
        for (int k = 0; k < K; ++k)
            for (int64_t j = first; j < std::min(n, first + stretch); ++j) f(k, j);
}
template <class Real>
void from_lanes(const Real* lanes, int64_t n, int L, int K, double* W) {
    each_weight(n, K, [=](int k, int64_t j) { W[k * n + j] = double(lanes[j * L + k]); });
}
template <class Real>
void to_lanes(const double* W, int64_t n, int L, int K, Real* lanes) {
    each_weight(n, K, [=](int k, int64_t j) { lanes[j * L + k] = Real(W[k * n + j]); });
}

// Σ_j W[j*L + l]² of each lane l.
inline void squared_lanes(const double* lanes, int64_t n, int L, double* squares) {
    if (L == 1) {  // several sums at a time, where one would wait for each addition
        squares[0] = simd::kernels<double>().squared_norm(lanes, n);
        return;
    }
    std::fill_n(squares, L, 0.0);
    for (int64_t j = 0; j < n; ++j)
        for (int l = 0; l < L; ++l) squares[l] += lanes[j * L + l] * lanes[j * L + l];
}

// A solver's state as named arrays of doubles (integers below 2⁵³ are exact): enough to go on to the same
// bits.
using State = std::vector<std::pair<std::string, Buffer>>;

class Solver {
 public:
    virtual ~Solver() = default;
    virtual void advance(int64_t rows) = 0;  // about that many row visits, never past the end of an epoch
    virtual double epochs() const = 0;       // visits / rows
    virtual bool epoch_ended() const = 0;    // no row of a further epoch was visited yet
    virtual int outputs() const = 0;         // K
    virtual void weights(double* W, double* b) const = 0;     // K × n and K
    virtual void duals(double* u, int64_t stride) const = 0;  // K numbers a row, in the unit domain
    virtual State state() const = 0;
    virtual void restore(const State&) = 0;
};

// Reads or writes the named fields that `fields` lists; a solver lists them once for both directions.
struct FieldWriter {
    State out{};
    template <class Numbers>
    void operator()(const char* name, const Numbers& v) {
        out.emplace_back(name, Buffer(v.begin(), v.end()));
    }
    template <class T>
    void scalar(const char* name, const T& v) {
        out.emplace_back(name, Buffer{double(v)});
    }
};
struct FieldReader {
    const State& in;
    const Buffer& find(const char* name) const {
        for (const auto& [key, value] : in)
            if (key == name) return value;
        throw std::invalid_argument(std::string("state: no field '") + name + "'");
    }
    template <class Real, class Allocator>
    void operator()(const char* name, std::vector<Real, Allocator>& v) const {
        const Buffer& from = find(name);
        if (!v.empty() && from.size() != v.size())
            throw std::invalid_argument(std::string("state: field '") + name + "' has the wrong length");
        v.assign(from.begin(), from.end());
    }
    void operator()(const char* name, std::vector<int64_t>& v) const {
        const Buffer& from = find(name);
        v.assign(from.begin(), from.end());
    }
    template <class T>
    void scalar(const char* name, T& v) const {
        const Buffer& from = find(name);
        if (from.size() != 1)
            throw std::invalid_argument(std::string("state: field '") + name + "' is not a number");
        v = T(from[0]);
    }
};

// The shape of the rows, which is all that most of a solver needs to know of them.
struct RowsShape {
    int64_t rows, cols, room, nnz;
    template <class Rows>
    explicit RowsShape(const Rows& r) : rows(r.rows), cols(r.cols), room(r.room()), nnz(r.nnz()) {}

    // Weights of L lanes for rows and constant feature, all zero.
    template <class Real>
    WeightBuffer<Real> weights(int L) const {
        return WeightBuffer<Real>(std::size_t((cols + 1) * L), Roomy<Real>(room * L));
    }
};

// Scores and updates of one row against weights that end with the constant feature: W has (n + 1) rows of
// lanes. Out is a Single<Loss>, or Output (core/outputs.hpp), which is not copied.
template <class Out>
using Held = std::conditional_t<Out::single, Out, Out&>;
template <class Rows, class Out>
struct RowVisits {
    Rows rows;
    Held<Out> out;
    double feature;  // value of the constant feature; 0: none
    int64_t near =
        rows.nnz() > 1 << 22 ? 6 : 3;  // see prefetch: rows from memory take longer than from caches

    // The number of lanes, known to the compiler where it is one: loops over lanes then vanish.
    struct One {
        constexpr operator int() const { return 1; }
    };
    auto lanes() const {
        if constexpr (Out::single)
            return One{};
        else
            return out.lanes;
    }

    // Rows are visited in random order, so the caches are asked for row order[at + near] before order[at] is
    // visited, and earlier still for the single numbers that belong to a row: its place, its target, and
    // those at the addresses numbers(i). Then a random order costs no more time than one that keeps
    // neighbours together, and any order of the file is as good as another.
    template <class Order, class Numbers>
    [[gnu::always_inline]] void prefetch(const Order& order, int64_t at, Numbers&& numbers) const {
        const int64_t end = int64_t(order.size());
        if (at + 2 * near < end) {
            const int64_t i = order[at + 2 * near];
            rows.prefetch_place(i);
            __builtin_prefetch(out.place(i));
            for (const void* number : numbers(i)) __builtin_prefetch(number);
        }
        if (at + near < end) rows.prefetch(order[at + near]);
    }

    void dot(int64_t i, const double* W, double* z) const {
        if constexpr (Out::single) {
            z[0] = rows.dot(i, W) + feature * W[rows.cols];
        } else {
            const int L = out.lanes;
            rows.dot_lanes(i, W, L, z);
            const double* Wb = W + rows.cols * L;
            for (int l = 0; l < L; ++l) z[l] += feature * Wb[l];
        }
    }
    void axpy(int64_t i, const double* c, double* W) const {
        if constexpr (Out::single) {
            rows.axpy(i, c[0], W);
            W[rows.cols] += feature * c[0];
        } else {
            const int L = out.lanes;
            rows.axpy_lanes(i, c, W, L);
            double* Wb = W + rows.cols * L;
            for (int l = 0; l < L; ++l) Wb[l] += feature * c[l];
        }
    }
};

}  // namespace pegasos
