"""The classes that a model file may name, and where they are imported from.

Ours stand here. A class of a user's own, such as a `Featuriser`, is named by its import path
("my.module:Length"), and is imported only if whoever loads the file says that they trust it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from operator import attrgetter
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.model.fields import Saved

HOMES = {
    "didyma.ranking.additive": ["AdditiveSVMRanker"],
    "didyma.ranking.svm": ["SVMRanker"],
    "didyma.ranking.classification": ["ClassificationRanker", "PolynomialRanker"],
    "didyma.ranking.ridge": ["RidgeRanker"],
    "didyma.ranking.latent": ["LatentPerceptronRanker", "LatentSVMRanker"],
    "didyma.ranking.binning": ["ScoreBinner"],
    "didyma.ranking.scaling": [
        *("QueryMinMaxScaler", "QueryPercentileScaler", "QueryStandardScaler"),
    ],
    "didyma.ranking.featuriser": ["Joined"],
    "didyma.structured.learners": [
        *("LatentStructuredPerceptron", "LatentStructuredSVM"),
        *("StructuredPerceptron", "StructuredSVM"),
    ],
    "didyma.text.cascade": ["Cascade"],
    "didyma.text.reranker": ["Reranker"],
    "didyma.text.text_reranker": ["TextReranker"],
    "didyma.text.features.union": ["TextFeatures"],
    "didyma.nbest.reranker": ["NBestReranker"],
    "didyma.nbest.low_rank": ["LowRankReranker"],
    "didyma.nbest.boosting": ["BoostingReranker"],
    "didyma.nbest.bags": ["Bag", "GivenVectors"],
    "didyma.nbest.joint": ["JointFeatures"],
    "didyma.applications.alignment.esim": ["EntailmentClassifier"],
    "didyma.applications.coreference.resolver": ["CoreferenceResolver"],
    "didyma.applications.motif.finder": ["MotifFinder"],
    "didyma.applications.parsing.parser": ["DependencyParser"],
    "didyma.applications.passages.ranker": ["PassageRanker", "PassageEmbedding"],
    "didyma.applications.tagging.tagger": ["TrigramTagger"],
    "sklearn.pipeline": ["Pipeline"],
    "sklearn.preprocessing": ["MaxAbsScaler", "MinMaxScaler", "StandardScaler"],
}
CLASSES = {name: home for home, names in HOMES.items() for name in names}

# What stands only inside one of these.
INNER = {
    "ExtendedFeatures": "didyma.text.features.extended",
    "FieldOverlaps": "didyma.text.features.small",
    "FirstStage": "didyma.text.features.part",
    "Meaning": "didyma.text.features.meaning",
    "Signals": "didyma.text.features.signals",
    "SmallFeatures": "didyma.text.features.small",
    "WordVectors": "didyma.text.features.word_vectors",
}


Trusted: TypeAlias = Collection[str] | None
"""Import paths of classes that a file may name; None where what it names is here already."""

_trusted: ContextVar[Trusted] = ContextVar("trusted", default=())


@contextmanager
def trusting(paths: Trusted) -> Iterator[None]:
    """Let files name these classes, "module:Name" each, beside ours."""
    token = _trusted.set(paths)
    try:
        yield
    finally:
        _trusted.reset(token)


def check_trust(paths: Any) -> tuple[str, ...]:
    """The import paths, if that is what they are."""
    given = [paths] if isinstance(paths, str) else list(paths)
    for path in given:
        if not (isinstance(path, str) and is_own(path)):
            raise DataError(f"expected paths such as my.module:Name, found {path!r}", field="trust")
    return tuple(given)


def is_own(name: str) -> bool:
    """Whether a name is an import path, as of a class of a user's own."""
    module, colon, qualified = name.partition(":")
    return bool(module and colon and qualified)


def name_of(cls: type) -> str:
    """What a file calls a class: the name of ours, the import path of another.

    Raises DataError if the path does not lead to it, as of one that a function or a script defines.
    """
    name, path = cls.__name__, f"{cls.__module__}:{cls.__qualname__}"
    if (name in CLASSES or name in INNER) and class_of(name) is cls:
        return name
    try:
        is_there = cls.__module__ != "__main__" and _imported(path) is cls
    except (AttributeError, ImportError):
        is_there = False
    if not is_there:
        raise DataError(
            f"a {name} cannot be saved in a model file, which names a class by its import path, "
            f"and {path} cannot be imported: define it in a module, outside of functions"
        )
    return path


def _imported(path: str) -> Any:
    module, _, qualified = path.partition(":")
    return attrgetter(qualified)(import_module(module))


def class_of(name: str) -> Any:
    """The class that a file names; one that is not ours only if it is trusted."""
    if is_own(name):
        trusted = _trusted.get()
        if trusted is not None and name not in trusted:
            raise ValueError(
                f"it needs the class {name}, which is not of this library, and nothing of it was "
                f"run: if you trust it, load with trust=[{name!r}], or --trust {name}"
            )
        try:
            return _imported(name)
        except (AttributeError, ImportError) as error:
            raise ValueError(f"{name} cannot be imported: {error}") from error
    home = CLASSES.get(name) or INNER.get(name)
    if home is None:
        raise ValueError(f"it is of a class that this version does not know, {name}")
    return getattr(import_module(home), name)


def declaration(name: str) -> Any:
    """The class whose annotations say what a file keeps of the class of that name.

    It is the class itself, unless that is scikit-learn's: its annotations stand here, so that
    nothing is imported to check them.
    """
    return FOREIGN.get(name) or class_of(name)


Columns: TypeAlias = Annotated[NDArray[np.floating[Any]], Saved("n_features")]
MaybeColumns: TypeAlias = Annotated[NDArray[np.floating[Any]] | None, Saved("n_features")]


class _Scaler:
    n_samples_seen_: Annotated[int | NDArray[Any], Saved("n_features")]


class _MaxAbsScaler(_Scaler):
    scale_: Columns
    max_abs_: Columns

    def __init__(self, copy: bool, clip: bool) -> None: ...


class _MinMaxScaler(_Scaler):
    scale_: Columns
    min_: Columns
    data_min_: Columns
    data_max_: Columns
    data_range_: Columns

    def __init__(self, feature_range: tuple[float, float], copy: bool, clip: bool) -> None: ...


class _StandardScaler(_Scaler):
    scale_: MaybeColumns
    mean_: MaybeColumns
    var_: MaybeColumns

    def __init__(self, copy: bool, with_mean: bool, with_std: bool) -> None: ...


class _Pipeline:
    _transient = ("steps", "memory")

    def __init__(self, transform_input: Any, verbose: bool) -> None: ...


FOREIGN: dict[str, type] = {
    cls.__name__[1:]: cls for cls in (_MaxAbsScaler, _MinMaxScaler, _Pipeline, _StandardScaler)
}
