"""Train on generated text-like data, watch the certificate tighten, compare three solvers, draw the curves.

python examples/demo.py            (or: make demo)
python examples/demo.py --rows 2000 --out somewhere/picture.png
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning

from pegasos import Checkpoint, LinearSVC
from pegasos.datasets import demo, make_text

LAM = 1e-5


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=None, help="training rows; the default is the demo set's 60,000")
    parser.add_argument("--out", type=Path, default=Path("demo/convergence.png"), help="where the picture goes")
    return parser.parse_args()


def data(rows: int | None) -> tuple:
    if rows is None:
        return demo()
    X, y = make_text(rows + rows // 3, max(200, rows // 3), nnz_per_row=20)
    return X[:rows], X[rows:], y[:rows], y[rows:]


def progress(point: Checkpoint) -> None:
    """A line for each certificate of a running fit."""
    p = point
    print(f"  {p.epochs:8.1f} {p.seconds:9.2f} {p.primal:12.7f} {p.dual:12.7f} {p.relative_gap:12.1e}", flush=True)


def main() -> None:
    options = parse()
    began = time.perf_counter()
    X_train, X_test, y_train, y_test = data(options.rows)
    m, n = X_train.shape
    print(
        f"Text-like data: {m:,} training and {X_test.shape[0]:,} test rows, {n:,} columns, "
        f"{X_train.nnz / m:.0f} non-zeros a row ({time.perf_counter() - began:.1f} s to generate)."
    )

    print(f"\nLinearSVC(lam={LAM:g}, tol=1e-5).fit(X_train, y_train), a line for each certificate:\n")
    print(f"  {'epochs':>8} {'seconds':>9} {'objective':>12} {'lower bound':>12} {'relative gap':>12}")
    model = LinearSVC(lam=LAM, tol=1e-5, callback=progress).fit(X_train, y_train)
    proof = model.certificate_
    print(f"\n  objective     {proof.primal:.7f}")
    print(f"  lower bound   {proof.dual:.7f}   no linear classifier has a smaller objective than this")
    print(
        f"  gap           {proof.gap:.1e}   the objective is at most {100 * proof.relative_gap:.2g} % above the optimum"
    )
    print(f"  test error    {100 * (1 - model.score(X_test, y_test)):.2f} %")
    print(f"  time          {proof.seconds:.2f} s, {proof.epochs:.1f} passes over the rows")

    print("\nThe same problem with each solver, at most 3 s each, stopping at a certified relative gap of 1e-5:\n")
    print(f"  {'solver':<10} {'seconds':>9} {'epochs':>8} {'objective':>12} {'relative gap':>12} {'test error':>11}")
    traces = {}
    for solver in ("pegasos", "sdca", "auto"):
        fit = LinearSVC(solver=solver, lam=LAM, tol=1e-5, max_time=3.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows who did not get there
            fit.fit(X_train, y_train)
        c, error = fit.certificate_, 1 - fit.score(X_test, y_test)
        why = "" if c.converged else f"   ({c.reason})"
        numbers = f"{c.seconds:9.2f} {c.epochs:8.1f} {c.primal:12.7f} {c.relative_gap:12.1e} {100 * error:9.2f} %"
        print(f"  {solver:<10} {numbers}{why}")
        traces[solver] = fit.trace_
    print("\nTest errors agree long before the objectives do: a gap of 1e-3, the default, is plenty for prediction.")

    draw(traces, options.out)
    print(f"Convergence curves: {options.out}   ({time.perf_counter() - began:.0f} s in all)")


def draw(traces: dict, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from pegasos.plots import ConvergenceDisplay

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ax, along in zip(axes, ("seconds", "epochs"), strict=True):
        ConvergenceDisplay.from_traces(traces, ax=ax, x=along)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
