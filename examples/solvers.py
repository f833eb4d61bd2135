"""Which solver for which λ: objective against work, in the manner of Figure 4 of the 2011 paper.

What matters is κ = λm/R². With strong regularisation (κ = 30) a few passes of almost any method will do; the weaker it
is, the more dual and second-order methods gain on sub-gradients.

    python examples/solvers.py [--rows 4000] [--out demo/solvers.png]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from pegasos import SGD, LinearSVC, Norma, Pegasos
from pegasos.datasets import make_text

SOLVERS = {
    "Pegasos": Pegasos(),
    "Pegasos, t0 = 0": Pegasos(t0=0.0),
    "NORMA": Norma(),
    "SGD, constant step": SGD(eta=0.1),
    "SDCA": "sdca",
    "cutting planes": "cutting_plane",
    "interior point": "interior_point",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--out", type=Path, default=Path("demo/solvers.png"))
    options = parser.parse_args()

    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from pegasos.plots import ConvergenceDisplay

    X, y = make_text(options.rows, 300, nnz_per_row=20)  # rows of norm 1, so κ = λm
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained", sharey=True)
    for ax, kappa in zip(axes, (30.0, 0.3), strict=True):
        lam = kappa / options.rows
        print(f"\nκ = {kappa:g} (lam = {lam:.2g}), at most 30 passes:")
        traces = {}
        for name, solver in SOLVERS.items():
            model = LinearSVC(solver=solver, lam=lam, tol=1e-4, max_iter=30, fit_intercept=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
            c = model.certificate_
            print(
                f"  {name:<20} objective {c.primal:.6f}   certified gap {c.relative_gap:7.1e}   {c.epochs:5.1f} passes"
            )
            traces[name] = model.trace_
        ConvergenceDisplay.from_traces(traces, ax=ax, x="epochs", y="suboptimality")
        ax.set_title(f"κ = {kappa:g}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=150)
    print(f"\nPicture: {options.out}")


if __name__ == "__main__":
    main()
