// Instantiates SDCA for the row layout PEGASOS_ROWS and every loss.
#include "pegasos/linear/block_sdca.hpp"

namespace pegasos {

using Layout = PEGASOS_ROWS;

template <class Loss>
static std::unique_ptr<SdcaBase> make(const Layout& rows, const Loss& loss, const Targets& targets, Weights c,
                                      const double* x2, const SdcaOptions& o) {
    auto solver = with_output(loss, targets, [&](auto out) -> std::unique_ptr<Solver> {
        using Output = decltype(out);
        if constexpr (LaneOps<Layout, Output>::single)
            if (o.blocks > 0)
                return std::make_unique<BlockSdcaSolver<Layout, Output>>(rows, std::move(out), c, x2, o);
        if constexpr (single_lanes<Output>)
            if (o.single && out.lanes() <= 16)
                return std::make_unique<SdcaSolver<Layout, Output, float>>(rows, std::move(out), c, x2, o);
        return std::make_unique<SdcaSolver<Layout, Output>>(rows, std::move(out), c, x2, o);
    });
    return std::unique_ptr<SdcaBase>(static_cast<SdcaBase*>(solver.release()));
}

template <>
std::unique_ptr<SdcaBase> make_sdca(const Layout& rows, const AnyLoss& loss, const Targets& targets,
                                    Weights c, const double* x2, const SdcaOptions& o) {
    return make(rows, loss, targets, c, x2, o);
}
template <>
std::unique_ptr<SdcaBase> make_sdca(const Layout& rows, const AnyJointLoss& loss, const Targets& targets,
                                    Weights c, const double* x2, const SdcaOptions& o) {
    return make(rows, loss, targets, c, x2, o);
}

}  // namespace pegasos
