"""Taggers of sequences: linear-chain support vector machines and conditional random fields, with a certificate."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from pegasos import solvers
from pegasos.estimators.base import all_or_nothing
from pegasos.estimators.crfsuite import CrfsuiteInterface
from pegasos.estimators.sequence_costs import label_costs
from pegasos.estimators.structured_model import StructuredModel
from pegasos.fit.loop import Callback
from pegasos.fit.trace import Checkpoint
from pegasos.problems.chain import PADDING, ChainModel, ChainProblem, corpus_of
from pegasos.problems.grammar import Grammar, Pairs, grammar_of, seen_transitions
from pegasos.rows.sequences import Encoder, Sequences, encode_tags
from pegasos.rows.views import Array, check_weights, row_weights
from pegasos.solvers.structured.chain_base import ChainSolver
from pegasos.util.available import available_if
from pegasos.util.threads import thread_count

__all__ = ["SequenceSVC"]


def _has_marginals(model: SequenceSVC) -> bool:
    """Whether a tagger has probabilities; AttributeError says why not, and what to do."""
    if (model._fitted_loss or model._loss()) == "log":
        return True
    raise AttributeError(
        "the hinge loss has no probabilities: its scores say which labels are best, not how likely they are. "
        "SequenceSVC(loss='log') is a conditional random field, which has marginals"
    )


class SequenceSVC(CrfsuiteInterface, StructuredModel):
    """Linear-chain support vector machine for tagging sequences, with a duality-gap certificate for every fit.

    Minimises (λ/2)‖W‖² + (1/M) Σ_i c_i ℓ_i(W), with λ = 1/(C·M) unless ``lam`` is given, where the score of a labelling
    y of the sequence x_i is the sum of the weights of its tokens' attributes for their labels, and of the transitions:
    ⟨W, φ(x_i, y)⟩. ``loss="hinge"``: ℓ_i = max_y [cost(y_i, y) + ⟨W, φ(x_i, y)⟩] − ⟨W, φ(x_i, y_i)⟩, the number of
    tokens that y gets wrong as cost (Example 5 of the 2011 Pegasos paper; Taskar et al. 2003). ``loss="log"``: minus
    the log-likelihood of a conditional random field (Lafferty et al. 2001).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against the regulariser: the objective is ½‖W‖² + C Σ c_i ℓ_i. For text with thousands of
        attributes 0.1 is a good first guess.
    lam : float, default=None
        λ = 1/(C·M), M the sum of the sample weights, one a sequence. If given, ``C`` is ignored.
    loss : {"hinge", "log"}, default="hinge"
        See above. With "log" there are probabilities (:meth:`predict_marginals`).
    solver : str or Solver, default="auto"
        "auto" (Pegasos for eight epochs, then, if ``tol`` asks for it, block Frank–Wolfe or, for the log loss, L-BFGS),
        "pegasos", "block_frank_wolfe", "cutting_plane" (one slack), "lbfgs" (log loss), and for comparison
        "passive_aggressive" and "averaged_perceptron"; or an object of :mod:`pegasos.solvers` with its own parameters.
    tol : float, default=1e-2
        Stop when the duality gap is at most ``tol`` times the objective. 0.2 is enough for a good tagger in half the
        time.
    max_iter : int, default=1000
        Stop after so many epochs (passes over the sequences).
    max_time : float, default=None
        Stop after so many seconds.
    class_weight : dict or "balanced", default=None
        The cost of a token of each label that is labelled otherwise; 1 without it. For the hinge loss.
    cost : array of shape (n_labels, n_labels) or dict, default=None
        cost[k, l] ≥ 0 of a token with label ``classes_[k]`` that is labelled ``classes_[l]``, or a dict of
        (label, other label) pairs, 1 where it has none. For the hinge loss.
    grammar : None, "learnt", "bio", "bioes" or list of pairs, default=None
        Which labellings are allowed, in fitting and prediction. "learnt": transitions, first and last labels that the
        training tags have. "bio": ``I-NP`` only after ``B-NP`` or ``I-NP``; "bioes" likewise. A list: the pairs
        (label, next label) that are allowed; (None, label) and (label, None) are those that may begin and end a
        sequence. A sequence of a length that the grammar allows no labelling of is an error in prediction.
    min_freq : float, default=0
        Attributes that fewer tokens use are left out.
    all_possible_transitions : bool, default=True
        False: transitions that the training tags do not have get no weight (they stay possible, unlike with
        ``grammar="learnt"``).
    algorithm : {"lbfgs", "l2sgd", "pa", "ap"}, default=None
        sklearn-crfsuite's word: sets ``loss="log"`` or, for "pa" and "ap", the solver.
    c1 : float, default=None
        sklearn-crfsuite's weight of an L1 penalty, which is not offered: anything but 0 is an error.
    c2 : float, default=None
        sklearn-crfsuite's weight of ‖W‖²: C = 1/(2·c2).
    max_iterations : int, default=None
        sklearn-crfsuite's name for ``max_iter``.
    random_state : int, RandomState or Generator, default=None
        Seed of the order in which sequences are visited. None is 0: fits repeat.
    n_jobs : int, default=None
        Threads for certificates, L-BFGS and prediction; the same bits for any number. None: one. −1: all processors.
    warm_start : bool, default=False
        Start from the last fit if sequences, tags and costs are the same: only ``C`` or ``lam`` and the solver may
        change.
    verbose : bool, default=False
        Print a line for each checkpoint to standard error.
    callback : callable, default=None
        Called with a :class:`~pegasos.Checkpoint` at each checkpoint; returning True stops the fit.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: raise KeyboardInterrupt and leave the estimator as it was, or keep the last iterate and its
        certificate.
    checkpoint : path, default=None
        A file to which ``fit`` writes its state now and then. If it exists when ``fit`` begins, the fit goes on from
        there, to the same bits as if it had never stopped; a file of another fit is refused.
    checkpoint_every : float, default=30.0
        Seconds between the end of one write and the next.

    Attributes
    ----------
    classes_ : list
        The labels, sorted if they are all texts or all numbers.
    coef_ : ndarray of shape (n_attributes, n_labels)
        Weights of the attributes for each label.
    transitions_ : ndarray of shape (n_labels, n_labels)
        Weights of the transitions from each label to each.
    attributes_, state_features_, transition_features_
        As sklearn-crfsuite has them: names, and dicts of the weights that are not zero.
    lam_ : float
        λ of the fit.
    certificate_ : Certificate
        Objective, lower bound, gap, and why the fit stopped.
    trace_ : Trace
        The checkpoints of the fit.
    dev_scores_ : list of float
        The share of development tokens labelled rightly at each checkpoint, if ``fit`` got ``X_dev`` and ``y_dev``.
    n_iter_ : int
        Epochs used.

    See Also
    --------
    StructuredSVC : Structured machines for any oracle.
    pegasos.metrics : Entity precision, recall and F1.

    Examples
    --------
    >>> from pegasos import SequenceSVC
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "dogs"}, {"word": "bark"}]]
    >>> y = [["D", "N", "V"], ["N", "V"]]
    >>> model = SequenceSVC(tol=1e-6).fit(X, y)
    >>> model.predict([[{"word": "the"}, {"word": "dogs"}]])
    [['D', 'N']]
    >>> model.certificate_.converged
    True
    """

    _kind = "chain"
    _objects = MappingProxyType({"solver": solvers.TABLES["chain"]})

    classes_: list[Hashable]
    coef_: Array
    transitions_: Array
    dev_scores_: list[float]
    _encoder: Encoder
    _grammar: Grammar
    #: The loss of the fit, whatever the parameter is by now.
    _fitted_loss: str | None = None
    #: How the command line makes attributes of columns, as model files keep it; None where Python made them.
    template_: object | None = None
    #: The weights as the core wants them; ``coef_`` and ``transitions_`` are parts of it.
    _flat: Array | None = None

    def __init__(
        self,
        C: float = 1.0,
        *,
        lam: float | None = None,
        loss: Literal["hinge", "log"] = "hinge",
        solver: Any = "auto",
        tol: float = 1e-2,
        max_iter: int = 1000,
        max_time: float | None = None,
        class_weight: Mapping[Hashable, float] | Literal["balanced"] | None = None,
        cost: ArrayLike | Mapping[tuple[Hashable, Hashable], float] | None = None,
        grammar: str | Pairs | None = None,
        min_freq: float = 0,
        all_possible_transitions: bool = True,
        algorithm: str | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int | bool = False,
        callback: Callback | None = None,
        on_interrupt: Literal["raise", "keep"] = "raise",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.class_weight = class_weight
        self.cost = cost
        self.grammar = grammar
        self.min_freq = min_freq
        self.all_possible_transitions = all_possible_transitions
        self.algorithm = algorithm
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.dict = True
        tags.target_tags.required = True
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_flags("all_possible_transitions")
        self._check_number("min_freq", low=0, strict=False)

    # --- fitting -----------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        *,
        sample_weight: Any = None,
        lengths: Any = None,
    ) -> Self:
        """Fit the weights to sequences and their tags.

        Parameters
        ----------
        X : iterable of sequences
            A token is a dict (``{"word": "the", "capital": True, "length": 3.0}``), a list of strings, or a string; or
            each sequence is an array or sparse matrix with a row a token; or, with ``lengths``, X is all tokens one
            after the other.
        y : iterable of sequences of labels
            One label a token: anything hashable.
        X_dev, y_dev : like X and y, default=None
            Sequences on which the model of each checkpoint is tried, see ``dev_scores_``. They change nothing else.
            Labels that y does not have are refused.
        sample_weight : array of shape (n_sequences,), default=None
            Weights ≥ 0; weight 2 is the sequence twice.
        lengths : array of int, default=None
            The lengths of the sequences, where X (and y) are flat.

        Returns
        -------
        self
        """
        self._check_parameters()
        loss = self._loss()
        encoder, sequences = Encoder.fitted(X, lengths, self.min_freq)
        tags, classes = encode_tags(y, sequences)
        weight = row_weights(sample_weight, None, len(sequences))
        dev = self._development(encoder, X_dev, y_dev, classes)
        problem = self._problem(sequences, tags, classes, loss, weight)
        self.dev_scores_ = []

        def tell(checkpoint: Checkpoint, model: ChainModel) -> Checkpoint:
            assert model.W is not None
            return replace(checkpoint, coef=self._parts(model.W.copy(), len(encoder), len(classes))[0])

        score = None if dev is None else self._dev_score(problem, *dev)
        look = None if score is None else lambda model: self.dev_scores_.append(score(model))
        result = self._solve(problem, self._method(), tell, self._max_iter(), look)
        assert result.model.W is not None
        W = np.require(result.model.W, requirements="W")  # users may change coef_
        check_weights(W, np.zeros(0))
        if dev is None:
            del self.dev_scores_
        self.lam_, self.classes_, self._encoder, self._grammar = problem.lam, classes, encoder, problem.grammar
        self.n_features_in_, self._fitted_loss = len(encoder), loss
        self._keep_weights(W)
        self.template_ = None
        return self

    def _problem(
        self, sequences: Sequences, tags: Array, classes: list[Hashable], loss: Literal["hinge", "log"], weight: Any
    ) -> ChainProblem:
        """The problem, without sequences that have no weight; labels that only they have are known, and never used."""
        labels = len(classes)
        cost = label_costs(self.cost, self.class_weight, classes, tags, loss)
        grammar = grammar_of(self.grammar, classes, sequences, tags)
        if weight is not None and not bool((weight > 0).all()):
            keep = weight > 0
            tags = tags[np.repeat(keep, np.diff(sequences.offsets))]
            sequences, weight = sequences.take(keep), weight[keep]
            if isinstance(self.grammar, str) and self.grammar == "learnt":
                grammar = grammar_of("learnt", classes, sequences, tags)
            grammar = grammar.of_labels(np.bincount(tags, minlength=labels))
        learnt = np.ones((labels, labels), np.uint8)
        if not self.all_possible_transitions:
            learnt = (seen_transitions(labels, sequences, tags) > 0).astype(np.uint8)
        total = float(len(sequences) if weight is None else weight.sum())
        return ChainProblem(
            sequences=sequences,
            tags=tags,
            labels=labels,
            lam=self._chain_lam(total),
            loss=loss,
            cost=cost,
            grammar=grammar,
            learnt=learnt,
            weight=weight,
            threads=thread_count(self.n_jobs),
        )

    def _has_no_objective(self, solver: Any) -> bool:
        return not solver.minimises

    def _method(self) -> ChainSolver:
        return solvers.resolve(self._solver(), "chain")

    def _development(self, encoder: Encoder, X: Any, y: Any, classes: list[Hashable]) -> tuple[Sequences, Array] | None:
        """The development sequences and tags, checked before anything is fitted."""
        if X is None and y is None:
            return None
        if X is None or y is None:
            raise ValueError("X_dev and y_dev belong together: one of them is missing")
        try:
            sequences = encoder.encode(X)
            return sequences, encode_tags(y, sequences, classes)[0]
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_dev, y_dev: {error}") from None

    def _dev_score(self, problem: ChainProblem, sequences: Sequences, tags: Array) -> Callable[[ChainModel], float]:
        """What tries models on the development sequences; ValueError if the grammar allows no labelling of one."""
        corpus = corpus_of(sequences, problem.labels, problem.grammar)
        try:
            self._no_path(sequences, corpus.tag(np.zeros(problem.size), problem.threads)[1])
        except ValueError as error:
            raise ValueError(f"X_dev: {error}") from None

        def score(model: ChainModel) -> float:
            assert model.W is not None
            labels, _ = corpus.tag(model.W, problem.threads)
            right = float(np.mean(labels == tags)) if len(tags) else 1.0
            if self.verbose:
                print(f"   development tokens labelled rightly: {right:.4f}", file=sys.stderr, flush=True)
            return right

        return score

    @staticmethod
    def _parts(W: Array, attributes: int, labels: int) -> tuple[Array, Array]:
        """The weights of attributes and of transitions, which share W's memory."""
        end = attributes * labels
        return W[:end].reshape(attributes, labels), W[end : end + labels * labels].reshape(labels, labels)

    def _keep_weights(self, W: Array) -> None:
        """Set the weights, of as many attributes and labels as there are."""
        self.coef_, self.transitions_ = self._parts(W, len(self._encoder), len(self.classes_))
        self._flat = W

    # --- predicting --------------------------------------------------------------------------------------------------

    def _weights(self) -> Array:
        """The weights as the core wants them, made anew if ``coef_`` or ``transitions_`` are others."""
        check_is_fitted(self, "coef_")
        if self._flat is not None and all(part.base is self._flat for part in (self.coef_, self.transitions_)):
            return self._flat
        W = np.concatenate([self.coef_.ravel(), self.transitions_.ravel(), np.zeros(PADDING)])
        self.coef_, self.transitions_ = self._parts(W, *self.coef_.shape)
        self._flat = W
        return W

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_flat"}

    def _no_path(self, sequences: Sequences, without: int) -> None:
        if without >= 0:
            length = int(sequences.offsets[without + 1] - sequences.offsets[without])
            raise ValueError(f"sequence {without}: the grammar allows no labelling of {length} tokens")

    def _tagged(self, X: Any, lengths: Any) -> tuple[Sequences, Array]:
        W = self._weights()
        sequences = self._encoder.encode(X, lengths)
        labels, without = corpus_of(sequences, len(self.classes_), self._grammar).tag(W, thread_count(self.n_jobs))
        self._no_path(sequences, without)
        return sequences, labels

    def predict(self, X: Any, lengths: Any = None) -> list[list[Any]]:
        """The best labelling of each sequence.

        Parameters
        ----------
        X : iterable of sequences
            As for :meth:`fit`. Attributes that are not known are passed over.
        lengths : array of int, default=None
            The lengths of the sequences, where X is flat.

        Returns
        -------
        list of lists of labels
            scikit-learn's ``cross_val_predict``, which makes one array of all predictions, needs sequences of one
            length; ``cross_validate`` and searches take any.
        """
        sequences, labels = self._tagged(X, lengths)
        return sequences.lists([self.classes_[k] for k in labels.tolist()])

    def predict_single(self, xseq: Any) -> list[Any]:
        """The best labelling of one sequence."""
        return self.predict([xseq])[0]

    @available_if(_has_marginals)
    def predict_marginals(self, X: Any, lengths: Any = None) -> list[list[dict[Any, float]]]:
        """The probability of each label at each token, as dicts; for ``loss="log"``."""
        W = self._weights()
        sequences = self._encoder.encode(X, lengths)
        corpus = corpus_of(sequences, len(self.classes_), self._grammar)
        p, without = corpus.marginals(W, thread_count(self.n_jobs))
        self._no_path(sequences, without)
        return sequences.lists([dict(zip(self.classes_, row, strict=True)) for row in p.tolist()])

    @available_if(_has_marginals)
    def predict_marginals_single(self, xseq: Any) -> list[dict[Any, float]]:
        """The same of one sequence."""
        marginals: list[list[dict[Any, float]]] = self.predict_marginals([xseq])
        return marginals[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None, lengths: Any = None) -> float:
        """The share of tokens that are labelled rightly; labels that were not in training are wrong."""
        sequences, labels = self._tagged(X, lengths)
        if not len(labels):
            raise ValueError("X has no tokens: there is nothing to score")
        tags, classes = encode_tags(y, sequences)
        number = {tag: k for k, tag in enumerate(self.classes_)}
        right = np.array([number.get(tag, -1) for tag in classes], dtype=np.int64)[tags] == labels
        weight = row_weights(sample_weight, None, len(sequences))
        if weight is not None:
            return float(np.average(right, weights=np.repeat(weight, np.diff(sequences.offsets))))
        return float(np.mean(right))
