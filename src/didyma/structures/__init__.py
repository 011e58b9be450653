"""Structures: finite sets of outputs with a fast argmax."""

from didyma.structures.choice import Choice
from didyma.structures.factor_graph import (
    AtLeastOne,
    AtMost,
    AtMostOne,
    Cardinality,
    ExactlyOne,
    FactorGraph,
    Implies,
)
from didyma.structures.forest import Forest
from didyma.structures.matching import Matching
from didyma.structures.projective_tree import ProjectiveTree
from didyma.structures.sequence import DistanceBins, Sequence
from didyma.structures.top_k import TopK
from didyma.structures.tree import Tree

__all__ = [
    "AtLeastOne",
    "AtMost",
    "AtMostOne",
    "Cardinality",
    "Choice",
    "DistanceBins",
    "ExactlyOne",
    "FactorGraph",
    "Forest",
    "Implies",
    "Matching",
    "ProjectiveTree",
    "Sequence",
    "TopK",
    "Tree",
]
