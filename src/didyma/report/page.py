"""Pages of HTML with nothing to load beside them: what all reports share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
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


def write_page(template: Path, path: PathName, **contents: Any) -> None:
    """Fill in a Jinja template, which may extend ``page.html.j2``; write it whole or not at all.

    A template stands beside the module that fills it in.
    """
    page = _environment(template.parent).get_template(template.name).render(**contents)
    with replace_when_done(path) as file:
        file.write(page)


def require_extra() -> None:
    """Raise an error that names the missing extra now, rather than after a long run."""
    plots.require_matplotlib(PURPOSE)
    _environment()


def _environment(*folders: Path) -> Any:
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError(PURPOSE, "report") from None
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, Path(__file__).parent]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
