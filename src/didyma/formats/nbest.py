"""N-best lists: for each input the outputs that a decoder proposes, to choose a better one from.

JSON lines, an object for each input:

    {"id": "7", "input": "time flies", "reference": "NN VBZ",
     "candidates": [{"text": "NN NNS", "score": -9.1, "loss": 1, "features": {"lm": -3.2}}, …]}

of which only ``candidates`` and their ``text`` are required; ``vector`` (of the input or a
candidate) and ``reference_vector`` are lists of numbers, and any further keys are kept. Or lines as
of Moses, those of an input one after the other:

    7 ||| NN NNS ||| lm= -3.2 tm= -1.5 -0.5 ||| -9.1

where the values of a name with several are called ``tm.1``, ``tm.2``, those without a name ``1``,
``2``; what follows the total (an alignment) is kept. A loss may stand under any name, among the
fields of a candidate or its features.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, format_suffix, read_lines, replace_when_done
from didyma.formats.text import parse_json

__all__ = [
    "LOSSES",
    "Candidate",
    "NBest",
    "edit",
    "hamming",
    "is_jsonl",
    "loss_measure",
    "losses",
    "read",
    "scores",
    "write",
]

Vector: TypeAlias = "NDArray[np.float64]"
Loss: TypeAlias = "Callable[[Sequence[str], Sequence[str]], float]"

SEPARATOR = "|||"
ALIGNMENT = "alignment"


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A proposed output: its text, and what is known about it.

    ``score`` is the decoder's (higher is better), ``loss`` what the choice of it costs (0 is best),
    ``features`` are named numbers, ``vector`` its representation, ``other`` further fields of its
    file.
    """

    text: str
    score: float | None = None
    loss: float | None = None
    features: Mapping[str, float] | None = None
    vector: Vector | None = None
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class NBest:
    """An input, its reference output if known, and its candidates, in the decoder's order.

    Texts are tokens with white space between them; what a token needs inside is another sign.

    >>> nbest = NBest("7", "time flies", "NN VBZ", [Candidate("NN NNS", -9.1), Candidate("NN VBZ")])
    >>> len(nbest), nbest.candidates[1].text
    (2, 'NN VBZ')
    """

    id: str
    input: str | None
    reference: str | None
    candidates: Sequence[Candidate]
    vector: Vector | None = None
    reference_vector: Vector | None = None
    other: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.candidates)


def hamming(reference: Sequence[str], output: Sequence[str]) -> float:
    """Number of places at which two outputs of one length differ.

    >>> hamming(["NN", "VBZ"], ["NN", "NNS"])
    1.0
    """
    return float(sum(map(str.__ne__, reference, output)))


def edit(reference: Sequence[str], output: Sequence[str]) -> float:
    """Least number of insertions, deletions and substitutions, over the longer length.

    >>> edit("time flies like an arrow".split(), "time flies an arrow".split())
    0.2
    """
    return _edits(reference, output) / max(len(reference), len(output), 1)


# Losses of a tokenised output, given the reference.
LOSSES: dict[str, Loss] = {"hamming": hamming, "edit": edit}


def loss_measure(lists: Sequence[NBest], measure: str = "auto") -> str:
    """Where losses come from: "given" if candidates have them, else a name in `LOSSES`.

    "auto" is "hamming" if every candidate has as many tokens as its reference, otherwise "edit".
    """
    if measure not in ("auto", *LOSSES):
        names = ", ".join(map(repr, ("auto", *LOSSES)))
        raise DataError(f"expected one of {names}, found {measure!r}", field="loss")
    if _column(lists, "loss") is not None:
        return "given"
    if measure == "edit":
        return measure
    for nbest in lists:
        n_tokens = len(_reference(nbest))
        if any(len(candidate.text.split()) != n_tokens for candidate in nbest.candidates):
            if measure == "auto":
                return "edit"
            raise DataError(
                "the Hamming loss needs candidates with as many tokens as the reference",
                field=f"list {nbest.id!r}",
            )
    return "hamming"


