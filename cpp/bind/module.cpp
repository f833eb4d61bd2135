// The extension module: a table of what is registered where.
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "pegasos/simd/kernels.hpp"

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of pegasos; see docs/architecture.md. Not a public interface.";
    pegasos::simd::check_wanted();
    m.def("instruction_set", [] { return std::string(pegasos::simd::instruction_set()); });
    pegasos::bind::register_chain(m);
    pegasos::bind::register_kernels(m);
    pegasos::bind::register_kernel_steps(m);
    pegasos::bind::register_lasvm(m);
    pegasos::bind::register_losses(m);
    pegasos::bind::register_pairs(m);
    pegasos::bind::register_passes(m);
    pegasos::bind::register_second_order(m);
    pegasos::bind::register_sequences(m);
    pegasos::bind::register_solvers(m);
    pegasos::bind::register_svmlight(m);
}
