"""Structures: finite sets of outputs with a fast argmax."""

from didyma.structures.c_function import CFunction
from didyma.structures.choice import Choice
from didyma.structures.composition import Composition, Factor
from didyma.structures.constituency import Constituency
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.forest import Forest
from didyma.structures.higher_order_sequence import HigherOrderSequence
from didyma.structures.hypergraph import Hypergraph, Plan, Planned
from didyma.structures.joint_table import JointTable
from didyma.structures.knapsack import Knapsack
from didyma.structures.logic import (
    AndOut,
    AtLeastOne,
    AtMost,
    AtMostOne,
    Cardinality,
    ExactlyOne,
    Implies,
    OrOut,
    XorOut,
)
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
    "AndOut",
    "AtLeastOne",
    "AtMost",
    "AtMostOne",
    "CFunction",
    "Cardinality",
    "Choice",
    "Composition",
    "Constituency",
    "DistanceBins",
    "ExactlyOne",
    "Factor",
    "FactorGraph",
    "Forest",
    "HigherOrderSequence",
    "Hypergraph",
    "Implies",
    "JointTable",
    "Knapsack",
    "Matching",
    "MonotoneAlignment",
    "OrOut",
    "Path",
    "Plan",
    "Planned",
    "ProjectiveTree",
    "Recurrence",
    "Segmentation",
    "Sequence",
    "TopK",
    "Tree",
    "XorOut",
    "either",
]