def losses(lists: Sequence[NBest], measure: str = "auto") -> list[Vector]:
    """The loss of each candidate of each list: its own or, where none has one, by its reference.

    ``measure`` says how the latter is counted; see `loss_measure`.

    >>> losses([NBest("7", None, "a b", [Candidate("a b"), Candidate("b")])])
    [array([0. , 0.5])]
    """
    chosen = loss_measure(lists, measure)
    given = _column(lists, "loss")
    if given is not None:
        return given
    loss = LOSSES[chosen]
    found = []
    for nbest in lists:
        reference = _reference(nbest)
        values = [loss(reference, candidate.text.split()) for candidate in nbest.candidates]
        found.append(np.array(values, dtype=np.float64))
    return found


def scores(lists: Sequence[NBest]) -> list[Vector] | None:
    """The decoder's score of each candidate of each list; None where candidates have none."""
    return _column(lists, "score")


def read(
    path: PathName,
    *,
    inputs: PathName | None = None,
    references: PathName | None = None,
    loss: str = "loss",
) -> list[NBest]:
    """Read lists, JSON lines or Moses (the first character tells), plain or gzip.

    ``inputs`` and ``references`` are texts with a line for each list, in the same order; ``loss``
    is the name under which losses stand.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.nbest")
    >>> _ = path.write_text("0 ||| a b ||| lm= -2 ||| -3\\n0 ||| b ||| lm= -1 ||| -4\\n")
    >>> (nbest,) = read(path)
    >>> [(c.text, c.score, c.features) for c in nbest.candidates]
    [('a b', -3.0, {'lm': -2.0}), ('b', -4.0, {'lm': -1.0})]
    """
    lines = _Lines(path)
    lists = list(_unique(lines, (_jsonl if lines.are_json else _moses)(lines, loss)))
    if not lists:
        raise DataError("expected n-best lists, found none", path=path)
    if inputs is not None:
        lists = [replace(n, input=text) for n, text in zip(lists, _parallel(inputs, path, lists))]
    if references is not None:
        texts = _parallel(references, path, lists)
        lists = [replace(n, reference=text) for n, text in zip(lists, texts)]
    return lists


def write(
    path: PathName, lists: Iterable[NBest], *, format: str | None = None, loss: str = "loss"
) -> None:
    """Write lists as ``format`` "jsonl" or "moses".

    By default JSON lines if the name ends in ``.jsonl`` or ``.json``, otherwise Moses; a final
    ``.gz`` compresses. Moses has no place for inputs and references, which are files of their own,
    and none for vectors, which are refused. ``loss`` is the name that losses get.
    """
    if format is None:
        format = "jsonl" if format_suffix(path) in (".jsonl", ".json") else "moses"
    if format not in FORMATS:
        raise DataError(f"expected 'jsonl' or 'moses', found {format!r}", field="format")
    with replace_when_done(path) as file:
        for nbest in lists:
            file.writelines(f"{line}\n" for line in FORMATS[format](nbest, loss))


def is_jsonl(path: PathName) -> bool:
    """Whether a file holds JSON lines: its first character is a brace."""
    return _Lines(path).are_json


class _Lines:
    """The lines of a file that are not blank, and errors that name the current one."""

    def __init__(self, path: PathName) -> None:
        self.path, self.number = path, 0
        self._texts = read_lines(path)

    @property
    def are_json(self) -> bool:
        return next((text for text in self._texts if text.strip()), "").lstrip().startswith("{")

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for number, text in enumerate(self._texts, 1):
            if text.strip():
                self.number = number
                yield number, text

    def fail(self, problem: str, field: str | None = None, line: int | None = None) -> NoReturn:
        raise DataError(problem, path=self.path, line=line or self.number, field=field)


