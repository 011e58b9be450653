"""Third-party solvers as structures: integer programmes, graphs, constraint programming.

Each is a `didyma.Structure`, so that layers, losses and learners take it as any other. `Milp` and
`Flow` need nothing but SciPy, `Route` nothing at all; trees and matchings of graphs need networkx,
`CpSat` and `Tour` OR-tools (extra ``solvers``).
"""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
