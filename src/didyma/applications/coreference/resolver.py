"""CoreferenceResolver: from documents with mentions to clusters of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.coreference.measures import evaluate
from didyma.applications.coreference.mentions import FEATURES, pair_features
from didyma.applications.coreference.reader import Document
from didyma.applications.coreference.task import (
    CoreferenceTask,
    CorrelationClusteringTask,
    MentionPairs,
    PairTask,
)
from didyma.errors import ModelFileError
from didyma.learning import CCCP, inner_solver
from didyma.learning.monitor import Watch
from didyma.learning.solution import Callback, Result, Solution, check_C
from didyma.model import Savable, Saved
from didyma.protocol import Estimator, check_is_fitted


@dataclass(eq=False, repr=False)
class CoreferenceResolver(Savable, Estimator):
    """Clusters the mentions of documents by what they refer to.

    The objective is ½‖w‖² + C · mean over documents of the structural hinge loss.

    Parameters
    ----------
    C : float > 0
        Weight of the loss against the norm.
    r : float > 0
        Penalty of a wrong link; less makes larger clusters ("latent"). A missing link costs 1.
    model : {"latent", "correlation"}
        Spanning forests, or all pairs of a cluster. "latent" is a latent structural SVM over
        forests (Yu & Joachims 2009), whose inference is exact; "correlation" a structural SVM over
        pairs (Finley & Joachims 2005), whose inference is greedy, hence approximate.
    solver : {"one-slack", "bundle", "n-slack"}
        What solves the convex problem: of a round of "latent" ("bundle" is the paper's), or of all.
    tol : float >= 0
        Relative gain of a round at which "latent" stops, relative gap of "correlation".
    max_iter : int >= 1
        Most rounds of "latent", most cuts of "correlation".
    callback : callable, optional
        Called with a `Progress` after each round or cut; True stops.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights of `didyma.applications.coreference.mentions.FEATURES`.
    objective_trace_ : list of float
        Objective after each round or cut.
    result_ : Result
        How training ended.

    Examples
    --------
    >>> from didyma.applications import coreference
    >>> documents = coreference.read("train.conll")                   # doctest: +SKIP
    >>> resolver = CoreferenceResolver(C=1.0).fit(documents)          # doctest: +SKIP
    >>> labels = resolver.predict(coreference.read("test.conll"))     # doctest: +SKIP
    """

    C: float = 1.0
    r: float = 0.1
    model: Literal["latent", "correlation"] = "latent"
    _: KW_ONLY
    solver: str = "one-slack"
    tol: float = 1e-3
    max_iter: int = 100
    callback: Callback | None = None

    coef_: Annotated[NDArray[np.float64], Saved("n_features")] = field(init=False)
    objective_trace_: Annotated[list[float], Saved()] = field(init=False)
    result_: Result = field(init=False)
    n_documents_: Annotated[int, Saved()] = field(init=False)

    _transient: ClassVar[tuple[str, ...]] = ("callback",)

    def fit(self, documents: Sequence[Document], y: None = None) -> Self:
        """Learn from the gold clusters of documents."""
        self._check_parameters()
        if not any(len(document.mentions) > 1 for document in documents):
            raise DataError("there is nothing to learn from: no document has two mentions")
        examples = [pair_features(document) for document in documents]
        return self.fit_pairs(examples, [document.labels for document in documents])

    def fit_pairs(
        self, examples: Sequence[MentionPairs], labels: Sequence[NDArray[np.int64]]
    ) -> Self:
        """Learn from pair features that `pair_features` has computed, to fit several models."""
        self._check_parameters()
        check_C(self.C)
        watch = Watch({}, None, self.callback)
        task = self._task()
        problem = task.problem(examples, labels, np.full(len(examples), 1.0 / len(examples)))
        inner = inner_solver(self.solver)
        solver = CCCP(inner=inner) if task.latent else inner
        solver = replace(solver, tol=self.tol, max_iter=self.max_iter)
        solution: Solution = solver.solve(problem, self.C, callback=watch)
        self.coef_, self.result_ = solution.w, solution.result
        self.objective_trace_ = [record["value"] for record in watch.history]
        self.n_documents_ = len(examples)
        self.n_features_in_ = len(FEATURES)
        self.feature_names_in_ = np.array(FEATURES, dtype=object)
        return self

    def predict(self, documents: Sequence[Document]) -> list[NDArray[np.int64]]:
        """Cluster of each mention of each document, numbered by first appearance.

        Gold clusters are not looked at.
        """
        return self.predict_pairs([pair_features(document) for document in documents])

    def predict_pairs(self, examples: Sequence[MentionPairs]) -> list[NDArray[np.int64]]:
        """`predict` from pair features."""
        check_is_fitted(self)
        task = self._task()
        outputs = [task.argmax(self.coef_, x) for x in examples]
        return [getattr(output, "labels", output) for output in outputs]

    def score(self, documents: Sequence[Document], y: None = None) -> float:
        """CoNLL measure over the documents: mean F1 of MUC, B³ and CEAF_e."""
        golds = [document.labels for document in documents]
        return float(evaluate(golds, self.predict(documents))["conll"])

    @classmethod
    def load(cls, path: str | PathLike[str], trust: Iterable[str] = ()) -> Self:
        """Read a model file that holds a resolver."""
        resolver = super().load(path, trust)
        if tuple(getattr(resolver, "feature_names_in_", ())) != FEATURES:
            raise ModelFileError(
                f"{path}: was trained with other features of mentions than this version computes: "
                "train it again"
            )
        return resolver

    def _task(self) -> PairTask:
        if self.model == "latent":
            return CoreferenceTask(len(FEATURES), self.r)
        if self.model == "correlation":
            return CorrelationClusteringTask(len(FEATURES))
        raise DataError(f"expected 'latent' or 'correlation', found {self.model!r}", field="model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        return tags
