#include "pegasos/core/outputs.hpp"

#include <vector>

#include "pegasos/core/bias.hpp"

namespace pegasos {
namespace {

// A loss of one score, for one output or for several classes, each against the rest.
template <class Loss>
class Independent final : public Output {
 public:
    Independent(const Loss& l, const Targets& t) : Output(t, t.value ? 1 : t.count, false), loss(l) {}

    void slopes(int64_t i, const double* z, double* g) const override {
        for (int l = 0; l < outputs; ++l) g[l] = loss.slope(z[l], y(i, l));
        std::fill(g + outputs, g + lanes, 0.0);
    }
    void step(int64_t i, const double* z, double q, double* u) override {
        for (int l = 0; l < outputs; ++l)
            u[l] = q > 0 ? loss.dual_step(u[l], z[l], y(i, l), q) : loss.slope(z[l], y(i, l));
    }
    double measure(int64_t i, const double* z, const double* u, double c, double* value,
                   double* gap) const override {
        double most = 0;
        for (int l = 0; l < outputs; ++l) {
            const double v = loss.value(z[l], y(i, l));
            const double mine = v - loss.conjugate(u[l], y(i, l)) + u[l] * z[l];
            value[l] += c * v;
            gap[l] += c * mine;
            most = std::max(most, mine);
        }
        return most;
    }
    Drift drift(int64_t i, const double* z, const double* u) const override {
        Drift sum;
        if constexpr (Drifting<Loss>)
            for (int l = 0; l < outputs; ++l) sum += loss.drift(u[l], z[l], y(i, l));
        return sum;
    }
    bool settled(int64_t i, const double* z, const double* u, double slack) const override {
        for (int l = 0; l < outputs; ++l)
            if (loss.slope(z[l] - slack, y(i, l)) != u[l] || loss.slope(z[l] + slack, y(i, l)) != u[l])
                return false;
        return true;
    }
    void settled_rows(int64_t first, int64_t count, const double* z, const double* u, double slack,
                      char* yes) const override {
        for (int64_t r = 0; r < count; ++r, z += outputs, u += outputs)
            yes[r] = Independent::settled(first + r, z, u, slack);
    }
    void balance(const int64_t* rows, int64_t k, const Weights& c, const double* z, double* b,
                 double* g) const override {
        std::vector<double> target(k), weight(k);
        double total = 0;
        for (int64_t r = 0; r < k; ++r) total += weight[r] = c[rows[r]];
        for (int l = 0; l < parts; ++l) {
            for (int64_t r = 0; r < k; ++r) target[r] = y(rows[r], l);
            const auto slope = [&](int64_t r, double bias) {
                return loss.slope(z[r * lanes + l] - b[l] + bias, target[r]);
            };
            const auto sum = [&](double bias) {
                double slopes = 0;
                for (int64_t r = 0; r < k; ++r) slopes += weight[r] * slope(r, bias);
                return slopes;
            };
            const Crossing at = zero_crossing(sum, b[l], total);
            const double mid = 0.5 * (at.lo + at.hi), up = sum(at.lo), down = -sum(at.hi);
            const double share = at.flat ? 1.0 : down / (up + down);
            for (int64_t r = 0; r < k; ++r)
                g[r * lanes + l] =
                    at.flat ? slope(r, mid) : share * slope(r, at.lo) + (1 - share) * slope(r, at.hi);
            b[l] = mid;
        }
        for (int l = parts; l < lanes; ++l)
            for (int64_t r = 0; r < k; ++r) g[r * lanes + l] = 0;
    }
    std::optional<MarginShape> margin_shape() const override {
        if constexpr (MarginShaped<Loss>)
            if (targets.label) return loss.margin_shape();
        return std::nullopt;
    }

 private:
    double y(int64_t i, int l) const {
        if (targets.value) return targets.value[i];
        return targets.label[i] == targets.first + l ? 1.0 : -1.0;
    }

    Loss loss;
};

template <class Loss>
class Joint final : public Output {
 public:
    Joint(const Loss& l, const Targets& t) : Output(t, l.classes, true), loss(l), next(loss.classes) {}

    void slopes(int64_t i, const double* z, double* g) const override {
        loss.slopes(z, targets.label[i], g);
        std::fill(g + outputs, g + lanes, 0.0);
    }
    void step(int64_t i, const double* z, double q, double* u) override {
        if (!(q > 0)) return loss.slopes(z, targets.label[i], u);
        loss.dual_step(u, z, targets.label[i], q, next.data(), work);
        std::copy(next.begin(), next.end(), u);
    }
    double measure(int64_t i, const double* z, const double* u, double c, double* value,
                   double* gap) const override {
        const double v = loss.value(z, targets.label[i]);
        double mine = v - loss.conjugate(u, targets.label[i]);
        for (int l = 0; l < outputs; ++l) mine += u[l] * z[l];
        value[0] += c * v;
        gap[0] += c * mine;
        return mine;
    }
    Drift drift(int64_t, const double*, const double*) const override { return {}; }
    bool settled(int64_t i, const double* z, const double* u, double slack) const override {
        if constexpr (Settling<Loss>) return loss.settled(z, u, targets.label[i], slack);
        return false;
    }
    void settled_rows(int64_t first, int64_t count, const double* z, const double* u, double slack,
                      char* yes) const override {
        for (int64_t r = 0; r < count; ++r, z += outputs, u += outputs)
            yes[r] = Joint::settled(first + r, z, u, slack);
    }
    void balance(const int64_t*, int64_t, const Weights&, const double*, double*, double*) const override {}
    std::optional<MarginShape> margin_shape() const override { return std::nullopt; }

 private:
    Loss loss;
    std::vector<double> work{}, next;
};

}  // namespace

std::unique_ptr<Output> make_output(const AnyLoss& any, const Targets& targets) {
    return std::visit(
        [&]<class Loss>(const Loss& loss) -> std::unique_ptr<Output> {
            return std::make_unique<Independent<Loss>>(loss, targets);
        },
        any);
}
std::unique_ptr<Output> make_output(const AnyJointLoss& any, const Targets& targets) {
    return std::visit(
        [&]<class Loss>(const Loss& loss) -> std::unique_ptr<Output> {
            return std::make_unique<Joint<Loss>>(loss, targets);
        },
        any);
}

}  // namespace pegasos
