#include "pegasos/kernel/values.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "pegasos/core/parallel.hpp"

namespace pegasos {
namespace {

// Bytes of rows x that a task works on: what stays in the second-level cache beside a lane group and its
// panel.
constexpr int64_t stretch_bytes = 1 << 18;

template <class Real, class T>
inline constexpr bool offered = std::is_same_v<Real, double> || std::is_same_v<T, float>;

template <class T>
DensePanelRows<T> panel_rows(const DenseRows<T>& r) {
    return {r.data, r.stride, r.cols};
}
template <class T, class I>
SparsePanelRows<T, I> panel_rows(const CsrRows<T, I>& r) {
    return {r.data, r.indptr, r.bounded(0), r.stored};
}

template <class Real>
const Real* norms_of(const KernelRows& rows) {
    if constexpr (std::is_same_v<Real, float>)
        return rows.norms_single.data();
    else
        return rows.norms.data();
}

// Rows x as the functions below see them, whatever their layout: what computes a panel of theirs, for how many lanes.
// So these functions are compiled once for each Real; a panel is long enough that a virtual call is not noticed.
template <class Real>
class PanelRows {
 public:
    virtual ~PanelRows() = default;
    virtual int lanes() const = 0;
    virtual void panel(const PanelJob<Real>& job) const = 0;
    virtual void pull(const PullJob<Real>& job) const = 0;
    // Entries of row i where tiles want their rows by length, of sparse rows.
    virtual int64_t length(int64_t i) const = 0;
};

template <class Real, class Rows>
class PanelRowsOf final : public PanelRows<Real> {
 public:
    explicit PanelRowsOf(const Rows& rows) : rows_(rows) {}
    int lanes() const override { return Rows::lines * kernel_lanes<Real>; }
    void panel(const PanelJob<Real>& job) const override { entry().panel(rows_, job); }
    void pull(const PullJob<Real>& job) const override { entry().pull(rows_, job); }
    int64_t length(int64_t i) const override {
        if constexpr (Rows::lines == 2)
            return std::max<int64_t>(0, rows_.pointer(i + 1) - rows_.pointer(i));
        else
            return rows_.cols;
    }

 private:
    static const PanelEntry<Real, Rows>& entry() { return kernel_table(); }
    Rows rows_;
};

// The rows x, whose values suit Real (check_precision).
template <class Real>
std::unique_ptr<PanelRows<Real>> panels_of(const KernelRows& x) {
    return std::visit(
        []<class Rows>(const Rows& r) -> std::unique_ptr<PanelRows<Real>> {
            if constexpr (offered<Real, typename Rows::Value>)
                return std::make_unique<PanelRowsOf<Real, decltype(panel_rows(r))>>(panel_rows(r));
            else
                return nullptr;
        },
        x.view);
}

template <class Real>
void check_precision(const KernelRows& x) {
    if (std::is_same_v<Real, float> && !x.single())
        throw std::invalid_argument("single precision needs float values");
}

template <class Real>
struct ReleaseLines {
    static constexpr std::align_val_t line{64};
    void operator()(Real* p) const { ::operator delete[](p, line); }
};

// Room for packed rows that is all zero between uses: sparse rows set few of its numbers, and setting these
// back is cheaper than clearing the rest. A thread keeps the last one.
template <class Real>
struct Scratch {
    std::unique_ptr<Real[], ReleaseLines<Real>> data;
    std::size_t size = 0;

    static Scratch take(std::size_t wanted) {
        Scratch s = std::exchange(spare(), {});
        if (s.size < wanted) {
            s.data.reset();
            s.data.reset(
                static_cast<Real*>(::operator new[](wanted * sizeof(Real), ReleaseLines<Real>::line)));
            std::fill_n(s.data.get(), wanted, Real(0));
            s.size = wanted;
        }
        return s;
    }
    static void give_back(Scratch&& s) { spare() = std::move(s); }

