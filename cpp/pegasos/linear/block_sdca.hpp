// SDCA in logical blocks that threads can share, with the same bits for any number of threads.
//
// A round takes the next tenth of the epoch's rows and cuts it into `blocks` parts. Every part ascends on its
// own copy of w with its steps damped by σ (q → σq: CoCoA+'s local problem, Ma et al. 2015); the parts'
// changes δu, δw = Σ_k δw_k are then added with the step η ∈ [0, 1] that maximises
//
//   η · gain − λη⟨w, δw⟩ − (λη²/2)‖δw‖²,
//   gain = (1/M) Σ c_i (conjugate(u_i + δ_i) − conjugate(u_i) − offset δ_i),
//
// a lower bound of the dual's increase for any concave conjugate, exact for the hinge loss. So the dual never
// falls, whatever σ; σ is lowered while η wants to exceed 1 and raised when it falls short (Lee & Chang 2019
// for the line search; Ioannou et al. 2019 for cutting the rows anew each round).
#pragma once
#include <span>

#include "pegasos/linear/sdca.hpp"

namespace pegasos {

class BlockSdca : public SdcaState<double> {
 public:
    BlockSdca(const RowsShape&, std::unique_ptr<Output>, Weights, const double* squared_norms,
              const SdcaOptions&);
    ~BlockSdca() override;
    void advance(int64_t rows) final;

 protected:
    struct Part {
        WeightBuffer<double> W{};
        std::vector<std::pair<int64_t, double>> moves{};  // row, change of its dual variable
        double gain = 0, value = 0, gap = 0;
    };
    virtual void ascend(Part&, const int64_t* first, const int64_t* last) const = 0;
    virtual void move(const Part&, double step) = 0;  // adds `step` times a part's changes to u

 private:
    void round(const int64_t* rows, int64_t count);
    void apply(double step);

    int64_t nnz_;
    std::vector<Part> parts_;
    Buffer change_;
};

template <class Rows, class Loss>
class BlockSdcaSolver final : public BlockSdca {
 public:
    BlockSdcaSolver(const Rows& rows, const Single<Loss>& out, std::unique_ptr<Output> output, Weights c,
                    const double* squared_norms, const SdcaOptions& options)
        : BlockSdca(RowsShape(rows), std::move(output), c, squared_norms, options),
          row_{rows, out, options.feature} {}

 private:
    void ascend(Part& p, const int64_t* first, const int64_t* last) const override {
        p.W = W_;
        p.moves.clear();
        p.gain = p.value = p.gap = 0;
        const std::span rows(first, last);
        for (int64_t r = 0; r < int64_t(rows.size()); ++r) {
            row_.prefetch(rows, r, [&](int64_t i) { return std::array<const void*, 2>{&x2_[i], &u_[i]}; });
            const int64_t i = rows[r];
            const double c = c_[i], share = this->share(i), old = u_[i];
            if (c == 0) continue;
            double z, u = old;
            row_.dot(i, p.W.data(), &z);
            z += offset_[0];
            row_.out.measure(i, &z, &old, c, &p.value, &p.gap);
            const double q = (x2_[i] + row_.feature * row_.feature) * share;
            row_.out.step(i, &z, sigma_ * q, &u);
            if (u == old) continue;
            const Loss& loss = row_.out.loss;
            const double y = row_.out.y(i), coef = sigma_ * (u - old) * share;
            p.gain += c * (loss.conjugate(u, y) - loss.conjugate(old, y) - offset_[0] * (u - old));
            p.moves.emplace_back(i, u - old);
            row_.axpy(i, &coef, p.W.data());
        }
    }
    void move(const Part& p, double step) override {
        for (const auto& [i, d] : p.moves) {
            const double y = row_.out.y(i);  // rounding must not carry u out of its domain
            u_[i] = std::clamp(u_[i] + step * d, row_.out.loss.lower(y), row_.out.loss.upper(y));
        }
    }

    RowVisits<Rows, Single<Loss>> row_;
};

}  // namespace pegasos
