// Solves M x = r for a symmetric positive (semi)definite M that may be badly scaled: the n × n side of the
// second-order methods.
//
// M is equilibrated to unit diagonal, S M S with S = diag(M)^(−1/2), and factorised by Cholesky with a
// relative ridge that grows until that succeeds; the solutions are refined against M itself.
#pragma once
#include <cstdint>

#include "pegasos/core/memory.hpp"

namespace pegasos {

// LAPACK's Cholesky factorisation, called as in Fortran. The core links to no LAPACK: the caller hands
// over one that is there anyway.
struct Lapack {
    void (*potrf)(char* uplo, int* n, double* a, int* lda, int* info);
};

class NormalSolver {
 public:
    // M (n × n, both triangles) is borrowed, for as long as anything is to be solved.
    NormalSolver(const Lapack& lapack, const double* M, std::int64_t n);

    // Whether there is a factor: not for matrices far from positive definite, or with a NaN.
    bool good() const { return good_; }

    // x = M⁻¹r, for n numbers each; x and r are not the same.
    void solve(const double* r, double* x) const;

 private:
    bool factorise(double ridge);
    void solve_once(const double* r, double* x) const;
    double scaled_length(const double* r) const;

    Lapack lapack_;
    const double* M_;
    std::int64_t n_;
    Buffer scale_, factor_;
    bool good_ = false;
};

}  // namespace pegasos
