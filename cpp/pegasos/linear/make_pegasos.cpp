// Instantiates the Pegasos solver for the row layout PEGASOS_ROWS and every loss.
#include "pegasos/linear/pegasos.hpp"

namespace pegasos {

using Layout = PEGASOS_ROWS;

template <class Loss>
static std::unique_ptr<PegasosBase> make(const Layout& rows, const Loss& loss, const Targets& targets,
                                         Weights c, const PegasosOptions& options) {
    auto solver = with_output(loss, targets, [&](auto out) -> std::unique_ptr<Solver> {
        return std::make_unique<PegasosSolver<Layout, decltype(out)>>(rows, std::move(out), c, options);
    });
    return std::unique_ptr<PegasosBase>(static_cast<PegasosBase*>(solver.release()));
}

template <>
std::unique_ptr<PegasosBase> make_pegasos(const Layout& rows, const AnyLoss& loss, const Targets& targets,
                                          Weights c, const PegasosOptions& options) {
    return make(rows, loss, targets, c, options);
}
template <>
std::unique_ptr<PegasosBase> make_pegasos(const Layout& rows, const AnyJointLoss& loss,
                                          const Targets& targets, Weights c, const PegasosOptions& options) {
    return make(rows, loss, targets, c, options);
}

}  // namespace pegasos
