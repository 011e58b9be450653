"""Structures: finite sets of outputs with a fast argmax."""

from didyma.structures.choice import Choice
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.forest import Forest
from didyma.structures.matching import Matching
from didyma.structures.projective_tree import ProjectiveTree
from didyma.structures.sequence import Sequence
from didyma.structures.top_k import TopK
from didyma.structures.tree import Tree

__all__ = [
    "Choice",
    "FactorGraph",
    "Forest",
    "Matching",
    "ProjectiveTree",
    "Sequence",
    "TopK",
    "Tree",
]
