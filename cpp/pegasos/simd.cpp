#include "pegasos/simd.hpp"

namespace pegasos::simd {

#define PEGASOS_DECLARE(isa)                         \
    extern const Kernels<float> table_float_##isa;   \
    extern const Kernels<double> table_double_##isa; \
    extern const Syrk table_syrk_##isa;
PEGASOS_DECLARE(baseline)

#ifdef PEGASOS_X86_DISPATCH
PEGASOS_DECLARE(v3)
PEGASOS_DECLARE(v4)

namespace {
const int level = __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3 : 1;
}

template <>
const Kernels<float>& kernels<float>() {
    return level == 4 ? table_float_v4 : level == 3 ? table_float_v3 : table_float_baseline;
}
template <>
const Kernels<double>& kernels<double>() {
    return level == 4 ? table_double_v4 : level == 3 ? table_double_v3 : table_double_baseline;
}
Syrk syrk() { return level == 4 ? table_syrk_v4 : level == 3 ? table_syrk_v3 : table_syrk_baseline; }
const char* instruction_set() { return level == 4 ? "v4" : level == 3 ? "v3" : "baseline"; }
#else
template <>
const Kernels<float>& kernels<float>() {
    return table_float_baseline;
}
template <>
const Kernels<double>& kernels<double>() {
    return table_double_baseline;
}
Syrk syrk() { return table_syrk_baseline; }
const char* instruction_set() { return "baseline"; }
#endif

}  // namespace pegasos::simd
