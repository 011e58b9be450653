"""Structured prediction from an argmax.

    >>> import didyma
    >>> train = didyma.read("train.txt")                   # doctest: +SKIP
    >>> ranker = didyma.SVMRanker(loss="ap").fit(train)     # doctest: +SKIP
    >>> test = didyma.read("test.txt", like=train)          # doctest: +SKIP
    >>> ranker.predict(test)                                # doctest: +SKIP

Names are imported when they are first used, so that ``import didyma`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# Where each public name lives.
_HOMES = {
    "AdditiveSVMRanker": "didyma.estimators.additive",
    "BoostingReranker": "didyma.estimators.boosting",
    "ClassificationRanker": "didyma.estimators.classification",
    "CoreferenceResolver": "didyma.estimators.coreference",
    "DataError": "didyma.errors",
    "DidymaError": "didyma.errors",
    "LatentPerceptronRanker": "didyma.estimators.latent",
    "LatentSVMRanker": "didyma.estimators.latent",
    "LatentStructuredPerceptron": "didyma.estimators.structured",
    "LatentStructuredSVM": "didyma.estimators.structured",
    "LowRankReranker": "didyma.estimators.low_rank",
    "MotifFinder": "didyma.estimators.motif",
    "NBestReranker": "didyma.rerank.nbest",
    "PassageIndex": "didyma.search.index",
    "PolynomialRanker": "didyma.estimators.classification",
    "QueryMinMaxScaler": "didyma.features.scaling",
    "QueryPercentileScaler": "didyma.features.scaling",
    "QueryStandardScaler": "didyma.features.scaling",
    "Lists": "didyma.data",
    "Reranker": "didyma.rerank.reranker",
    "SVMRanker": "didyma.estimators.svm",
    "ScoreBinner": "didyma.features.binning",
    "Shards": "didyma.distributed.shards",
    "StepLoss": "didyma.tasks.losses",
    "Structure": "didyma.structure",
    "StructuredPerceptron": "didyma.estimators.structured",
    "StructuredSVM": "didyma.estimators.structured",
    "Task": "didyma.tasks.task",
    "TextReranker": "didyma.rerank.text",
    "TrigramTagger": "didyma.estimators.tagger",
    "checkpoint": "didyma.checkpoints",
    "evaluate": "didyma.metrics",
    "export": "didyma.engines.export",
    "load": "didyma.model",
    "local_sparsemap": "didyma.polytope.local",
    "read": "didyma.formats",
    "save": "didyma.model",
    "scorer": "didyma.estimators.scoring",
    "sparsemap": "didyma.polytope.sparsemap",
    "threads": "didyma.execution",
    "write": "didyma.formats",
}

__all__ = [
    "AdditiveSVMRanker",
    "BoostingReranker",
    "ClassificationRanker",
    "CoreferenceResolver",
    "DataError",
    "DidymaError",
    "LatentPerceptronRanker",
    "LatentSVMRanker",
    "LatentStructuredPerceptron",
    "LatentStructuredSVM",
    "Lists",
    "LowRankReranker",
    "MotifFinder",
    "NBestReranker",
    "PassageIndex",
    "PolynomialRanker",
    "QueryMinMaxScaler",
    "QueryPercentileScaler",
    "QueryStandardScaler",
    "Reranker",
    "SVMRanker",
    "ScoreBinner",
    "Shards",
    "StepLoss",
    "Structure",
    "StructuredPerceptron",
    "StructuredSVM",
    "Task",
    "TextReranker",
    "TrigramTagger",
    "checkpoint",
    "evaluate",
    "export",
    "load",
    "local_sparsemap",
    "read",
    "save",
    "scorer",
    "sparsemap",
    "structures",
    "threads",
    "write",
]

if TYPE_CHECKING:
    from didyma import structures
    from didyma.checkpoints import checkpoint
    from didyma.data import Lists
    from didyma.distributed.shards import Shards
    from didyma.engines.export import export
    from didyma.errors import DataError, DidymaError
    from didyma.estimators.additive import AdditiveSVMRanker
    from didyma.estimators.boosting import BoostingReranker
    from didyma.estimators.classification import ClassificationRanker, PolynomialRanker
    from didyma.estimators.coreference import CoreferenceResolver
    from didyma.estimators.latent import LatentPerceptronRanker, LatentSVMRanker
    from didyma.estimators.low_rank import LowRankReranker
    from didyma.estimators.motif import MotifFinder
    from didyma.estimators.scoring import scorer
    from didyma.estimators.structured import (
        LatentStructuredPerceptron,
        LatentStructuredSVM,
        StructuredPerceptron,
        StructuredSVM,
    )
    from didyma.estimators.svm import SVMRanker
    from didyma.estimators.tagger import TrigramTagger
    from didyma.execution import threads
    from didyma.features.binning import ScoreBinner
    from didyma.features.scaling import (
        QueryMinMaxScaler,
        QueryPercentileScaler,
        QueryStandardScaler,
    )
    from didyma.formats import read, write
    from didyma.metrics import evaluate
    from didyma.model import load, save
    from didyma.polytope.local import local_sparsemap
    from didyma.polytope.sparsemap import sparsemap
    from didyma.rerank.nbest import NBestReranker
    from didyma.rerank.reranker import Reranker
    from didyma.rerank.text import TextReranker
    from didyma.search.index import PassageIndex
    from didyma.structure import Structure
    from didyma.tasks.losses import StepLoss
    from didyma.tasks.task import Task


def __getattr__(name: str) -> Any:
    if name == "structures":
        return import_module("didyma.structures")
    if name not in _HOMES:
        raise AttributeError(f"module 'didyma' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
