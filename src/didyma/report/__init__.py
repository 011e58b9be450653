"""Reports for people to look at."""

from typing import TYPE_CHECKING

from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.report.alignment import heat_maps
    from didyma.report.logo import save_logo

__all__ = ["heat_maps", "save_logo"]

_HOMES = {
    "heat_maps": "didyma.report.alignment",
    "save_logo": "didyma.report.logo",
}
__getattr__ = lazily(__name__, _HOMES)
