// The best bias for fixed scores: the b that minimises Σ c_i ℓ_i(s_i + b), where G(b) = Σ c_i g_i(s_i + b),
// which never increases, passes zero (2011 paper, Eq. 24; for the hinge loss a weighted median).
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace pegasos {

struct Crossing {
    double lo, hi;
    bool flat;  // G = 0 on [lo, hi]; otherwise G > 0 at lo, G < 0 at hi, and nothing lies between them
};

// `total` is the scale of G's terms: |G| below 1e-12 of it counts as zero. A flat stretch that never ends on
// one side (all rows of one class) is cut down to its finite end.
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
        // Down to neighbouring numbers, or (around zero, where those are denormal) to 1e-40.
        for (double mid; mid = 0.5 * (a + b), mid > a && mid < b && b - a > 1e-40;)
            (is_left(G(mid)) ? a : b) = mid;
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

// The crossing of G(b) = Σ_i term(i, b) over n terms, none of which increases with b. Once the crossing is
// bracketed, terms that are equal at both ends of the bracket are constant between them and are summed once.
template <class F>
Crossing zero_crossing_of_sum(std::int64_t n, F&& term, double start, double total) {
    const auto sum = [&](double b) {
        double g = 0;
        for (std::int64_t i = 0; i < n; ++i) g += term(i, b);
        return g;
    };
    const double zero = 1e-12 * total;
    double lo = start, hi = start, step = 1;
    for (; sum(lo) <= zero && step < 1e9; step *= 10) lo = start - step;
    for (step = 1; sum(hi) >= -zero && step < 1e9; step *= 10) hi = start + step;
    if (step >= 1e9 || sum(lo) <= zero) return zero_crossing(sum, start, total);
    for (int halving = 0; halving < 10; ++halving) {
        const double mid = 0.5 * (lo + hi), g = sum(mid);
        if (std::abs(g) <= zero) break;
        (g > 0 ? lo : hi) = mid;
    }
    double settled = 0;
    std::vector<std::int64_t> open;
    for (std::int64_t i = 0; i < n; ++i) {
        const double left = term(i, lo);
        if (left == term(i, hi))
            settled += left;
        else
            open.push_back(i);
    }
    const auto rest = [&](double b) {
        double g = settled;
        for (const std::int64_t i : open) g += term(i, b);
        return g;
    };
    return zero_crossing(rest, 0.5 * (lo + hi), total);
}

}  // namespace pegasos
