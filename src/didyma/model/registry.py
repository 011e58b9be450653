"""The classes that a model file may name, and where they are imported from."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.model.fields import Saved

__all__ = ["CLASSES", "INNER", "class_of", "declaration"]

HOMES = {
    "didyma.ranking.additive": ["AdditiveSVMRanker"],
    "didyma.ranking.svm": ["SVMRanker"],
    "didyma.ranking.classification": ["ClassificationRanker", "PolynomialRanker"],
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
    "didyma.nbest.bags": ["Bag"],
    "didyma.nbest.views": ["GivenVectors"],
    "didyma.nbest.joint": ["JointFeatures"],
    "didyma.applications.alignment.esim": ["EntailmentClassifier"],
    "didyma.applications.coreference.resolver": ["CoreferenceResolver"],
    "didyma.applications.motif.finder": ["MotifFinder"],
    "didyma.applications.parsing.parser": ["DependencyParser"],
    "didyma.applications.passages.ranker": ["PassageRanker"],
    "didyma.applications.passages.embedding": ["PassageEmbedding"],
    "didyma.applications.tagging.tagger": ["TrigramTagger"],
    "sklearn.pipeline": ["Pipeline"],
    "sklearn.preprocessing": ["MaxAbsScaler", "MinMaxScaler", "StandardScaler"],
}
CLASSES = {name: home for home, names in HOMES.items() for name in names}

# What stands only inside one of these.
INNER = {
    "ExtendedFeatures": "didyma.text.features.extended",
    "FieldOverlaps": "didyma.text.features.fields",
    "FirstStage": "didyma.text.features.part",
    "Meaning": "didyma.text.features.meaning",
    "Signals": "didyma.text.features.signals",
    "SmallFeatures": "didyma.text.features.small",
    "WordVectors": "didyma.text.features.word_vectors",
}


def class_of(name: str) -> Any:
    """The class that a file names."""
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
    own.__name__[1:]: own for own in (_MaxAbsScaler, _MinMaxScaler, _Pipeline, _StandardScaler)
}
