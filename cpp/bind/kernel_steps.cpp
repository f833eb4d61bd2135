// Pegasos and SDCA on blocks of kernel rows. The caller's arrays are the state; they are changed in place.
#include <cstring>

#include "objects.hpp"
#include "pegasos/kernel/steps.hpp"

namespace pegasos::bind {
namespace {

// An empty K stands for none.
template <class Real>
KernelBlock<Real> block_of(const Matrix<Real>& K, const Index& rows, const MutableVector<double>& score,
                           const MutableVector<double>& change, std::int64_t m) {
    const auto count = std::int64_t(rows.shape(0)), stride = std::int64_t(K.shape(1));
    if (K.size() && (std::int64_t(K.shape(0)) != count || stride < count))
        throw std::invalid_argument("K must have a row, and at least a column, for each row of the block");
    for (std::int64_t p = 0; p < count; ++p)
        if (rows.data()[p] < 0 || rows.data()[p] >= m) throw std::out_of_range("row index");
    check_length(score, count, "score");
    check_length(change, count, "change");
    return {count, stride, K.size() ? K.data() : nullptr, rows.data(), score.data(), change.data()};
}

template <class Real>
void pegasos(const LossObject& loss, Matrix<Real> K, Index rows, MutableVector<double> score,
             MutableVector<double> change, Vector<double> y, Vector<double> c, MutableVector<double> U,
             MutableMatrix<double> average, MutableMatrix<double> random, MutableVector<double> progress,
             double lam, double t0, double radius, double feature, std::int64_t batch_size, bool subgradient,
             double bias_rate, std::uint64_t seed) {
    const auto m = std::int64_t(y.shape(0));
    const KernelBlock<Real> block = block_of(K, rows, score, change, m);
    if (batch_size < 1 || (!block.K && block.count > batch_size))
        throw std::invalid_argument("without K a block must be one mini-batch");
    check_length(c, m, "weight");
    check_length(U, m, "U");
    if (average.size()) check_shape(average, 2, m, "average");
    if (random.size()) check_shape(random, 2, m, "random");
    check_length(progress, progress_size, "progress");
    double* drawn = random.size() ? random.data() : nullptr;
    double* mean = average.size() ? average.data() : nullptr;
    const KernelPegasos o{y.data(),
                          c.data(),
                          U.data(),
                          mean,
                          mean ? mean + m : nullptr,
                          {drawn, drawn ? drawn + m : nullptr},
                          m,
                          lam,
                          t0,
                          radius,
                          feature,
                          batch_size,
                          subgradient,
                          bias_rate,
                          seed};
    PegasosProgress at;
    std::memcpy(&at, progress.data(), sizeof at);
    {
        nb::gil_scoped_release release;
        pegasos_steps(loss.loss, o, block, at);
    }
    std::memcpy(progress.data(), &at, sizeof at);
}

template <class Real>
double sdca(const LossObject& loss, Matrix<Real> K, Index rows, MutableVector<double> score,
            MutableVector<double> change, Vector<double> y, Vector<double> c, MutableVector<double> u,
            double sum, double unit, double feature, double offset) {
    const auto m = std::int64_t(y.shape(0));
    const KernelBlock<Real> block = block_of(K, rows, score, change, m);
    if (!block.K && block.count) throw std::invalid_argument("K is empty");
    check_length(c, m, "weight");
    check_length(u, m, "u");
    nb::gil_scoped_release release;
    return sdca_steps(loss.loss, KernelSdca{y.data(), c.data(), u.data(), unit, feature, offset}, block, sum);
}

template <class Real>
void define(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("kernel_pegasos_steps", &pegasos<Real>, "loss"_a, strict("K"), strict("rows"), strict("score"),
          strict("change"), strict("y"), strict("weight"), strict("U"), strict("average"), strict("random"),
          strict("progress"), nb::kw_only(), "lam"_a, "t0"_a, "radius"_a, "feature"_a, "batch_size"_a,
          "subgradient"_a, "bias_rate"_a, "seed"_a);
    m.def("kernel_sdca_steps", &sdca<Real>, "loss"_a, strict("K"), strict("rows"), strict("score"),
          strict("change"), strict("y"), strict("weight"), strict("u"), "sum"_a, "unit"_a, "feature"_a,
          "offset"_a);
}

}  // namespace

void register_kernel_steps(nb::module_& m) {
    define<float>(m);
    define<double>(m);
}

}  // namespace pegasos::bind