def _parallel(path: PathName, of: PathName, lists: Sequence[NBest]) -> list[str]:
    """The lines of a file that has one for each list."""
    texts = read_lines(path)
    if len(texts) != len(lists):
        raise DataError(
            f"expected {len(lists)} lines, one for each list of {of}, found {len(texts)}",
            path=path,
        )
    return texts


def _unique(lines: _Lines, lists: Iterable[tuple[int, NBest]]) -> Iterator[NBest]:
    """The lists, whose ids must differ and whose vectors must be equally long."""
    begun: dict[str, int] = {}
    lengths: dict[str, int] = {}
    for number, nbest in lists:
        if nbest.id in begun:
            lines.fail(
                f"a list with the id {nbest.id!r} begins at line {begun[nbest.id]} already, and "
                "the lines of one must stand together",
                "id",
                number,
            )
        begun[nbest.id] = number
        outputs = [nbest.reference_vector, *(c.vector for c in nbest.candidates)]
        for name, vectors in (("vector", [nbest.vector]), ("candidates.vector", outputs)):
            for vector in vectors:
                if vector is not None and len(vector) != lengths.setdefault(name, len(vector)):
                    lines.fail(
                        f"expected {lengths[name]} numbers, as before, found {len(vector)}",
                        name,
                        number,
                    )
        for name in ("score", "loss", "vector"):
            n_given = sum(getattr(c, name) is not None for c in nbest.candidates)
            if 0 < n_given < len(nbest):
                lines.fail(
                    f"expected one for each of the {len(nbest)} candidates or for none, "
                    f"found {n_given}",
                    f"candidates.{name}",
                    number,
                )
        yield nbest


def _jsonl(lines: _Lines, loss: str) -> Iterator[tuple[int, NBest]]:
    for place, (number, text) in enumerate(lines):
        try:
            record = parse_json(text)
        except ValueError as error:
            lines.fail(f"expected a JSON object ({error})")
        if not isinstance(record, dict):
            lines.fail(f"expected a JSON object, found {_kind(record)}")
        found = record.pop("candidates", None)
        if not isinstance(found, list):
            lines.fail(f"expected a list, found {_kind(found)}", "candidates")
        candidates = [_candidate(lines, k, fields, loss) for k, fields in enumerate(found)]
        name = record.pop("id", place)
        if not isinstance(name, (str, int)) or isinstance(name, bool):
            lines.fail(f"expected a text or an integer, found {_kind(name)}", "id")
        yield (
            number,
            NBest(
                str(name),
                _text(lines, record.pop("input", None), "input"),
                _text(lines, record.pop("reference", None), "reference"),
                candidates,
                _vector(lines, record.pop("vector", None), "vector"),
                _vector(lines, record.pop("reference_vector", None), "reference_vector"),
                record,
            ),
        )


def _candidate(lines: _Lines, k: int, fields: Any, loss: str) -> Candidate:
    place = f"candidates[{k}]"
    if not isinstance(fields, dict):
        lines.fail(f"expected an object with a text, found {_kind(fields)}", place)
    text = _text(lines, fields.pop("text", None), f"{place}.text")
    if text is None:
        lines.fail("expected a text, found none", f"{place}.text")
    features = fields.pop("features", None)
    if features is not None:
        if not isinstance(features, dict):
            lines.fail(f"expected names with numbers, found {_kind(features)}", f"{place}.features")
        features = {
            name: _number(lines, value, f"{place}.features.{name}")
            for name, value in features.items()
        }
    score = fields.pop("score", None)
    value = fields.pop(loss, None)
    if value is None and features:
        value = features.pop(loss, None)
    return Candidate(
        text,
        None if score is None else _number(lines, score, f"{place}.score"),
        None if value is None else _loss(lines, value, f"{place}.{loss}"),
        features,
        _vector(lines, fields.pop("vector", None), f"{place}.vector"),
        fields,
    )


