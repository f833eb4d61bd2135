// Instantiates SDCA's loops over rows for the row layout PEGASOS_ROWS: for one score with each loss, serial and
// in blocks, and for several in double and in single precision.
#include "pegasos/linear/block_sdca.hpp"

namespace pegasos {

using Layout = PEGASOS_ROWS;

static std::unique_ptr<SdcaBase> several(const Layout& rows, std::unique_ptr<Output> output, Weights c,
                                         const double* x2, const SdcaOptions& o) {
    Output& out = *output;
    if (o.single && out.lanes <= 16 && out.margin_shape())
        return std::make_unique<SingleSdcaSolver<Layout>>(rows, out, std::move(output), c, x2, o);
    return std::make_unique<SdcaSolver<Layout, Output>>(rows, out, std::move(output), c, x2, o);
}

template <>
std::unique_ptr<SdcaBase> make_sdca(const Layout& rows, const AnyLoss& any, const Targets& targets, Weights c,
                                    const double* x2, const SdcaOptions& o) {
    auto output = make_output(any, targets);
    if (!targets.value) return several(rows, std::move(output), c, x2, o);
    return std::visit(
        [&]<class Loss>(const Loss& loss) -> std::unique_ptr<SdcaBase> {
            const Single<Loss> out{loss, targets.value};
            if (o.blocks > 0)
                return std::make_unique<BlockSdcaSolver<Layout, Loss>>(rows, out, std::move(output), c, x2,
                                                                       o);
            return std::make_unique<SdcaSolver<Layout, Single<Loss>>>(rows, out, std::move(output), c, x2, o);
        },
        any);
}
template <>
std::unique_ptr<SdcaBase> make_sdca(const Layout& rows, const AnyJointLoss& loss, const Targets& targets,
                                    Weights c, const double* x2, const SdcaOptions& o) {
    return several(rows, make_output(loss, targets), c, x2, o);
}

}  // namespace pegasos
