"""Reports for people to look at."""

from typing import TYPE_CHECKING

from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.report.alignment import heat_maps
    from didyma.report.functions import draw_functions, terms, write_functions
    from didyma.report.logo import save_logo

__all__ = ["draw_functions", "heat_maps", "save_logo", "terms", "write_functions"]

_HOMES = {
    "draw_functions": "didyma.report.functions",
    "heat_maps": "didyma.report.alignment",
    "save_logo": "didyma.report.logo",
    "terms": "didyma.report.functions",
    "write_functions": "didyma.report.functions",
}
__getattr__ = lazily(__name__, _HOMES)
