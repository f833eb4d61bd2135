"""One small class a library: prepare its favourite input, fit at a given effort, hand over the weights.

``prepare`` is not timed, ``fit`` is: whatever a library converts inside its own ``fit`` counts. An *effort* is a
dictionary of the library's own stopping parameters; ``ladder`` lists them from careless to exact. Nothing here judges.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from benchmarks.problems import Problem

Effort = dict[str, Any]

_STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 34, 40, 56, 80, 112, 160, 224, 320, 450, 640, 900)
_MORE_STEPS = (*_STEPS, 1280, 1800, 2560, 3600, 5120)
_TOLERANCES = (
    1,
    0.5,
    0.2,
    0.1,
    0.07,
    0.05,
    0.03,
    0.02,
    0.014,
    0.01,
    7e-3,
    5e-3,
    3e-3,
    2e-3,
    1.4e-3,
    1e-3,
    1e-4,
    1e-5,
    1e-6,
)


class Adapter:
    """What the judge sees of a library."""

    name: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]

    def available(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    def version(self) -> str:
        return importlib.metadata.version(self.package)

    def supports(self, problem: Problem, threads: int) -> bool:
        """Say whether a measurement makes sense; single-threaded libraries are measured with one thread only."""
        return threads == 1

    def prepare(self, problem: Problem) -> Any:
        """Return the library's favourite form of the data. Not timed."""
        return problem.X, problem.y

    def ladder(self, problem: Problem) -> list[Effort]:
        """List efforts, each costlier than the one before."""
        return [{"max_iter": steps} for steps in _MORE_STEPS]

    def fit(self, data: Any, problem: Problem, effort: Effort, threads: int) -> Any:
        """Fit. Timed."""
        raise NotImplementedError

    def weights(self, model: Any, problem: Problem) -> npt.NDArray[np.float64]:
        """Return the weights, one row a class (one row for two classes). Not timed."""
        return np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))


class ScikitLiblinear(Adapter):
    """LIBLINEAR's dual coordinate descent as scikit-learn ships it. It wants float64."""

    name, package, module = "LIBLINEAR (scikit-learn)", "scikit-learn", "sklearn"

    def prepare(self, problem: Problem) -> Any:
        return problem.X.astype(np.float64), problem.y

    def fit(self, data: Any, problem: Problem, effort: Effort, threads: int) -> Any:
        from sklearn.svm import LinearSVC

        settings = {"tol": 1e-9, **effort}
        model = LinearSVC(loss="hinge", dual=True, C=problem.C, fit_intercept=False, random_state=0, **settings)
        return model.fit(*data)


class OfficialLiblinear(Adapter):
    """LIBLINEAR's own Python package; its ``problem`` object is built beforehand. It stops by tolerance only."""

    name, package, module = "LIBLINEAR (official)", "liblinear-official", "liblinear"

    def prepare(self, problem: Problem) -> Any:
        from liblinear.liblinear import problem as native

        return native(problem.y.astype(np.float64), problem.X.astype(np.float64))

    def ladder(self, problem: Problem) -> list[Effort]:
        return [
            {"tol": tol} for tol in (10, 7, 5, 4, 3, 2, 1.5, 1, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4)
        ]

    def fit(self, data: Any, problem: Problem, effort: Effort, threads: int) -> Any:
        from liblinear.liblinearutil import train

        return train(data, f"-s 3 -c {problem.C!r} -e {effort['tol']!r} -B -1 -q")

    def weights(self, model: Any, problem: Problem) -> npt.NDArray[np.float64]:
        labels = model.get_labels()
        if len(labels) == 2:
            w = np.ctypeslib.as_array(model.w, (model.nr_feature,)).copy()
            return np.atleast_2d(w if labels[0] == problem.classes[1] else -w)
        w = np.ctypeslib.as_array(model.w, (model.nr_feature, len(labels))).T.copy()
        return np.asarray(w[np.argsort(labels)])


class SnapML(Adapter):
    """Snap ML's parallel dual coordinate descent."""

    name, package, module = "Snap ML", "snapml", "snapml"

    def supports(self, problem: Problem, threads: int) -> bool:
        return True

    def fit(self, data: Any, problem: Problem, effort: Effort, threads: int) -> Any:
        from snapml import SupportVectorMachine

        model = SupportVectorMachine(
            loss="hinge",
            regularizer=problem.lam * problem.m,
            tol=1e-12,
            fit_intercept=False,
            n_jobs=threads,
            random_state=0,
            **effort,
        )
        return model.fit(*data)


class ScikitSGD(Adapter):
    """scikit-learn's stochastic gradient descent, a fixed number of epochs."""

    name, package, module = "SGDClassifier (scikit-learn)", "scikit-learn", "sklearn"

    def supports(self, problem: Problem, threads: int) -> bool:
        return threads == 1 or len(problem.classes) > 2  # its threads share out the classes

    def ladder(self, problem: Problem) -> list[Effort]:
        return [{"max_iter": steps} for steps in _STEPS]

    def fit(self, data: Any, problem: Problem, effort: Effort, threads: int) -> Any:
        from sklearn.linear_model import SGDClassifier

        model = SGDClassifier(
            loss="hinge", alpha=problem.lam, fit_intercept=False, tol=None, n_jobs=threads, random_state=0, **effort
        )
        return model.fit(*data)


class Pegasos(Adapter):
    """This package. ``solver="auto"`` climbs tolerances as a user would; a named solver climbs epochs."""

    package, module = "pegasos", "pegasos"

    def __init__(self, solver: str = "auto") -> None:
        self.solver = solver
        self.name = "pegasos" if solver == "auto" else f"pegasos ({solver})"  # type: ignore[misc]

    def available(self) -> bool:
        try:
            from pegasos import LinearSVC  # noqa: F401
        except ImportError:
            return False
        return True

    def supports(self, problem: Problem, threads: int) -> bool:
        return True

    def ladder(self, problem: Problem) -> list[Effort]:
        if self.solver == "auto":
            return [{"tol": tol} for tol in _TOLERANCES]
        return [{"max_iter": steps} for steps in _STEPS]

    def fit(self, data: Any, problem: Problem, effort: Effort, threads: int) -> Any:
        from pegasos import LinearSVC

        settings = {"tol": 1e-9, "max_iter": 5_000, **effort}
        model = LinearSVC(
            loss="hinge",
            lam=problem.lam,
            fit_intercept=False,
            solver=self.solver,
            n_jobs=None if threads == 1 else threads,
            random_state=0,
            **settings,
        )
        return model.fit(*data)


ADAPTERS: dict[str, Adapter] = {
    "pegasos": Pegasos(),
    "pegasos-sgd": Pegasos("pegasos"),
    "pegasos-sdca": Pegasos("sdca"),
    "liblinear": ScikitLiblinear(),
    "liblinear-official": OfficialLiblinear(),
    "snapml": SnapML(),
    "sgd": ScikitSGD(),
}
OURS = "pegasos"
