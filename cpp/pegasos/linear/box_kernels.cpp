// The kernels of box_kernels.hpp, compiled with PEGASOS_ISA set to the name of the instruction set this copy
// is for.
#include "pegasos/linear/box_kernels.hpp"

#include <cmath>
#include <limits>

#include "pegasos/simd/vectors.hpp"

namespace pegasos {
namespace {

using simd::B;
using simd::least;
using simd::load_as;
using simd::most;
using simd::store_as;
using simd::Vec;
using std::int64_t;

// f(V{}, i) for eight rows from i on at once, and for the last few one by one.
template <class F>
void each(const BoxRows& b, F&& f) {
    int64_t i = 0;
    for (; i + B <= b.count; i += B) f(Vec{}, i);
    for (; i < b.count; ++i) f(double{}, i);
}

// A sum over rows, or a maximum ≥ 0: in eight lanes, and of the last few rows.
struct Sum {
    Vec lanes{};
    double tail = 0;
    void add(Vec v) { lanes += v; }
    void add(double v) { tail += v; }
    double value() const { return simd::sum(lanes) + tail; }
};
struct Maximum {
    Vec lanes{};
    double tail = 0;
    void add(Vec v) { lanes = most(lanes, v); }
    void add(double v) { tail = most(tail, v); }
    double value() const {
        double all = tail;
        for (int k = 0; k < B; ++k) all = most(all, lanes[k]);
        return all;
    }
};

// Δz and Δv of a direction (cl, cu, Δa).
template <class V>
struct Direction {
    V da, dz, dv;
    Direction(const BoxRows& b, int64_t i, const double* cl, const double* cu, const double* change)
        : da(load_as<V>(change + i)),
          dz((load_as<V>(cl + i) - load_as<V>(b.z + i) * da) * load_as<V>(b.over_a + i)),
          dv((load_as<V>(cu + i) + load_as<V>(b.v + i) * da) * load_as<V>(b.over_t + i)) {}
};
template <class V>
Direction<V> best(const BoxRows& b, int64_t i) {
    return {b, i, b.cl, b.cu, b.da};
}
template <class V>
Direction<V> next(const BoxRows& b, int64_t i) {
    return {b, i, b.next_cl, b.next_cu, b.next_da};
}

// a, t, z and v after a step.
template <class V>
struct After {
    V a, t, z, v;
    After(const BoxRows& b, int64_t i, const Direction<V>& d, double step)
        : a(load_as<V>(b.a + i) + step * d.da),
          t(load_as<V>(b.t + i) - step * d.da),
          z(load_as<V>(b.z + i) + step * d.dz),
          v(load_as<V>(b.v + i) + step * d.dv) {}
};

// r for the targets of the direction being made.
template <class V>
V residual(const BoxRows& b, int64_t i) {
    return load_as<V>(b.p + i) + load_as<V>(b.z + i) - load_as<V>(b.v + i) -
           load_as<V>(b.s + i) * load_as<V>(b.score + i) +
           load_as<V>(b.next_cl + i) * load_as<V>(b.over_a + i) -
           load_as<V>(b.next_cu + i) * load_as<V>(b.over_t + i);
}

double products(const BoxRows& b) {
    Sum sum;
    each(b, [&]<class V>(V, int64_t i) {
        sum.add(load_as<V>(b.a + i) * load_as<V>(b.z + i) + load_as<V>(b.t + i) * load_as<V>(b.v + i));
    });
    return sum.value();
}

double products_after(const BoxRows& b, double step) {
    Sum sum;
    each(b, [&]<class V>(V, int64_t i) {
        const After<V> after(b, i, next<V>(b, i), step);
        sum.add(after.a * after.z + after.t * after.v);
    });
    return sum.value();
}

void begin(const BoxRows& b, double* d) {
    each(b, [&]<class V>(V, int64_t i) {
        const V one = V{} + 1.0, a = load_as<V>(b.a + i), t = load_as<V>(b.t + i), z = load_as<V>(b.z + i),
                v = load_as<V>(b.v + i);
        const V over_a = one / a, over_t = one / t, inverse = one / (z * over_a + v * over_t);
        store_as<V>(b.over_a + i, over_a);
        store_as<V>(b.over_t + i, over_t);
        store_as<V>(b.over_az + i, one / (a * z));
        store_as<V>(b.over_tv + i, one / (t * v));
        store_as<V>(b.inverse + i, inverse);
        store_as<V>(b.next_cl + i, -(a * z));
        store_as<V>(b.next_cu + i, -(t * v));
        store_as<V>(d + i, load_as<V>(d + i) + inverse);
    });
}

void right_side(const BoxRows& b, double* q) {
    each(b, [&]<class V>(V, int64_t i) {
        const V all = load_as<V>(b.a + i) + load_as<V>(b.inverse + i) * residual<V>(b, i);
        store_as<V>(q + i, load_as<V>(q + i) + load_as<V>(b.s + i) * all);
    });
}

void complete(const BoxRows& b, const double* d_score) {
    each(b, [&]<class V>(V, int64_t i) {
        const V left = residual<V>(b, i) - load_as<V>(b.s + i) * load_as<V>(d_score + i);
        store_as<V>(b.next_da + i, load_as<V>(b.inverse + i) * left);
    });
}

double largest_share(const BoxRows& b) {
    Maximum largest;
    Sum all;
    each(b, [&]<class V>(V, int64_t i) {
        const V da = load_as<V>(b.next_da + i), of_a = da * load_as<V>(b.over_a + i),
                of_t = -(da * load_as<V>(b.over_t + i)),
                of_z = load_as<V>(b.next_cl + i) * load_as<V>(b.over_az + i) - of_a,
                of_v = load_as<V>(b.next_cu + i) * load_as<V>(b.over_tv + i) - of_t;
        largest.add(most(most(-of_a, -of_t), most(-of_z, -of_v)));
        all.add(of_z + of_v);  // comparisons take no notice of NaN, sums do
    });
    return std::isfinite(all.value()) ? largest.value() : std::numeric_limits<double>::quiet_NaN();
}

void correct(const BoxRows& b, double target) {
    each(b, [&]<class V>(V, int64_t i) {
        const Direction<V> d = next<V>(b, i);
        store_as<V>(b.next_cl + i, target - load_as<V>(b.a + i) * load_as<V>(b.z + i) - d.da * d.dz);
        store_as<V>(b.next_cu + i, target - load_as<V>(b.t + i) * load_as<V>(b.v + i) + d.da * d.dv);
    });
}

void centre(const BoxRows& b, double target, double reach) {
    each(b, [&]<class V>(V, int64_t i) {
        const V low = V{} + 0.1 * target, high = V{} + 10 * target;
        const auto pull = [&](V product) { return most(least(most(product, low), high) - product, -high); };
        const After<V> after(b, i, best<V>(b, i), reach);
        store_as<V>(b.next_cl + i, load_as<V>(b.cl + i) + pull(after.a * after.z));
        store_as<V>(b.next_cu + i, load_as<V>(b.cu + i) + pull(after.t * after.v));
    });
}

void move(const BoxRows& b, double step) {
    each(b, [&]<class V>(V, int64_t i) {
        const After<V> after(b, i, best<V>(b, i), step);
        store_as<V>(b.a + i, after.a);
        store_as<V>(b.t + i, after.t);
        store_as<V>(b.z + i, after.z);
        store_as<V>(b.v + i, after.v);
    });
}

double loss(const BoxRows& b) {
    Sum sum;
    each(b, [&]<class V>(V, int64_t i) {
        const V short_of = load_as<V>(b.p + i) - load_as<V>(b.s + i) * load_as<V>(b.score + i);
        sum.add(load_as<V>(b.h + i) * most(short_of, V{}));
    });
    return sum.value();
}

}  // namespace

extern const BoxKernels PEGASOS_TABLE(box);
const BoxKernels PEGASOS_TABLE(box) = {
    products, products_after, begin, right_side, complete, largest_share, correct, centre, move, loss,
};

}  // namespace pegasos
