"""Structures: finite sets of outputs with a fast argmax."""

from didyma.structures.choice import Choice
from didyma.structures.constituency import Constituency
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
from didyma.structures.higher_order_sequence import HigherOrderSequence
from didyma.structures.hypergraph import Hypergraph, Plan, Planned
from didyma.structures.knapsack import Knapsack
from didyma.structures.matching import Matching
from didyma.structures.monotone_alignment import MonotoneAlignment
from didyma.structures.path import Path
from didyma.structures.projective_tree import ProjectiveTree
from didyma.structures.recurrence import Recurrence, either
from didyma.structures.segmentation import Segmentation
from didyma.structures.sequence import DistanceBins, Sequence
from didyma.structures.top_k import TopK
from didyma.structures.tree import Tree

__all__ = [
    "AtLeastOne",
    "AtMost",
    "AtMostOne",
    "Cardinality",
    "Choice",
    "Constituency",
    "DistanceBins",
    "ExactlyOne",
    "FactorGraph",
    "Forest",
    "HigherOrderSequence",
    "Hypergraph",
    "Implies",
    "Knapsack",
    "Matching",
    "MonotoneAlignment",
    "Path",
    "Plan",
    "Planned",
    "ProjectiveTree",
    "Recurrence",
    "Segmentation",
    "Sequence",
    "TopK",
    "Tree",
    "either",
]
