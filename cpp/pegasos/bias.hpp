// The best bias for fixed scores: the b that minimises Σ c_i ℓ_i(s_i + b), where G(b) = Σ c_i g_i(s_i + b), which never
// increases, passes zero (2011 paper, Eq. 24; for the hinge loss a weighted median).
#pragma once
#include <cmath>

namespace pegasos {

struct Crossing {
    double lo, hi;
    bool flat;  // G = 0 on [lo, hi]; otherwise G > 0 at lo, G < 0 at hi, and nothing lies between them
};

// `total` is the scale of G's terms: |G| below 1e-12 of it counts as zero. A flat stretch that never ends on one side
// (all rows of one class) is cut down to its finite end.
template <class F>
Crossing zero_crossing(F&& G, double start, double total) {
    const double zero = 1e-12 * total, far = 1e30;
    double lo = start, hi = start;
    for (double step = 1; G(lo) <= zero && step < far; step *= 1000) lo = start - step;
    for (double step = 1; G(hi) >= -zero && step < far; step *= 1000) hi = start + step;
    const bool open_left = G(lo) <= zero, open_right = G(hi) >= -zero;
    if (open_left && open_right) return {start, start, true};
    const auto bisect = [&](auto&& is_left) {
        double a = lo, b = hi;
        for (double mid; mid = 0.5 * (a + b), mid > a && mid < b;) (is_left(G(mid)) ? a : b) = mid;
        return Crossing{a, b, false};
    };
    if (open_left) {
        const double last = bisect([&](double g) { return g >= -zero; }).lo;
        return {last, last, true};
    }
    const Crossing fall = bisect([&](double g) { return g > zero; });  // G > 0 at lo, not at hi
    if (G(fall.hi) < -zero) return fall;
    if (open_right) return {fall.hi, fall.hi, true};
    return {fall.hi, bisect([&](double g) { return g >= -zero; }).lo, true};
}

}  // namespace pegasos