def _moses(lines: _Lines, loss: str) -> Iterator[tuple[int, NBest]]:
    rows = ((number, *_moses_candidate(lines, text, loss)) for number, text in lines)
    for name, group in groupby(rows, key=lambda row: row[1]):
        members = list(group)
        yield members[0][0], NBest(name, None, None, [candidate for _, _, candidate in members])


def _moses_candidate(lines: _Lines, line: str, loss: str) -> tuple[str, Candidate]:
    parts = [part.strip() for part in line.split(SEPARATOR)]
    if len(parts) < 4:
        lines.fail(
            f"expected id ||| text ||| features ||| total, found {len(parts)} "
            f"part{'s' if len(parts) > 1 else ''}"
        )
    name, text, columns, total, *rest = parts
    if not name:
        lines.fail("expected a text, found none", "id")
    features = _moses_features(lines, columns)
    value = features.pop(loss, None)
    return name, Candidate(
        text,
        _parse(lines, total, "total"),
        None if value is None else _loss(lines, value, loss),
        features,
        other={ALIGNMENT: f" {SEPARATOR} ".join(rest)} if rest else {},
    )


def _moses_features(lines: _Lines, columns: str) -> dict[str, float]:
    named: dict[str, list[float]] = {}
    name = ""
    for word in columns.split():
        if word.endswith("="):
            name = word[:-1]
            if not name or name in named:
                lines.fail(f"expected a new name, found {word!r}", "features")
            named[name] = []
        else:
            named.setdefault(name, []).append(_parse(lines, word, name or "features"))
    features: dict[str, float] = {}
    for name, values in named.items():
        if not values:
            lines.fail("expected a number after the name, found none", name)
        if name and len(values) == 1:
            features[name] = values[0]
        else:
            prefix = f"{name}." if name else ""
            features |= {f"{prefix}{k}": value for k, value in enumerate(values, 1)}
    return features


