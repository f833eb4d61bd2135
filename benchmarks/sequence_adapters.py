"""One small class a library of chain models: its form of the data, its settings, a fit and a tagger.

``prepare`` is not timed, ``fit`` and the tagger that comes of it are: whatever a library converts on the way counts.
Settings are the library's own. The first of each algorithm is its default and is measured on every seed; ``curve``
settings say how good it is how soon, on one seed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.sequence_problems import Tags

Tagger = Callable[[Any], Sequence[Tags]]


@dataclass(frozen=True)
class Setting:
    """Parameters of a fit; ``curve``: on one seed only; ``slow``: minutes, hence also on one seed only."""

    options: dict[str, Any] = field(default_factory=dict)
    curve: bool = False
    slow: bool = False

    @property
    def name(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.options.items()) or "default"


@dataclass(frozen=True)
class Fitted:
    """What a fit gives: a tagger, seconds of loading the data where the library tells them apart, a certified gap."""

    tag: Tagger
    load_seconds: float = float("nan")
    load_cpu_seconds: float = float("nan")
    gap: float = float("nan")


class SequenceAdapter:
    """What the judge sees of a library."""

    name: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]

    def available(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    def version(self) -> str:
        return importlib.metadata.version(self.package)

    def settings(self, problem: str) -> list[Setting]:
        """List what is measured."""
        raise NotImplementedError

    def passes(self, count: int) -> Setting:
        """Return the setting of a fit of so many passes over the data by the library's fastest algorithm."""
        raise NotImplementedError

    def prepare(self, X: list[list[list[str]]]) -> Any:
        """Return the form of the attributes that the library takes. Not timed."""
        return X

    def fit(self, X: Any, y: list[Tags], setting: Setting, C: float, seed: int, folder: Path) -> Fitted:
        """Fit. Timed. ``folder`` is for a library that writes its model to a file."""
        raise NotImplementedError


def _crfsuite_settings() -> list[Setting]:
    """CRFsuite's algorithms: defaults, then how good each is after fewer iterations."""
    return [
        Setting({"algorithm": "pa"}),
        Setting({"algorithm": "ap"}),
        Setting({"algorithm": "lbfgs"}, slow=True),
        *(Setting({"algorithm": "pa", "max_iterations": n}, curve=True) for n in (1, 2, 5, 10, 20, 50)),
        *(Setting({"algorithm": "ap", "max_iterations": n}, curve=True) for n in (1, 2, 5, 10, 20, 50)),
        *(Setting({"algorithm": "lbfgs", "max_iterations": n}, curve=True, slow=True) for n in (20, 50, 100)),
    ]


class PythonCrfsuite(SequenceAdapter):
    """CRFsuite by python-crfsuite. It has no seed: the order of the sequences is what a seed changes."""

    name, package, module = "python-crfsuite", "python-crfsuite", "pycrfsuite"

    def settings(self, problem: str) -> list[Setting]:
        return _crfsuite_settings()

    def passes(self, count: int) -> Setting:
        return Setting({"algorithm": "pa", "max_iterations": count})

    def fit(self, X: Any, y: list[Tags], setting: Setting, C: float, seed: int, folder: Path) -> Fitted:
        import pycrfsuite

        options = dict(setting.options)
        cpu, start = time.process_time(), time.perf_counter()
        trainer = pycrfsuite.Trainer(algorithm=options.pop("algorithm"), params=options, verbose=False)
        for sequence, tags in zip(X, y, strict=True):
            trainer.append(sequence, tags)
        loaded = time.perf_counter() - start, time.process_time() - cpu
        trainer.train(str(folder / "model.crfsuite"))
        tagger = pycrfsuite.Tagger()
        tagger.open(str(folder / "model.crfsuite"))
        return Fitted(lambda sequences: [tagger.tag(sequence) for sequence in sequences], *loaded)


class SklearnCrfsuite(SequenceAdapter):
    """CRFsuite by sklearn-crfsuite."""

    name, package, module = "sklearn-crfsuite", "sklearn-crfsuite", "sklearn_crfsuite"

    def settings(self, problem: str) -> list[Setting]:
        return [setting for setting in _crfsuite_settings() if not setting.curve and not setting.slow]

    def passes(self, count: int) -> Setting:
        return Setting({"algorithm": "pa", "max_iterations": count})

    def fit(self, X: Any, y: list[Tags], setting: Setting, C: float, seed: int, folder: Path) -> Fitted:
        import sklearn_crfsuite

        model = sklearn_crfsuite.CRF(model_filename=str(folder / "model.crfsuite"), **setting.options).fit(X, y)
        return Fitted(model.predict)


class Chaine(SequenceAdapter):
    """chaine, which carries its own copy of CRFsuite and takes dictionaries only."""

    name, package, module = "chaine", "chaine", "chaine"

    def settings(self, problem: str) -> list[Setting]:
        return [setting for setting in _crfsuite_settings() if not setting.curve]

    def passes(self, count: int) -> Setting:
        return Setting({"algorithm": "pa", "max_iterations": count})

    def prepare(self, X: list[list[list[str]]]) -> Any:
        return [[dict.fromkeys(token, True) for token in sequence] for sequence in X]

    def fit(self, X: Any, y: list[Tags], setting: Setting, C: float, seed: int, folder: Path) -> Fitted:
        from chaine.crf import Model, Trainer
        from chaine.logging import set_verbosity

        set_verbosity(0)
        path = folder / "model.chaine"
        Trainer(**setting.options).train(X, y, model_filepath=path)
        return Fitted(Model(path).predict)


#: Passes after which a tagger is about as good as it will be.
FEW_PASSES = {"conll": 8, "ocr-9": 32, "ocr-1": 64}


class Pegasos(SequenceAdapter):
    """This package: passes of Pegasos as a hurried user has them, and certified gaps."""

    name, package, module = "pegasos", "pegasos", "pegasos"

    def available(self) -> bool:
        import pegasos

        return hasattr(pegasos, "SequenceSVC")

    def version(self) -> str:
        import pegasos

        return pegasos.__version__

    def settings(self, problem: str) -> list[Setting]:
        few = FEW_PASSES[problem]
        return [
            self.passes(few),
            Setting({"tol": 1e-2}),
            *(Setting(self.passes(n).options, curve=True) for n in (1, 2, 4, 8, 16, 32, 64) if n != few),
            *(Setting({"tol": tol}, curve=True) for tol in (1e-1, 3e-2, 1e-3)),
        ]

    def passes(self, count: int) -> Setting:
        return Setting({"solver": "pegasos", "output": "suffix", "max_iter": count})

    def fit(self, X: Any, y: list[Tags], setting: Setting, C: float, seed: int, folder: Path) -> Fitted:
        from pegasos import SequenceSVC
        from pegasos.solvers import Pegasos as Steps

        options = dict(setting.options)
        if "output" in options:
            options["solver"] = Steps(output=options.pop("output"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few passes do not converge: that is what is asked for
            model = SequenceSVC(C=C, random_state=seed, **options).fit(X, y)
        return Fitted(model.predict, gap=float(model.certificate_.relative_gap))


ADAPTERS: dict[str, SequenceAdapter] = {
    "pegasos": Pegasos(),
    "python-crfsuite": PythonCrfsuite(),
    "sklearn-crfsuite": SklearnCrfsuite(),
    "chaine": Chaine(),
}
OURS = "pegasos"
