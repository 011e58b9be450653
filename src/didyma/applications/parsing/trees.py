"""Sentences with the few trees that a parser cannot choose between, as a picture or a page.

Each sentence is drawn by `draw_trees`: the marginals of all arcs first, then the most probable
trees. A page also says in words where the trees differ.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.parsing.drawing import draw_trees
from didyma.files import PathName, format_suffix, replace_when_done
from didyma.report.figures import PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from didyma.applications.parsing.parser import DependencyParser
    from didyma.data.conll import Sentence

GAP = 10  # points between the pictures of two sentences
SHOWN = 5  # trees of a sentence that a page puts into words
SIZE = re.compile(r'width="([\d.]+)pt" height="([\d.]+)pt"')
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 0 auto; padding: 2rem 1.25rem; max-width: 62rem; color: #1c2430;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
h1 {{ font-size: 1.5rem; }}
h2 {{ font-size: 1rem; margin: 2.5rem 0 .5rem; padding-top: .75rem;
  border-top: 1px solid #d5dae1; }}
figure {{ margin: 0; overflow-x: auto; }}
ol {{ padding-left: 1.2rem; }}
.quiet {{ color: #6b7685; font-weight: 400; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


@dataclass(frozen=True, eq=False)
class Ambiguity:
    """A sentence and its trees, most probable first."""

    name: str
    words: Sequence[str]
    heads: NDArray[np.int64]  # (k, n): of each word in each tree, 0 for the root
    relations: Sequence[Sequence[str]]  # of each word to its head, in each tree
    probabilities: NDArray[np.float64]

    def draw(self) -> Figure:
        """The trees side by side."""
        root = np.full((len(self.heads), 1), -1)
        return draw_trees((np.hstack([root, self.heads]), self.probabilities), self.words)

    def differences(self) -> Iterator[tuple[float, list[str]]]:
        """The probability of each tree, and its arcs that other trees lack."""
        relations = np.array([list(row) for row in self.relations])
        differs = (self.heads != self.heads[0]).any(axis=0) | (relations != relations[0]).any(
            axis=0
        )
        names = ["the root", *self.words]
        for heads, labels, share in zip(self.heads, self.relations, self.probabilities):
            yield (
                float(share),
                [
                    f"{self.words[m]} is {labels[m]} of {names[heads[m]]}"
                    for m in np.flatnonzero(differs).tolist()
                ],
            )


def write(sentences: Sequence[Ambiguity], title: str, path: PathName) -> None:
    """Write an SVG picture or an HTML page, by the name's suffix, whole or not at all."""
    kind = format_suffix(path)
    if kind not in (".svg", ".html"):
        raise DataError(f"expected a name that ends in .svg or .html, found {kind!r}", path=path)
    pictures = [_svg(sentence.draw()) for sentence in sentences]
    text = _stacked(pictures) if kind == ".svg" else _page(sentences, pictures, title)
    with replace_when_done(path) as file:
        file.write(text)


def _svg(figure: Any) -> str:
    """The element alone, without what makes it a document."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "didyma"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _stacked(pictures: Sequence[str]) -> str:
    """One picture below the other."""
    y, width, placed = 0.0, 1.0, []
    for picture in pictures:
        size = SIZE.search(picture)
        assert size is not None
        units = f'x="0" y="{y:g}" width="{size[1]}" height="{size[2]}"'
        placed.append(SIZE.sub(units, picture, count=1))
        y += float(size[2]) + GAP
        width = max(width, float(size[1]))
    height = max(y - GAP, 1.0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}pt" height="{height:g}pt" '
        f'viewBox="0 0 {width:g} {height:g}">\n<rect width="100%" height="100%" fill="{PAPER}"/>\n'
        + "\n".join(placed)
        + "\n</svg>\n"
    )


def _page(sentences: Sequence[Ambiguity], pictures: Sequence[str], title: str) -> str:
    parts = []
    for sentence, picture in zip(sentences, pictures):
        name, text = escape(sentence.name), escape(" ".join(sentence.words))
        count = len(sentence.probabilities)
        parts.append(f'<h2>{text} <span class="quiet">{name}, {count} trees</span></h2>')
        parts.append(f"<figure>{picture}</figure>\n<ol>")
        for share, arcs in islice(sentence.differences(), SHOWN):
            parts.append(f"<li><b>{share:.1%}</b> {escape('; '.join(arcs))}</li>")
        parts.append("</ol>")
        if count > SHOWN:
            rest = float(sentence.probabilities[SHOWN:].sum())
            parts.append(f'<p class="quiet">and {count - SHOWN} more, {rest:.1%} together</p>')
    return PAGE.format(title=escape(title), body="\n".join(parts))


def ambiguities(
    parser: DependencyParser, sentences: Sequence[Sentence], temperature: float
) -> list[Ambiguity]:
    """The sentences of which SparseMAP keeps several trees, at a temperature."""
    found = []
    posteriors = parser.alternatives(sentences, temperature)
    for number, (sentence, posterior) in enumerate(zip(sentences, posteriors), 1):
        if posterior.support_size > 1:
            heads = posterior.structures[:, 1:]
            relations = parser.label([sentence] * len(heads), list(heads))
            name = sentence.sent_id or f"sentence {number}"
            found.append(Ambiguity(name, sentence.words, heads, relations, posterior.probabilities))
    return found


def write_lines(sentences: Sequence[Ambiguity], path: PathName) -> None:
    """Write sentences with their trees, a line of JSON each."""
    with replace_when_done(path) as file:
        for sentence in sentences:
            trees = [
                {"probability": share, "heads": heads, "relations": relations}
                for share, heads, relations in zip(
                    sentence.probabilities.tolist(), sentence.heads.tolist(), sentence.relations
                )
            ]
            record = {"sentence": sentence.name, "words": sentence.words, "trees": trees}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