def _json_lines(nbest: NBest, loss: str) -> Iterator[str]:
    record = {
        "id": nbest.id,
        "input": nbest.input,
        "reference": nbest.reference,
        "vector": _numbers(nbest.vector),
        "reference_vector": _numbers(nbest.reference_vector),
    }
    candidates = [
        {
            "text": c.text,
            **_given({"score": c.score, loss: c.loss}),
            **_given({"features": c.features and dict(c.features), "vector": _numbers(c.vector)}),
            **c.other,
        }
        for c in nbest.candidates
    ]
    document = {**_given(record), **nbest.other, "candidates": candidates}
    try:
        yield json.dumps(document, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise DataError("expected finite numbers", field=f"list {nbest.id!r}") from None


def _moses_lines(nbest: NBest, loss: str) -> Iterator[str]:
    place = f"list {nbest.id!r}"
    if not nbest.candidates:
        raise DataError("a list without candidates cannot be written as Moses", field=place)
    for c in nbest.candidates:
        if c.score is None:
            raise DataError("Moses needs a score for each candidate, found none", field=place)
        if c.vector is not None:
            raise DataError("vectors cannot be written as Moses", field=place)
        features = dict(c.features or {}) | ({} if c.loss is None else {loss: c.loss})
        parts = [nbest.id, c.text, _moses_columns(features, place), repr(c.score)]
        if any(mark in part for part in parts for mark in (SEPARATOR, "\n", "\r")):
            raise DataError(
                f"a text with {SEPARATOR!r} or several lines cannot be written as Moses",
                field=place,
            )
        if ALIGNMENT in c.other:
            parts.append(str(c.other[ALIGNMENT]))
        yield f" {SEPARATOR} ".join(parts)


def _moses_columns(features: Mapping[str, float], place: str) -> str:
    """Names and values; ``tm.1``, ``tm.2``, … in a row come under one name, as they were."""
    names, words = list(features), list[str]()
    start, unnamed = 0, True
    while start < len(names):
        name = names[start]
        if not name or any(map(str.isspace, name)):
            raise DataError(f"the name {name!r} cannot be written as Moses", field=place)
        group = name.removesuffix(".1")
        stop = start + 1
        if group != name and group and group not in features:
            while stop < len(names) and names[stop] == f"{group}.{stop - start + 1}":
                stop += 1
        unnamed = unnamed and name == str(start + 1)
        if not unnamed:
            words.append(f"{group if stop > start + 1 else name}=")
        words += [repr(features[member]) for member in names[start:stop]]
        start = stop
    return " ".join(words)


FORMATS = {"jsonl": _json_lines, "moses": _moses_lines}


def _column(lists: Sequence[NBest], name: str) -> list[Vector] | None:
    """An attribute of all candidates, which all or none must have."""
    missing = given = None
    for nbest in lists:
        for candidate in nbest.candidates:
            if getattr(candidate, name) is None:
                missing = nbest.id
            else:
                given = nbest.id
        if missing is not None and given is not None:
            raise DataError(
                f"expected a {name} for every candidate, as in list {given!r}, or for none",
                field=f"list {missing!r}",
            )
    if given is None:
        return None
    return [np.array([getattr(c, name) for c in n.candidates], dtype=np.float64) for n in lists]


def _reference(nbest: NBest) -> list[str]:
    if not nbest.candidates:
        return []
    if nbest.reference is None:
        raise DataError("expected losses or a reference, found none", field=f"list {nbest.id!r}")
    return nbest.reference.split()


def _edits(a: Sequence[str], b: Sequence[str]) -> int:
    """The edit distance, a column of the usual table at a time (Myers 1999).

    Bit i of ``up`` and ``down`` says whether entry i + 1 of the column exceeds entry i by one, or
    falls below it by one; ``right`` and ``left`` say the same from one column to the next.
    """
    if not a or not b:
        return len(a) + len(b)
    places: dict[str, int] = {}
    for place, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << place
    every, last = (1 << len(a)) - 1, 1 << len(a) - 1
    up, down, distance = every, 0, len(a)
    for token in b:
        match = places.get(token, 0)
        diagonal = ((match & up) + up ^ up) | match | down
        right = down | every & ~(diagonal | up)
        left = up & diagonal
        distance += bool(right & last) - bool(left & last)
        right = right << 1 | 1
        up = (left << 1 | ~(diagonal | right)) & every
        down = right & diagonal
    return distance


def _number(lines: _Lines, value: Any, field: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        lines.fail(f"expected a number, found {_kind(value)}", field)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        lines.fail(f"expected a finite number, found {value!r:.20}", field)
    return number


def _loss(lines: _Lines, value: Any, field: str) -> float:
    loss = _number(lines, value, field)
    if loss < 0:
        lines.fail(f"expected a loss of 0 or more, found {loss:g}", field)
    return loss


def _parse(lines: _Lines, word: str, field: str) -> float:
    try:
        number = math.nan if "_" in word else float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        lines.fail(f"expected a finite number, found {word!r}", field)
    return number


def _text(lines: _Lines, value: Any, field: str) -> str | None:
    if value is not None and not isinstance(value, str):
        lines.fail(f"expected a text, found {_kind(value)}", field)
    return value


def _vector(lines: _Lines, value: Any, field: str) -> Vector | None:
    if value is None:
        return None
    if not isinstance(value, list):
        lines.fail(f"expected a list of numbers, found {_kind(value)}", field)
    return np.array([_number(lines, x, f"{field}[{k}]") for k, x in enumerate(value)], np.float64)


def _kind(value: Any) -> str:
    names = {type(None): "none", dict: "an object", list: "a list", str: "a text"}
    return names.get(type(value), "true or false" if isinstance(value, bool) else "a number")


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _numbers(vector: Vector | None) -> list[float] | None:
    return None if vector is None else vector.tolist()
