// The scans of LASVM over its set S of variables (Bordes, Ertekin, Weston & Bottou 2005), s = members[k]:
//
//   g_s = t_s − F[row_s],   lo_s ≤ α_s ≤ hi_s,   where lo_s = 0 < hi_s or lo_s < 0 = hi_s.
#pragma once
#include <cmath>
#include <cstdint>

namespace pegasos {

struct LasvmSet {
    std::int64_t count;
    const std::int64_t* row;
    const double *t, *lo, *hi, *alpha, *F;
    double slope(std::int64_t s) const { return t[s] - F[row[s]]; }
};

struct LasvmExtremes {
    std::int64_t top = -1, bottom = -1;  // variables, −1 for none
    bool finite = true;
};

// The largest g among those that can rise, and the smallest among those that can fall; of those that differ
// by no more than `rounding`, the first. (A pair that has moved freely has the same g: errors must not
// decide.)
inline LasvmExtremes lasvm_extremes(const LasvmSet& set, const std::int64_t* members, double rounding) {
    LasvmExtremes found;
    double high = 0, low = 0;
    for (std::int64_t k = 0; k < set.count; ++k) {
        const std::int64_t s = members[k];
        const double g = set.slope(s);
        found.finite &= std::isfinite(g);
        if (set.alpha[s] < set.hi[s] && (found.top < 0 || g - high > rounding)) high = g, found.top = s;
        if (set.alpha[s] > set.lo[s] && (found.bottom < 0 || low - g > rounding)) low = g, found.bottom = s;
    }
    return found;
}

// Takes those at zero out of the set that violate against no other, in place; the others keep their order.
// high and low are the slopes of the extremes. Returns how many are left.
inline std::int64_t lasvm_leave(const LasvmSet& set, std::int64_t* members, bool* inside, double high,
                                double low) {
    std::int64_t kept = 0;
    for (std::int64_t k = 0; k < set.count; ++k) {
        const std::int64_t s = members[k];
        const double g = set.slope(s);
        if (set.alpha[s] == 0 && (set.hi[s] > 0 ? g <= low : g >= high))
            inside[s] = false;
        else
            members[kept++] = s;
    }
    return kept;
}

}  // namespace pegasos
