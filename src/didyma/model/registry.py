"""The classes that a model file may name, and where they are imported from."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.model.fields import Saved

__all__ = ["CLASSES", "INNER", "class_of", "declaration"]

CLASSES = {
    "AdditiveSVMRanker": "didyma.ranking.additive",
    "SVMRanker": "didyma.ranking.svm",
    "ClassificationRanker": "didyma.ranking.classification",
    "LatentPerceptronRanker": "didyma.ranking.latent",
    "LatentSVMRanker": "didyma.ranking.latent",
    "PolynomialRanker": "didyma.ranking.classification",
    "CoreferenceResolver": "didyma.applications.coreference.resolver",
    "MotifFinder": "didyma.applications.motif.finder",
    "TrigramTagger": "didyma.applications.tagging.tagger",
    "LowRankReranker": "didyma.nbest.low_rank",
    "BoostingReranker": "didyma.nbest.boosting",
    "NBestReranker": "didyma.nbest.reranker",
    "DependencyParser": "didyma.applications.parsing.parser",
    "EntailmentClassifier": "didyma.applications.alignment.esim",
    "PassageRanker": "didyma.applications.passages.ranker",
    "LatentStructuredPerceptron": "didyma.structured.learners",
    "LatentStructuredSVM": "didyma.structured.learners",
    "StructuredPerceptron": "didyma.structured.learners",
    "StructuredSVM": "didyma.structured.learners",
    "Reranker": "didyma.text.reranker",
    "TextReranker": "didyma.text.text_reranker",
    "Joined": "didyma.ranking.featuriser",
    "PassageEmbedding": "didyma.applications.passages.embedding",
    "TextFeatures": "didyma.text.features.union",
    "Bag": "didyma.nbest.bags",
    "GivenVectors": "didyma.nbest.given",
    "JointFeatures": "didyma.nbest.joint",
    "ScoreBinner": "didyma.ranking.binning",
    "QueryMinMaxScaler": "didyma.ranking.scaling",
    "QueryPercentileScaler": "didyma.ranking.scaling",
    "QueryStandardScaler": "didyma.ranking.scaling",
    "Pipeline": "sklearn.pipeline",
    "MaxAbsScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
}

# What stands only inside one of these.
INNER = {
    "ExtendedFeatures": "didyma.text.features.extended",
    "FirstStage": "didyma.text.features.first_stage",
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
    n_samples_seen_: Annotated[int | NDArray[np.int64], Saved("n_features")]


class _MaxAbsScaler(_Scaler):
    scale_: Columns
    max_abs_: Columns

    def __init__(self, copy: bool = True, clip: bool = False) -> None: ...


class _MinMaxScaler(_Scaler):
    scale_: Columns
    min_: Columns
    data_min_: Columns
    data_max_: Columns
    data_range_: Columns

    def __init__(
        self, feature_range: tuple[float, float] = (0, 1), copy: bool = True, clip: bool = False
    ) -> None: ...


class _StandardScaler(_Scaler):
    scale_: MaybeColumns
    mean_: MaybeColumns
    var_: MaybeColumns

    def __init__(
        self, copy: bool = True, with_mean: bool = True, with_std: bool = True
    ) -> None: ...


class _Pipeline:
    _transient = ("steps", "memory")

    def __init__(self, transform_input: Any = None, verbose: bool = False) -> None: ...


FOREIGN: dict[str, type] = {
    "MaxAbsScaler": _MaxAbsScaler,
    "MinMaxScaler": _MinMaxScaler,
    "Pipeline": _Pipeline,
    "StandardScaler": _StandardScaler,
}