 private:
    static Scratch& spare() {
        thread_local Scratch kept;
        return kept;
    }
};

int64_t stored_in(const KernelRows& x) {
    return std::visit([](const auto& r) { return r.nnz(); }, x.view);
}

// Rows a interleaved in groups of lanes, as many as rows x meet at a time; rows of a sparse layout leave most of it
// zero.
template <class Real>
class Packed {
 public:
    Packed(const KernelRows& a, const int64_t* index, int64_t count, const PanelRows<Real>& x)
        : L(x.lanes()),
          a_(a),
          index_(index),
          count_(count),
          groups_((count + L - 1) / L),
          cols_(a.cols()),
          few_(stored_in(a) < a.rows() * (cols_ / 32)),
          norms_(std::size_t(groups_ * L)),
          room_(Scratch<Real>::take(std::size_t(std::max<int64_t>(groups_ * cols_ * L, 1)))) {
        if (few_)
            each([&](Real* to, double v) {
                *to = Real(v);
                set_.push_back(to);
            });
        else
            each([](Real* to, double v) { *to = Real(v); });
        for (int64_t p = 0; p < count; ++p) norms_[std::size_t(p)] = norms_of<Real>(a)[index ? index[p] : p];
        // Sums over all entries of a dense row need no norm of the other side.
        plain_ = a.kernel.kind == KernelKind::laplacian || a.kernel.kind == KernelKind::chi2;
    }
    ~Packed() {
        for (Real* p : set_) *p = Real(0);
        if (!few_) std::fill_n(room_.data.get(), groups_ * cols_ * L, Real(0));
        Scratch<Real>::give_back(std::move(room_));
    }
    Packed(const Packed&) = delete;
    Packed& operator=(const Packed&) = delete;

    const int L;  // lanes of a group
    int64_t count() const { return count_; }
    int64_t groups() const { return groups_; }
    const Real* group(int64_t g) const { return room_.data.get() + g * cols_ * L; }
    const Real* norms(int64_t g) const {
        return plain_ && L == kernel_lanes<Real> ? nullptr : norms_.data() + g * L;
    }

