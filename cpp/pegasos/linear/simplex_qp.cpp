#include "pegasos/linear/simplex_qp.hpp"

#include <algorithm>
#include <vector>

namespace pegasos {

double simplex_qp(std::int64_t n, const double* H, const double* b, double* a, double tolerance,
                  std::int64_t steps) {
    std::vector<double> gradient(b, b + n);
    for (std::int64_t j = 0; j < n; ++j)
        if (a[j] != 0)
            for (std::int64_t k = 0; k < n; ++k) gradient[k] -= a[j] * H[j * n + k];
    double violation = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
        const std::int64_t up = std::max_element(gradient.begin(), gradient.end()) - gradient.begin();
        // Second-order choice of the plane that gives: the gain of a full step is (difference)²/(2
        // curvature).
        std::int64_t down = -1;
        double best = -1;
        violation = 0;
        for (std::int64_t k = 0; k < n; ++k) {
            if (a[k] <= 0) continue;
            const double difference = gradient[up] - gradient[k];
            violation = std::max(violation, difference);
            const double curvature = std::max(H[up * n + up] + H[k * n + k] - 2 * H[up * n + k], 1e-300);
            const double move = std::min(a[k], difference / curvature),
                         gain = move * (difference - 0.5 * curvature * move);
            if (gain > best) best = gain, down = k;
        }
        if (violation <= tolerance || down < 0) break;
        const double curvature = std::max(H[up * n + up] + H[down * n + down] - 2 * H[up * n + down], 1e-300);
        const double move = std::min(a[down], (gradient[up] - gradient[down]) / curvature);
        a[up] += move;
        a[down] = move == a[down] ? 0.0 : a[down] - move;
        for (std::int64_t k = 0; k < n; ++k) gradient[k] -= move * (H[up * n + k] - H[down * n + k]);
    }
    return violation;
}

}  // namespace pegasos
