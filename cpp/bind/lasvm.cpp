// The scans of LASVM.
#include "pegasos/kernel/lasvm.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.hpp"

namespace pegasos::bind {
namespace {

void check_index(const std::int64_t* index, std::int64_t count, std::int64_t bound, const char* what) {
    for (std::int64_t k = 0; k < count; ++k)
        if (index[k] < 0 || index[k] >= bound) throw std::out_of_range(what);
}

// The variables of a problem, and the first `count` members of the set.
LasvmSet set_of(const std::int64_t* members, std::int64_t room, std::int64_t count, const Index& row,
                const Vector<double>& t, const Vector<double>& lo, const Vector<double>& hi,
                const Vector<double>& alpha, const Vector<double>& F) {
    const std::int64_t size = std::int64_t(row.shape(0));
    check_length(t, size, "t");
    check_length(lo, size, "lo");
    check_length(hi, size, "hi");
    check_length(alpha, size, "alpha");
    if (count < 0 || count > room) throw std::invalid_argument("count");
    check_index(members, count, size, "members");
    const std::int64_t m = std::int64_t(F.shape(0));
    for (std::int64_t k = 0; k < count; ++k) check_index(row.data() + members[k], 1, m, "row");
    return {count, row.data(), t.data(), lo.data(), hi.data(), alpha.data(), F.data()};
}

}  // namespace

void register_lasvm(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };

    m.def(
        "lasvm_extremes",
        [](Index members, std::int64_t count, Index row, Vector<double> t, Vector<double> lo,
           Vector<double> hi, Vector<double> alpha, Vector<double> F, double rounding) {
            const LasvmSet set =
                set_of(members.data(), std::int64_t(members.shape(0)), count, row, t, lo, hi, alpha, F);
            const LasvmExtremes found = lasvm_extremes(set, members.data(), rounding);
            return std::tuple{found.top, found.bottom, found.finite};
        },
        strict("members"), "count"_a, strict("row"), strict("t"), strict("lo"), strict("hi"), strict("alpha"),
        strict("F"), "rounding"_a);
    m.def(
        "lasvm_leave",
        [](MutableVector<std::int64_t> members, std::int64_t count, Index row, Vector<double> t,
           Vector<double> lo, Vector<double> hi, Vector<double> alpha, Vector<double> F,
           MutableVector<bool> inside, double high, double low) {
            const LasvmSet set =
                set_of(members.data(), std::int64_t(members.shape(0)), count, row, t, lo, hi, alpha, F);
            check_length(inside, std::int64_t(row.shape(0)), "inside");
            return lasvm_leave(set, members.data(), inside.data(), high, low);
        },
        strict("members"), "count"_a, strict("row"), strict("t"), strict("lo"), strict("hi"), strict("alpha"),
        strict("F"), strict("inside"), "high"_a, "low"_a);
}

}  // namespace pegasos::bind
