"""Reports for people to look at."""

from didyma.lazy import attach

# Names of 0.2 that are elsewhere now.
_FORMER = {
    "heat_maps": "didyma.applications.alignment.heat_maps",
    "save_logo": "didyma.applications.motif.save_logo",
}
__getattr__, __dir__, __all__ = attach(__name__, __file__, _FORMER)
