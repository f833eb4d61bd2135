"""Rows that come in pieces and are then gone: ``partial_fit``, against one fit on everything.

A stream cannot be certified (its rows are no longer there to look at); a fit on the rows of one's choice can.

    python examples/stream.py [--rows 40000]
"""

from __future__ import annotations

import argparse

from pegasos import LinearSVC
from pegasos.datasets import make_text

LAM = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000)
    rows = parser.parse_args().rows

    X, y = make_text(rows + rows // 4, 5_000, nnz_per_row=30)
    X_test, y_test = X[rows:], y[rows:]

    stream = LinearSVC(lam=LAM)  # give lam, not C: the number of rows to come is unknown
    piece = max(1, rows // 10)
    print("rows seen   test error")
    for first in range(0, rows, piece):
        batch = slice(first, min(rows, first + piece))
        stream.partial_fit(X[batch], y[batch], classes=[-1, 1])
        print(f"{batch.stop:9,}   {100 * (1 - stream.score(X_test, y_test)):6.2f} %")
    print(stream.certificate_.reason)

    full = LinearSVC(lam=LAM).fit(X[:rows], y[:rows])
    c = full.certificate_
    print(f"\nfit on all  {100 * (1 - full.score(X_test, y_test)):6.2f} %, certified relative gap {c.relative_gap:.1e}")


if __name__ == "__main__":
    main()
