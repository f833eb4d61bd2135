// Picks the tables of kernels for this machine's instruction set, or those that PEGASOS_SIMD names.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "pegasos/simd/kernels.hpp"

#ifdef PEGASOS_X86_DISPATCH
#include <cpuid.h>
#endif

#include "pegasos/kernel/pair_votes.hpp"
#include "pegasos/kernel/panels.hpp"
#include "pegasos/linear/box_kernels.hpp"
#include "pegasos/linear/envelope.hpp"
#include "pegasos/linear/margin_lanes.hpp"
#include "pegasos/structured/chain_kernels.hpp"

#define PEGASOS_DECLARE(isa)                                      \
    namespace simd {                                              \
    extern const Kernels<float> table_float_##isa;                \
    extern const Kernels<double> table_double_##isa;              \
    extern const Syrk table_syrk_##isa;                           \
    }                                                             \
    extern const BoxKernels table_box_##isa;                      \
    extern const EnvelopeKernels table_envelope_##isa;            \
    extern const KernelTable table_kernel_##isa;                  \
    extern const PairTable table_pairs_##isa;                     \
    extern const MarginKernels<float> table_margin_float_##isa;   \
    extern const MarginKernels<double> table_margin_double_##isa; \
    extern const SquareLanes table_squares_##isa;                 \
    extern const ChainKernels<float> table_chain_float_##isa;     \
    extern const ChainKernels<double> table_chain_double_##isa;

#ifdef PEGASOS_X86_DISPATCH
#define PEGASOS_CHOOSE(table) (level == 4 ? table##_v4 : level == 3 ? table##_v3 : table##_baseline)
#else
#define PEGASOS_CHOOSE(table) (table##_baseline)
#endif

namespace pegasos {

PEGASOS_DECLARE(baseline)
#ifdef PEGASOS_X86_DISPATCH
PEGASOS_DECLARE(v3)
PEGASOS_DECLARE(v4)
#endif
namespace {
#ifdef PEGASOS_X86_DISPATCH
// By single features: clang before 16 does not know the names of levels. Processors with AVX2 have what else belongs to
// level 3.
const bool level3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
const bool level4 = level3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
const int highest = level4 ? 4 : level3 ? 3 : 1;
#else
const int highest = 1;
#endif
// The level that PEGASOS_SIMD asks for; 0 if it is not set, −1 if it means nothing.
int wanted() {
    const char* word = std::getenv("PEGASOS_SIMD");
    if (!word || !*word) return 0;
    for (const auto& [name, level] : {std::pair{"baseline", 1}, {"avx2", 3}, {"avx512", 4}})
        if (name == std::string(word)) return level;
    return -1;
}
[[maybe_unused]] const int level = wanted() > 0 && wanted() < highest ? wanted() : highest;
}  // namespace

namespace simd {
namespace {
const char *const name_baseline = "baseline", *const name_v3 = "v3", *const name_v4 = "v4";
}
template <>
const Kernels<float>& kernels<float>() {
    return PEGASOS_CHOOSE(table_float);
}
template <>
const Kernels<double>& kernels<double>() {
    return PEGASOS_CHOOSE(table_double);
}
#ifdef PEGASOS_X86_DISPATCH
namespace {
bool gathers_well() {
    if (level < 4 || !__builtin_cpu_is("intel")) return false;
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    const unsigned model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
    // Skylake and Cascade Lake, Ice Lake, Tiger Lake, Rocket Lake.
    for (const unsigned slowed : {0x55u, 0x6au, 0x6cu, 0x7du, 0x7eu, 0x8cu, 0x8du, 0xa7u})
        if (model == slowed) return false;
    return true;
}
}  // namespace
bool gathers() {
    static const bool yes = gathers_well();
    return yes;
}
#else
bool gathers() { return false; }
#endif
Syrk syrk() { return PEGASOS_CHOOSE(table_syrk); }
void check_wanted() {
    const int asked = wanted();
    const std::string had = highest == 4   ? "baseline, avx2, avx512"
                            : highest == 3 ? "baseline, avx2"
                                           : "baseline";
    if (asked < 0 || asked > highest)
        throw std::runtime_error(
            "PEGASOS_SIMD=" + std::string(std::getenv("PEGASOS_SIMD")) +
            (asked < 0 ? " is no instruction set" : ": this machine has no such instructions") +
            "; here it can be " + had);
}
const char* instruction_set() { return PEGASOS_CHOOSE(name); }
}  // namespace simd

const BoxKernels& box_kernels() { return PEGASOS_CHOOSE(table_box); }
const EnvelopeKernels& envelope() { return PEGASOS_CHOOSE(table_envelope); }
const KernelTable& kernel_table() { return PEGASOS_CHOOSE(table_kernel); }
const PairTable& pair_table() { return PEGASOS_CHOOSE(table_pairs); }
SquareLanes square_lanes() { return PEGASOS_CHOOSE(table_squares); }
template <>
const MarginKernels<float>& margin_kernels<float>() {
    return PEGASOS_CHOOSE(table_margin_float);
}
template <>
const MarginKernels<double>& margin_kernels<double>() {
    return PEGASOS_CHOOSE(table_margin_double);
}
template <>
const ChainKernels<float>& chain_kernels<float>() {
    return PEGASOS_CHOOSE(table_chain_float);
}
template <>
const ChainKernels<double>& chain_kernels<double>() {
    return PEGASOS_CHOOSE(table_chain_double);
}

}  // namespace pegasos
