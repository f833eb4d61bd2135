// The mini-batches of stochastic sub-gradient methods: which rows each step visits, as a function of (seed, epoch) or
// (seed, step) alone.
//
//   A_t ⊆ {0, …, m − 1}, |A_t| = k       Shalev-Shwartz, Singer, Srebro & Cotter 2011, Fig. 2
//
// A step has k rows also where k does not divide m: the batch then begins in one epoch's order and ends in the
// next one's. An epoch ends with the batch that visits its last row, so that it has one batch more or fewer than others.
#pragma once
#include "pegasos/core/sampling.hpp"

namespace pegasos {

// Uniform subsets of {0, …, m − 1}, by Floyd's algorithm: k draws, and a table of 2k to 4k places, whatever m.
class Subsets {
 public:
    // k of m rows, for this step of this seed; in no particular order.
    void draw(std::int64_t* rows, std::int64_t k, std::int64_t m, std::uint64_t seed, std::int64_t step) {
        std::size_t size = 4;
        while (size < 2 * std::size_t(k)) size *= 2;
        table_.assign(size, -1);
        Rng rng(seed ^ 0x737562736574, std::uint64_t(step));
        // Of {0, …, j} so many rows are drawn already that each is among them as likely as any other; a draw that is
        // among them stands for j.
        for (std::int64_t j = m - k; j < m; ++j) {
            const std::int64_t drawn = rng.below(j + 1);
            *rows++ = add(drawn) ? drawn : (add(j), j);
        }
    }

 private:
    bool add(std::int64_t row) {
        const std::size_t mask = table_.size() - 1;
        std::size_t at = std::size_t((std::uint64_t(row) * 0x9e3779b97f4a7c15u) >> 32) & mask;
        while (table_[at] >= 0 && table_[at] != row) at = (at + 1) & mask;
        const bool fresh = table_[at] < 0;
        table_[at] = row;
        return fresh;
    }

    std::vector<std::int64_t> table_{};
};

class Batches {
 public:
    // `whole`: every batch has k rows. If not, the last one of an epoch has those that are left: for rows that are
    // forgotten after an epoch.
    Batches(std::int64_t m, std::int64_t k, const Sampling& sampling, std::uint64_t seed, bool whole)
        : m_(m),
          k_(std::clamp<std::int64_t>(k, 1, std::max<std::int64_t>(m, 1))),
          sampling_(sampling),
          seed_(seed),
          whole_(whole) {}

    std::int64_t size() const { return k_; }

    // Rows visited before an epoch: those of all batches that have begun earlier.
    std::int64_t before(std::int64_t epoch) const {
        return whole_ ? (epoch * m_ + k_ - 1) / k_ * k_ : epoch * m_;
    }

    // The rows of an epoch's batches, one after the other.
    void draw(std::vector<std::int64_t>& rows, std::int64_t epoch) {
        const std::int64_t first = before(epoch), end = before(epoch + 1);
        if (sampling_ == Sampling::subset) {
            rows.resize(std::size_t(end - first));
            for (std::int64_t at = first; at < end; at += k_)
                subsets_.draw(rows.data() + (at - first), std::min(k_, end - at), m_, seed_, at / k_);
            return;
        }
        if (ahead_epoch_ == epoch)
            rows.swap(ahead_);
        else
            epoch_order(rows, m_, sampling_, seed_, epoch);
        ahead_epoch_ = -1;
        rows.erase(rows.begin(), rows.begin() + std::ptrdiff_t(first - epoch * m_));
        const std::int64_t more = end - (epoch + 1) * m_;
        if (more == 0) return;
        ahead_epoch_ = epoch + 1;
        epoch_order(ahead_, m_, sampling_, seed_, ahead_epoch_);
        rows.insert(rows.end(), ahead_.begin(), ahead_.begin() + std::ptrdiff_t(more));
    }

    // The rows that the first steps visit, count ≤ m of them, a multiple of k; random draws take no longer than there
    // are of them.
    std::vector<std::int64_t> first(std::int64_t count) {
        std::vector<std::int64_t> rows;
        if (sampling_ == Sampling::iid)
            draw_rows(rows, m_, count, seed_, 0);
        else if (sampling_ == Sampling::subset)
            for (rows.resize(std::size_t(count)); count > 0; count -= k_)
                subsets_.draw(rows.data() + (count - k_), k_, m_, seed_, count / k_ - 1);
        else
            epoch_order(rows, m_, sampling_, seed_, 0), rows.resize(std::size_t(count));
        return rows;
    }

    // m times the visits of each row among those from `since` to `until`, the first one being 0. Orders that take
    // each row once an epoch have visited row i in the first V = Em + r visits E times, and once more if it is
    // among the first r of epoch E. For random draws it is the mean, until − since.
    std::vector<double> shares(std::int64_t since, std::int64_t until) const {
        std::vector<double> share(std::size_t(m_), double(until - since));
        if (sampling_ == Sampling::iid || sampling_ == Sampling::subset) return share;
        std::vector<std::int64_t> order;
        for (const auto& [visits, sign] : {std::pair(since, -1.0), std::pair(until, 1.0)}) {
            const std::int64_t rest = visits % m_;
            if (rest == 0) continue;
            epoch_order(order, m_, sampling_, seed_, visits / m_);
            for (auto& s : share) s -= sign * double(rest);
            for (std::int64_t r = 0; r < rest; ++r) share[std::size_t(order[r])] += sign * double(m_);
        }
        return share;
    }

 private:
    std::int64_t m_, k_;
    Sampling sampling_;
    std::uint64_t seed_;
    bool whole_;
    Subsets subsets_{};
    std::vector<std::int64_t> ahead_{};  // the order of an epoch that a batch has run into
    std::int64_t ahead_epoch_ = -1;
};

}  // namespace pegasos
