"""Pages of the reference: one for each public package, and one for each object in it."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docstrings import plain
from sphinx.application import Sphinx

PACKAGES = {
    "didyma": "Rankers, rerankers, learners of your own, files",
    "didyma.structures": "Finite sets of outputs with a fast argmax",
    "didyma.solvers": "Solvers of others as structures",
    "didyma.nn": "Layers, losses and distributions for PyTorch",
    "didyma.ranking": "Rankers, and what turns candidates into rows",
    "didyma.text": "Features of texts, rerankers of passages, an index",
    "didyma.nbest": "Rerankers of n-best lists",
    "didyma.structured": "Tasks of your own, and learners for them",
    "didyma.polytope": "What SparseMAP finds",
    "didyma.learning": "Solvers",
    "didyma.data": "Queries with candidates, readers and writers",
    "didyma.metrics": "Measures and significance tests",
    "didyma.report": "Pictures and pages",
    "didyma.applications.alignment": "Inference between sentences",
    "didyma.applications.clicks": "Judgements from clicks",
    "didyma.applications.coreference": "Coreference",
    "didyma.applications.motif": "Motifs of DNA",
    "didyma.applications.parsing": "Dependency parsing",
    "didyma.applications.passages": "A network that ranks passages",
    "didyma.applications.tagging": "Tagging",
    "didyma.integrations": "Rerankers inside other libraries",
}
FOLDER = "reference"  # below docs/, made anew by each build
OUTSIDE = {"didyma.integrations"}  # each name needs a library that need not be here


def public(package: str) -> list[str]:
    """Names of a package that pages may use, without modules that are packages of the list."""
    names = sorted(import_module(package).__all__, key=str.lower)
    return [name for name in names if f"{package}.{name}" not in PACKAGES]


def directive(package: str, name: str, known: set[int]) -> list[str]:
    """How Sphinx documents an object; cross-references lead to the first page of one.

    ``known`` are the identities of the objects that have one.
    """
    full = f"{package}.{name}"
    found = getattr(import_module(package), name)
    if isinstance(found, ModuleType):
        again = [each for each in found.__all__ if id(getattr(found, each)) in known]
        known.update(id(getattr(found, each)) for each in found.__all__)
        return [
            f".. automodule:: {found.__name__}",
            "   :members:",
            *([f"   :exclude-members: {', '.join(again)}"] if again else []),
        ]
    again = ["   :no-index:"] if id(found) in known else []
    known.add(id(found))
    if inspect.isclass(found):
        return [f".. autoclass:: {full}", "   :members:", "   :inherited-members:", *again]
    kind = "autofunction" if callable(found) else "autodata"
    return [f".. {kind}:: {full}", *again]


def titled(title: str, *lines: str) -> str:
    """A page of reStructuredText."""
    return "\n".join([title, "=" * len(title), "", *lines, ""])


def write(folder: Path, name: str, text: str) -> None:
    """Write a page, unless it is there as it is: Sphinx reads again what is newer."""
    path = folder / f"{name}.rst"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def first_line(package: str, name: str) -> str:
    """What an object is, in its own words."""
    found = inspect.getdoc(getattr(import_module(package), name)) or ""
    return plain(" ".join(found.partition("\n\n")[0].split()))


def generate(app: Sphinx) -> None:
    """Write all pages, and remove those of objects that are no more."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    expected, known = set[str](), set[int]()
    for package, about in PACKAGES.items():
        names = public(package)
        if package in OUTSIDE:
            lines = [":doc:`how to serve </serve>` says how to use them.", ""]
            lines += [f"* ``{package}.{name}``" for name in names]
        else:
            for name in names:
                page = f"{package}.{name}"
                expected.add(f"{page}.rst")
                write(folder, page, titled(name, *directive(package, name, known)))
            lines = [".. toctree::", "   :hidden:", ""]
            lines += [f"   {package}.{name}" for name in names]
            lines += ["", ".. list-table::", "   :widths: 30 70", ""]
            for name in names:
                lines += [
                    f"   * - :doc:`{name} <{package}.{name}>`",
                    f"     - {first_line(package, name)}",
                ]
        expected.add(f"{package}.rst")
        write(folder, package, titled(package, f"{about}.", "", *lines))
    for path in folder.glob("*.rst"):
        if path.name not in expected:
            path.unlink()
    app.config.reference_pages = [f"{FOLDER}/{package}" for package in PACKAGES]


def link_packages(app: Sphinx, name: str, source: list[str]) -> None:
    """Let the table of packages lead to their pages, which are there in the site only."""
    if name == FOLDER:
        for package in PACKAGES:
            source[0] = source[0].replace(
                f"| `{package}` |", f"| [`{package}`]({FOLDER}/{package}.rst) |"
            )


def skip_foreign(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what is inherited from other libraries, which document it themselves."""
    own = inspect.unwrap(member.fget if isinstance(member, property) else member)
    home = getattr(own, "__module__", None) or ""
    return True if home and not home.startswith("didyma") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_config_value("reference_pages", [], "")
    app.connect("builder-inited", generate)
    app.connect("source-read", link_packages)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True}
