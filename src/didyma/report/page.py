"""Pages of HTML with nothing to load beside them: what all reports share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from didyma.errors import MissingExtraError
from didyma.files import PathName, replace_when_done
from didyma.report import plots

__all__ = ["PagePlot", "require_extra", "write_page"]

PURPOSE = "drawing the report"


@dataclass(frozen=True)
class PagePlot:
    """A drawing, its heading, and a sentence that says what it shows."""

    heading: str
    svg: str
    caption: str

    def __html__(self) -> str:
        """The drawing as it is, where a template would escape other texts."""
        return self.svg


def write_page(template: str, path: PathName, **contents: Any) -> None:
    """Fill in a template of this package and write it, whole or not at all."""
    page = _environment().get_template(template).render(**contents)
    with replace_when_done(path) as file:
        file.write(page)


def require_extra() -> None:
    """Raise an error that names the missing extra now, rather than after a long run."""
    plots.require_matplotlib(PURPOSE)
    _environment()


def _environment() -> Any:
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError(PURPOSE, "report") from None
    return jinja2.Environment(
        loader=jinja2.PackageLoader("didyma.report", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
