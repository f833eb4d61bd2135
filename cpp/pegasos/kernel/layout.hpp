// Rows laid out for kernel panels: CSR whose columns are renumbered, the most frequent first.
//
// An entry of a sparse row meets the packed lanes of its column (kernel/panels.hpp). With the frequent
// columns side by side, most of these lie in the nearest cache; columns that are empty everywhere take no
// room at all.
#pragma once
#include <cstdint>

#include "pegasos/core/rows.hpp"

namespace pegasos {

// Entries other than zero, of each row and each column.
void count_nonzeros(const AnyRows&, std::int64_t* of_row, std::int64_t* of_column, int threads);

// The rows with column k renumbered rank[k], in increasing order and without zeros; columns of negative rank
// must be empty. Row i begins at indptr[i], as the counts of count_nonzeros say.
template <class Value>
void renumber(const AnyRows&, const std::int32_t* rank, const std::int64_t* indptr, std::int32_t* indices,
              Value* data, int threads);

}  // namespace pegasos
