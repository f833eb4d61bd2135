// All of linear/block_sdca.hpp that need not know how rows are laid out.
#include "pegasos/linear/block_sdca.hpp"

#include "pegasos/core/parallel.hpp"

namespace pegasos {

BlockSdca::BlockSdca(const RowsShape& rows, std::unique_ptr<Output> out, Weights c,
                     const double* squared_norms, const SdcaOptions& options)
    : SdcaState(rows, std::move(out), c, squared_norms, options),
      nnz_(rows.nnz),
      parts_(options.blocks),
      change_(W_.size()) {
    sigma_ = std::max(1.0, options.blocks / 4.0);
    for (auto& p : parts_) p.W = W_;
}

BlockSdca::~BlockSdca() = default;

void BlockSdca::advance(int64_t rows) {
    begin_if_ended();
    const int64_t end = int64_t(order_.size()), a_round = std::max<int64_t>(1, (end + 9) / 10);
    const int64_t stop = std::min(end, at_ + rows);
    while (at_ < stop) {
        const int64_t count = std::min(a_round, end - at_);
        round(order_.data() + at_, count);
        at_ += count;
        visits_ += double(count);
    }
    if (epoch_ended()) finish_epoch();
}

void BlockSdca::round(const int64_t* rows, int64_t count) {
    const int64_t blocks = int64_t(parts_.size());
    const int threads = useful_threads(o_.threads, count * (nnz_ / m_) + blocks * n_);
    parallel_for(threads, blocks, [&](int64_t k) {
        ascend(parts_[k], rows + count * k / blocks, rows + count * (k + 1) / blocks);
    });
    // δw = Σ_k (W_k − W)/σ, in stretches of columns, each summed over the parts in order.
    const int64_t size = int64_t(change_.size()), stretch = 4096, stretches = (size + stretch - 1) / stretch;
    std::vector<double> inner(stretches), square(stretches);
    parallel_for(threads, stretches, [&](int64_t s) {
        double a = 0, b = 0;
        for (int64_t j = s * stretch; j < std::min(size, (s + 1) * stretch); ++j) {
            double d = 0;
            for (const auto& p : parts_) d += p.W[j] - W_[j];
            change_[j] = d /= sigma_;
            a += d * W_[j];
            b += d * d;
        }
        inner[s] = a, square[s] = b;
    });
    double gain = 0, along = 0, length = 0;
    for (const auto& p : parts_) {
        gain += p.gain;
        value_[0] += p.value;
        gap_[0] += p.gap;
    }
    for (int64_t s = 0; s < stretches; ++s) along += inner[s], length += square[s];
    if (!(length > 0)) {
        apply(1.0);
        return;
    }
    const double best = (gain / c_.total - o_.lam * along) / (o_.lam * length);
    apply(std::clamp(best, 0.0, 1.0));
    if (best > 1.2) sigma_ = std::max(1.0, sigma_ / 1.3);
    if (best < 0.8) sigma_ = std::min(double(blocks), 1.5 * sigma_);
}

void BlockSdca::apply(double step) {
    for (const auto& p : parts_) move(p, step);
    for (std::size_t j = 0; j < change_.size(); ++j) W_[j] += step * change_[j];
}

}  // namespace pegasos