 private:
    template <class F>
    void each(F&& f) {
        std::visit(
            [&](const auto& rows) {
                for (int64_t p = 0; p < count_; ++p) {
                    Real* lane = room_.data.get() + p / L * cols_ * L + p % L;
                    rows.each(index_ ? index_[p] : p, [&](int64_t k, double v) { f(lane + k * L, v); });
                }
            },
            a_.view);
    }
    const KernelRows& a_;
    const int64_t* index_;
    int64_t count_, groups_, cols_;
    bool few_;  // whether to set back single numbers: a register clears many at a time
    std::vector<Real> norms_;
    Scratch<Real> room_;
    std::vector<Real*> set_{};  // what is to be set back: the rows may be others by then
    bool plain_ = false;
};

// Rows packed at a time: a few groups, but no more than some megabytes.
template <class Real>
int64_t batch_of(const KernelRows& a, int64_t groups) {
    constexpr int64_t bytes = int64_t(16) << 20, lanes = most_lanes<Real>;
    const int64_t room = bytes / (lanes * int64_t(sizeof(Real)) * std::max<int64_t>(1, a.cols()));
    return lanes * std::clamp<int64_t>(room, 1, groups);
}

// Rows x in a task: a fixed cut, whatever the number of threads.
int64_t stretch_of(const KernelRows& x) {
    const int64_t bytes = 8 * std::max<int64_t>(1, stored_in(x) / std::max<int64_t>(1, x.rows()));
    return std::clamp<int64_t>(stretch_bytes / bytes / 64 * 64, 64, 1024);
}

// Threads for so many kernel values to compute and to add.
int useful(int threads, int64_t computed, int64_t added) {
    return useful_threads(threads, 4 * computed + added / 4);
}

// For every tile of a stretch, its rows by length: those that are summed side by side should end together.
template <class Real>
std::vector<std::uint8_t> tile_orders(const PanelRows<Real>& x, const int64_t* index, int64_t first,
                                      int64_t count) {
    if (x.lanes() == kernel_lanes<Real>) return {};  // dense rows are of one length
    std::vector<std::uint8_t> order(std::size_t(count), 0);
    for (int64_t begin = 0; begin < count; begin += kernel_tile) {
        const int size = int(std::min<int64_t>(kernel_tile, count - begin));
        int64_t keys[kernel_tile];
        for (int c = 0; c < size; ++c) {
            const int64_t at = first + begin + c;
            keys[c] = x.length(index ? index[at] : at) * kernel_tile + c;
        }
        std::sort(keys, keys + size);
        for (int c = 0; c < size; ++c) order[std::size_t(begin + c)] = std::uint8_t(keys[c] % kernel_tile);
    }
    return order;
}

// F += Σ_r coef[r] rows[r], of the n entries from `first` on.
template <class Real>
void add_stretch(const Real* const* rows, const double* coef, int64_t count, double* F, int64_t first,
                 int64_t n) {
    std::vector<const Real*> here(std::size_t(count), nullptr);
    for (int64_t r = 0; r < count; ++r) here[std::size_t(r)] = rows[r] + first;
    static_cast<const VectorEntry<Real>&>(kernel_table()).add(here.data(), coef, int(count), F + first, n);
}

}  // namespace

KernelRows::KernelRows(const AnyRows& rows_view, const Kernel& k, int threads) : view(rows_view), kernel(k) {
    const int64_t m = rows();
    norms.resize(std::size_t(m));
    const bool absolute = k.kind == KernelKind::laplacian || k.kind == KernelKind::chi2;
    constexpr int64_t piece = 4096;
    std::visit(
        [&](const auto& r) {
            parallel_for(useful_threads(threads, r.nnz()), (m + piece - 1) / piece, [&](int64_t t) {
                for (int64_t i = t * piece; i < std::min(m, (t + 1) * piece); ++i) {
                    double sum = 0;
                    r.each(i, [&](int64_t, double v) { sum += absolute ? std::abs(v) : v * v; });
                    norms[std::size_t(i)] = sum;
                }
            });
        },
        view);
    if (single()) norms_single.assign(norms.begin(), norms.end());
}

int64_t KernelRows::rows() const {
    return std::visit([](const auto& r) { return r.rows; }, view);
}
int64_t KernelRows::cols() const {
    return std::visit([](const auto& r) { return r.cols; }, view);
}
bool KernelRows::single() const {
    return std::visit([]<class Rows>(const Rows&) { return std::is_same_v<typename Rows::Value, float>; },
                      view);
}

void kernel_diagonal(const KernelRows& x, double* out) {
    const Kernel& k = x.kernel;
    for (int64_t i = 0; i < x.rows(); ++i) {
        const double square = x.norms[std::size_t(i)];
        switch (k.kind) {
            case KernelKind::linear:
                out[i] = square;
                break;
            case KernelKind::poly:
                out[i] = std::pow(k.gamma * square + k.coef0, double(k.degree));
                break;
            case KernelKind::sigmoid:
                out[i] = std::tanh(k.gamma * square + k.coef0);
                break;
            default:
                out[i] = 1.0;
        }
    }
}

template <class Real>
void kernel_block(const KernelRows& x, const int64_t* a, int64_t count_a, const int64_t* b, int64_t count_b,
                  Real* out, int64_t stride, int threads) {
    check_precision<Real>(x);
    // A symmetric block is computed where so many columns reach the diagonal or lie above it, and copied
    // below.
    constexpr int64_t width = 256;
    threads = useful(threads, count_a * count_b, 0);
    const int64_t batch = batch_of<Real>(x, 4), batches = (count_a + batch - 1) / batch;
    const int64_t tasks = (count_b + width - 1) / width;
    const bool symmetric = count_a == count_b && std::equal(a, a + count_a, b);
    // Threads start once: a task packs rows and meets all columns, or a slab of them where the rows are few.
    const int64_t slabs =
        std::clamp<int64_t>(4 * threads / std::max<int64_t>(batches, 1), 1, std::max<int64_t>(tasks, 1));
    const int64_t slab = (tasks + slabs - 1) / slabs;
    const auto rows = panels_of<Real>(x);
    parallel_for(threads, batches * slabs, [&](int64_t task) {
        const int64_t begin = task / slabs * batch;
        const int64_t from = std::max(task % slabs * slab, symmetric ? begin / width : 0);
        const int64_t end = std::min(tasks, (task % slabs + 1) * slab);
        if (from >= end) return;
        const Packed<Real> packed(x, a + begin, std::min(batch, count_a - begin), *rows);
        for (int64_t t = from; t < end; ++t) {
            const int64_t first = t * width, count = std::min(width, count_b - first);
            const auto order = tile_orders(*rows, b, first, count);
            for (int64_t g = 0; g < packed.groups(); ++g) {
                Real* to[most_lanes<Real>];
                for (int l = 0; l < packed.L; ++l) {
                    const int64_t row = g * packed.L + l;
                    to[l] = row < packed.count() ? out + (begin + row) * stride + first : nullptr;
                }
                rows->panel({&x.kernel, b, first, count, order.data(), packed.group(g), packed.norms(g),
                             norms_of<Real>(x), to});
            }
        }
    });
    if (!symmetric) return;
    parallel_for(threads, tasks, [&](int64_t t) {
        for (int64_t p = (t + 1) * width; p < count_a; ++p) {
            const int64_t end = std::min((t + 1) * width, p / batch * batch / width * width);
            for (int64_t q = t * width; q < end; ++q) out[p * stride + q] = out[q * stride + p];
        }
    });
}

template <class Real>
void kernel_fill_add(const KernelRows& x, const int64_t* missing, Real* const* fill, int64_t count_missing,
                     const Real* const* rows, const double* coef, int64_t count, double* F, int threads) {
    check_precision<Real>(x);
    const int64_t m = x.rows(), stretch = stretch_of(x), tasks = (m + stretch - 1) / stretch;
    threads = useful(threads, count_missing * m, count * m);
    const int64_t batch = batch_of<Real>(x, 16);
    const auto view = panels_of<Real>(x);
    for (int64_t begin = 0; begin == 0 || begin < count_missing; begin += batch) {
        const Packed<Real> packed(x, missing + begin, std::min(batch, count_missing - begin), *view);
        const bool last = begin + batch >= count_missing;
        parallel_for(threads, tasks, [&](int64_t t) {
            const int64_t first = t * stretch, n = std::min(stretch, m - first);
            const auto order = tile_orders(*view, nullptr, first, n);
            for (int64_t g = 0; g < packed.groups(); ++g) {
                Real* to[most_lanes<Real>];
                for (int l = 0; l < packed.L; ++l) {
                    const int64_t row = g * packed.L + l;
                    to[l] = row < packed.count() ? fill[begin + row] + first : nullptr;
                }
                view->panel({&x.kernel, nullptr, first, n, order.data(), packed.group(g), packed.norms(g),
                             norms_of<Real>(x), to});
            }
            if (last) add_stretch(rows, coef, count, F, first, n);
        });
    }
}

template <class Real>
void add_rows(const Real* const* rows, const double* coef, int64_t count, double* F, int64_t n, int threads) {
    constexpr int64_t stretch = 1024;
    threads = useful(threads, 0, count * n);
    parallel_for(threads, (n + stretch - 1) / stretch, [&](int64_t t) {
        add_stretch(rows, coef, count, F, t * stretch, std::min(stretch, n - t * stretch));
    });
}

template <class Real>
void kernel_scores(const KernelRows& a, const int64_t* a_index, int64_t count, const double* coef,
                   int64_t outputs, const KernelRows& x, const int64_t* x_index, int64_t m, double* out,
                   int threads) {
    check_precision<Real>(a);
    check_precision<Real>(x);
    const int64_t batch = batch_of<Real>(a, 64), stretch = stretch_of(x);
    threads = useful(threads, count * m, count * m * outputs);
    const auto& add = static_cast<const VectorEntry<Real>&>(kernel_table()).add;
    std::fill_n(out, outputs * m, 0.0);
    const auto rows = panels_of<Real>(x);
    std::vector<int64_t> chosen;
    for (int64_t begin = 0; begin < count; begin += batch) {
        chosen.resize(std::size_t(std::min(batch, count - begin)));
        for (std::size_t p = 0; p < chosen.size(); ++p)
            chosen[p] = a_index ? a_index[begin + int64_t(p)] : begin + int64_t(p);
        const Packed<Real> packed(a, chosen.data(), int64_t(chosen.size()), *rows);
        const int L = packed.L;
        parallel_for(threads, (m + stretch - 1) / stretch, [&](int64_t t) {
            const int64_t first = t * stretch, n = std::min(stretch, m - first);
            const auto order = tile_orders(*rows, x_index, first, n);
            std::vector<Real> panel(std::size_t(L * n), Real(0));
            Real* to[most_lanes<Real>];
            const Real* from[most_lanes<Real>];
            for (int l = 0; l < L; ++l) from[l] = to[l] = panel.data() + l * n;
            for (int64_t g = 0; g < packed.groups(); ++g) {
                rows->panel({&a.kernel, x_index, first, n, order.data(), packed.group(g), packed.norms(g),
                             norms_of<Real>(x), to});
                const int lanes = int(std::min<int64_t>(L, packed.count() - g * L));
                for (int64_t o = 0; o < outputs; ++o) {
                    const double* c = coef + o * count + begin + g * L;
                    // A row of one class has no part in most pairs of classes.
                    if (std::all_of(c, c + lanes, [](double v) { return v == 0; })) continue;
                    add(from, c, lanes, out + o * m + first, n);
                }
            }
        });
    }
}

template <class Real>
void kernel_cross(const KernelRows& a, const KernelRows& x, Real* out, int64_t stride, int threads) {
    check_precision<Real>(a);
    check_precision<Real>(x);
    const int64_t count = a.rows(), m = x.rows(), stretch = stretch_of(x);
    const int64_t batch = batch_of<Real>(a, 16), batches = (count + batch - 1) / batch;
    threads = useful(threads, count * m, 0);
    const auto rows = panels_of<Real>(x);
    parallel_for(threads, batches, [&](int64_t task) {
        std::vector<int64_t> chosen(std::size_t(std::min(batch, count - task * batch)));
        std::iota(chosen.begin(), chosen.end(), task * batch);
        const Packed<Real> packed(a, chosen.data(), int64_t(chosen.size()), *rows);
        for (int64_t first = 0; first < m; first += stretch) {
            const int64_t n = std::min(stretch, m - first);
            const auto order = tile_orders(*rows, nullptr, first, n);
            for (int64_t g = 0; g < packed.groups(); ++g) {
                Real* to[most_lanes<Real>];
                for (int l = 0; l < packed.L; ++l) {
                    const int64_t row = g * packed.L + l;
                    to[l] = row < packed.count() ? out + (task * batch + row) * stride + first : nullptr;
                }
                rows->panel({&a.kernel, nullptr, first, n, order.data(), packed.group(g), packed.norms(g),
                             norms_of<Real>(x), to});
            }
        }
    });
}

template <class Real>
void kernel_pull(const KernelRows& a, const double* coef, const KernelRows& z, double* value, double* pull,
                 int threads) {
    check_precision<Real>(a);
    check_precision<Real>(z);
    if (a.kernel.kind == KernelKind::laplacian || a.kernel.kind == KernelKind::chi2)
        throw std::invalid_argument("pull needs a kernel of inner products");
    const int64_t m = a.rows(), cols = a.cols(), count = z.rows();
    // Every piece has sums of its own, as wide as a row: they should not take more room than the rows.
    const int64_t piece = std::max<int64_t>(4096, cols), pieces = (m + piece - 1) / piece;
    threads = useful(threads, m * count / 4, 0);
    const auto rows = panels_of<Real>(a);
    const Packed<Real> packed(z, nullptr, count, *rows);
    const int L = packed.L;
    for (int64_t g = 0; g < packed.groups(); ++g) {
        std::vector<double> values(std::size_t(pieces * L), 0.0);
        std::vector<Real> pulls(std::size_t(pieces * cols * L), Real(0));
        parallel_for(threads, pieces, [&](int64_t t) {
            const int64_t first = t * piece, n = std::min(piece, m - first);
            rows->pull({&a.kernel, first, n, packed.group(g), packed.norms(g), norms_of<Real>(a), coef,
                        values.data() + t * L, pulls.data() + t * cols * L});
        });
        for (int64_t p = g * L; p < std::min(count, (g + 1) * L); ++p) {
            const int64_t l = p % L;
            value[p] = 0;
            std::fill_n(pull + p * cols, cols, 0.0);
            for (int64_t t = 0; t < pieces; ++t) {
                value[p] += values[std::size_t(t * L + l)];
                for (int64_t k = 0; k < cols; ++k)
                    pull[p * cols + k] += double(pulls[std::size_t((t * cols + k) * L + l)]);
            }
        }
    }
}

template void kernel_block<float>(const KernelRows&, const int64_t*, int64_t, const int64_t*, int64_t, float*,
                                  int64_t, int);
template void kernel_block<double>(const KernelRows&, const int64_t*, int64_t, const int64_t*, int64_t,
                                   double*, int64_t, int);
template void kernel_fill_add<float>(const KernelRows&, const int64_t*, float* const*, int64_t,
                                     const float* const*, const double*, int64_t, double*, int);
template void kernel_fill_add<double>(const KernelRows&, const int64_t*, double* const*, int64_t,
                                      const double* const*, const double*, int64_t, double*, int);
template void kernel_scores<float>(const KernelRows&, const int64_t*, int64_t, const double*, int64_t,
                                   const KernelRows&, const int64_t*, int64_t, double*, int);
template void kernel_scores<double>(const KernelRows&, const int64_t*, int64_t, const double*, int64_t,
                                    const KernelRows&, const int64_t*, int64_t, double*, int);
template void kernel_cross<float>(const KernelRows&, const KernelRows&, float*, int64_t, int);
template void kernel_cross<double>(const KernelRows&, const KernelRows&, double*, int64_t, int);
template void kernel_pull<float>(const KernelRows&, const double*, const KernelRows&, double*, double*, int);
template void kernel_pull<double>(const KernelRows&, const double*, const KernelRows&, double*, double*, int);
template void add_rows<float>(const float* const*, const double*, int64_t, double*, int64_t, int);
template void add_rows<double>(const double* const*, const double*, int64_t, double*, int64_t, int);

}  // namespace pegasos
