"""A kernel machine, and the same decisions from a few support vectors.

The reference is certified to its optimum; compressing it then trades support vectors for error, every size from one
run, and rows held out say where to stop.

    python examples/small_kernel.py
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pegasos import SVC, sparsify


def main() -> None:
    X, digits = load_digits(return_X_y=True)
    y = digits % 2  # odd or even: harder than one digit against the rest
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0, stratify=y)

    model = SVC(C=10, gamma=0.5).fit(X_train, y_train)
    print(f"reference: {len(model.support_)} support vectors, test error {1 - model.score(X_test, y_test):.3f}")
    print(f"           {model.certificate_}")

    path = sparsify(model, X_train, y_train, max_support=120)
    sizes = [10, 20, 40, 80, 120]
    print("\nsupport vectors   test error")
    for size, error in zip(sizes, path.errors(X_test, y_test, sizes), strict=True):
        print(f"{size:15d}   {error:.3f}")


if __name__ == "__main__":
    main()
