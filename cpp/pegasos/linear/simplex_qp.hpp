// The small problem inside a cutting-plane method:  max_a ⟨a, b⟩ − ½ aᵀ H a  over the simplex {a ≥ 0, Σ a =
// 1}.
#pragma once
#include <cstdint>

namespace pegasos {

// Improves a (feasible on entry) by moving weight between the pair that gains most, until no move of first
// order gains more than `tolerance`. H is n × n, symmetric, positive semidefinite. Returns the remaining
// violation.
double simplex_qp(std::int64_t n, const double* H, const double* b, double* a, double tolerance,
                  std::int64_t steps);

}  // namespace pegasos
