// Instantiates the steps of Pegasos for the row layout PEGASOS_ROWS: for one score with each loss, and for
// several.
#include "pegasos/linear/pegasos.hpp"

namespace pegasos {

using Layout = PEGASOS_ROWS;

static std::unique_ptr<PegasosBase> several(const Layout& rows, std::unique_ptr<Output> output, Weights c,
                                            const PegasosOptions& options) {
    Output& out = *output;
    return std::make_unique<PegasosSolver<Layout, Output>>(rows, out, std::move(output), c, options);
}

template <>
std::unique_ptr<PegasosBase> make_pegasos(const Layout& rows, const AnyLoss& any, const Targets& targets,
                                          Weights c, const PegasosOptions& options) {
    auto output = make_output(any, targets);
    if (!targets.value) return several(rows, std::move(output), c, options);
    return std::visit(
        [&]<class Loss>(const Loss& loss) -> std::unique_ptr<PegasosBase> {
            const Single<Loss> out{loss, targets.value};
            return std::make_unique<PegasosSolver<Layout, Single<Loss>>>(rows, out, std::move(output), c,
                                                                         options);
        },
        any);
}
template <>
std::unique_ptr<PegasosBase> make_pegasos(const Layout& rows, const AnyJointLoss& loss,
                                          const Targets& targets, Weights c, const PegasosOptions& options) {
    return several(rows, make_output(loss, targets), c, options);
}

}  // namespace pegasos
