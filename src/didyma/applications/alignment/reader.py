"""Sentence pairs with an entailment label: SNLI and MultiNLI (JSONL), and SICK in two layouts.

- JSONL: an object a line, of which ``sentence1``, ``sentence2``, ``gold_label`` and ``pairID`` are
  read. Parses are not: sentences are cut into words by `tokenize`. A ``gold_label`` of "-" means
  that annotators did not agree, and reads as no label.
- SICK with a header: tab-separated ``pair_ID``, ``sentence_A``, ``sentence_B`` and
  ``entailment_judgment`` (or ``entailment_label``), among other columns.
- SICK in three columns without a header: premise, hypothesis and 0 (entailment), 1 (neutral) or 2
  (contradiction). That these are the meanings was found by comparison with the other layout, with
  which all pairs agree; there are fewer, as repeated pairs were taken out.

Labels are in lower case, so that a model of one data set can be used on another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from didyma import DataError
from didyma.data.json_lines import parse_json
from didyma.errors import placed
from didyma.files import PathName, read_lines, replace_when_done

NUMBERED = ("entailment", "neutral", "contradiction")
UNDECIDED = "-"
SENTENCES = ("sentence1", "sentence2")
SICK_LABELS = ("entailment_judgment", "entailment_label")

_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class Pair(NamedTuple):
    """A premise and a hypothesis; what the first says about the second, and a name, if known."""

    premise: str
    hypothesis: str
    label: str | None = None
    id: str | None = None


def tokenize(text: str, *, lowercase: bool = True) -> list[str]:
    """Words, which may have apostrophes inside them, and single signs of punctuation.

    >>> tokenize("A man isn't singing, is he?")
    ['a', 'man', "isn't", 'singing', ',', 'is', 'he', '?']
    """
    return _WORD.findall(text.lower() if lowercase else text)


def labelled(pairs: Iterable[Pair]) -> tuple[list[Pair], int]:
    """The pairs that have a label, and how many have none.

    >>> labelled([Pair("it rains", "it is wet", "entailment"), Pair("it rains", "it is late")])[1]
    1
    """
    every = list(pairs)
    with_label = [pair for pair in every if pair.label is not None]
    return with_label, len(every) - len(with_label)


def read(path: PathName) -> list[Pair]:
    """All pairs of a file, plain or gzip, whose layout its first line tells; see above.

    Pairs without a label have the label None. A sentence may be empty.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pairs.jsonl")
    >>> _ = path.write_text('{"sentence1": "It rains.", "sentence2": "It is wet."}\\n')
    >>> read(path)[0].hypothesis
    'It is wet.'
    """
    lines = _lines(path)
    if lines[0].lstrip().startswith("{"):
        return list(_read_objects(path, lines))
    header = [name.strip().lower() for name in lines[0].split("\t")]
    if "sentence_a" in header:
        return list(_read_table(path, lines, header))
    return list(_read_columns(path, lines))


def write_predictions(
    pairs: Sequence[Pair],
    predicted: Sequence[str],
    probabilities: Sequence[Mapping[str, float]],
    path: PathName,
) -> None:
    """Write an object a line: the pair as in SNLI, ``prediction``, and ``probabilities`` by label.

    `read` takes such a file again.
    """
    with replace_when_done(path) as file:
        for pair, label, shares in zip(pairs, predicted, probabilities, strict=True):
            record = {
                **({} if pair.id is None else {"pairID": pair.id}),
                "sentence1": pair.premise,
                "sentence2": pair.hypothesis,
                **({} if pair.label is None else {"gold_label": pair.label}),
                "prediction": label,
                "probabilities": dict(shares),
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _lines(path: PathName) -> list[str]:
    lines = read_lines(path)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise DataError("expected pairs of sentences, found none", path=path)
    return lines


def _read_objects(path: PathName, lines: Sequence[str]) -> Iterator[Pair]:
    for number, line in enumerate(lines, start=1):
        with placed(path, number):
            try:
                record = parse_json(line)
            except ValueError as error:
                raise DataError(f"expected a JSON object ({error})") from None
            if not isinstance(record, dict):
                raise DataError("expected a JSON object")
            for field in (*SENTENCES, "gold_label", "pairID"):
                value = record.setdefault(field, None)
                if not isinstance(value, str) and (value is not None or field in SENTENCES):
                    shown = "none" if value is None else json.dumps(value)[:40]
                    raise DataError(f"expected a text, found {shown}", field=field)
        label = _label(record["gold_label"])
        yield Pair(record["sentence1"], record["sentence2"], label, record["pairID"])


def _read_table(path: PathName, lines: Sequence[str], header: Sequence[str]) -> Iterator[Pair]:
    if "sentence_b" not in header:
        problem = "expected a column sentence_B beside sentence_A"
        raise DataError(problem, path=path, line=1, field="header")
    judged = next((name for name in SICK_LABELS if name in header), None)
    for number, line in enumerate(lines[1:], start=2):
        with placed(path, number):
            row = dict(zip(header, _fields(line, len(header))))
        label = None if judged is None else _label(row[judged])
        yield Pair(row["sentence_a"], row["sentence_b"], label, row.get("pair_id"))


def _read_columns(path: PathName, lines: Sequence[str]) -> Iterator[Pair]:
    for number, line in enumerate(lines, start=1):
        with placed(path, number):
            premise, hypothesis, label = _fields(line, 3)
            if label not in ("0", "1", "2"):
                raise DataError(f"expected 0, 1 or 2, found {label!r}", field="label")
        yield Pair(premise, hypothesis, NUMBERED[int(label)])


def _fields(line: str, count: int) -> list[str]:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) != count:
        layout = (
            "" if count != 3 else ": premise, hypothesis and label (or JSONL, or a SICK header)"
        )
        raise DataError(f"expected {count} tab-separated fields{layout}, found {len(fields)}")
    return fields


def _label(text: str | None) -> str | None:
    label = (text or "").strip().lower()
    return None if label in ("", UNDECIDED) else label
