// Single passes over all rows, in float64: what certificates, checks and the second-order solvers are made
// of. Work is cut by the data alone, never by the number of threads, so the bits do not depend on it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "pegasos/core/digest.hpp"
#include "pegasos/core/rows.hpp"

namespace pegasos {

// What a look at all entries finds. The first offence ends the look; -1: none.
struct Inspection {
    int64_t bad_value_row = -1, bad_value_col = -1;  // not finite
    int64_t bad_index_row = -1, bad_index = 0;       // column index outside [0, cols)
    int64_t bad_pointer_row = -1;                    // indptr decreases or leaves the arrays
    bool repeated = false;                           // a row names a column twice or out of order
    Digest digest{};                                 // of what was looked at
};

// Checks every entry and writes ‖x_i‖² (wrong where repeated).
Inspection inspect(const AnyRows&, double* squared_norms, int threads);

// Some of the rows, by number; all of them if `index` is null.
struct Subset {
    const int64_t* index = nullptr;
    int64_t count = 0;
    int64_t operator[](int64_t r) const { return index ? index[r] : r; }
};

// Whether rows that were read are others than those of another digest. Certificates tell what they have read.
bool changed(const AnyRows&, const Digest&, const Digest&);
Digest digest_of(const AnyRows&, int threads);

// Z (subset × K) = X Wᵀ + b, with W (K × n).
void scores(const AnyRows&, Subset, const double* W, const double* b, int K, double* Z, int threads);

// The same for rows that are not checked yet: false if a row pointer or column index was wrong.
bool scores_unchecked(const AnyRows&, const double* W, const double* b, int K, double* Z, int threads);

// W (K × n) = Cᵀ X, with C (subset × K).
void adjoint(const AnyRows&, Subset, const double* C, int K, double* W, int threads);

// Both at once, for about the price of one: Z = X Wᵀ + b, and of Cᵀ X (K × n), which is never kept whole, the
// squared norm of each line.
void scores_and_squares(const AnyRows&, Subset, const double* W, const double* b, int K, double* Z,
                        const double* C, double* squares, int threads, Digest&);

// The model of dual variables: W = Cᵀ X, the squared norm of each of its lines, and then Z = X Wᵀ + b.
void dual_model(const AnyRows&, Subset, const double* C, const double* b, int K, double* W, double* squares,
                double* Z, int threads, Digest&);

// M ((n+1) × (n+1), both triangles) = Σ_i d_i x̃_i x̃_iᵀ over the subset, with x̃ = (x, 1).
void gram(const AnyRows&, Subset, const double* d, double* M, int threads);

// The largest |x_ij| of each column.
void column_scales(const AnyRows&, double* scale);

}  // namespace pegasos
