"""N-best lists: for each input the outputs that a decoder proposes, to choose a better one from.

They are `Lists` of `Output`, whose queries are `Input` and whose scores are the decoder's. Files
are JSON lines (`json_lines`) or those of Moses (`moses`).
"""

from __future__ import annotations

from dataclasses import replace

from didyma.data.lists import Lists
from didyma.errors import DataError, check_choice
from didyma.files import PathName, format_suffix, read_lines, replace_when_done
from didyma.nbest.formats import json_lines, moses
from didyma.nbest.formats.collector import LOSS, collect
from didyma.nbest.formats.outputs import Input, Output, inputs_of, of_outputs, outputs_of

__all__ = ["Input", "Output", "inputs_of", "is_jsonl", "of_outputs", "outputs_of", "read", "write"]

FORMATS = {"jsonl": json_lines, "moses": moses}


def read(
    path: PathName,
    *,
    inputs: PathName | None = None,
    references: PathName | None = None,
    loss: str = LOSS,
) -> Lists:
    """Read lists, JSON lines or Moses (the first character tells), plain or gzip.

    ``inputs`` and ``references`` are texts with a line for each list, in the same order; ``loss``
    is the name under which losses stand, among the fields of a candidate or its features.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.nbest")
    >>> _ = path.write_text("0 ||| a b ||| lm= -2 ||| -3\\n0 ||| b ||| lm= -1 ||| -4\\n")
    >>> lists = read(path)
    >>> [(output.text, output.features) for output in lists.items], lists.scores.tolist()
    ([('a b', {'lm': -2.0}), ('b', {'lm': -1.0})], [-3.0, -4.0])
    """
    lines = [(number, line) for number, line in enumerate(read_lines(path), 1) if line.strip()]
    format = json_lines if lines and _is_json(lines[0][1]) else moses
    lists = collect(path, format.records_of(path, lines, loss), loss)
    queries = inputs_of(lists)
    if inputs is not None:
        texts = _parallel(inputs, path, len(queries))
        queries = [replace(query, text=text) for query, text in zip(queries, texts)]
    if references is not None:
        texts = _parallel(references, path, len(queries))
        queries = [replace(query, reference=text) for query, text in zip(queries, texts)]
    return replace(lists, queries=queries)


def write(lists: Lists, path: PathName, *, format: str | None = None, loss: str = LOSS) -> None:
    """Write lists as ``format`` "jsonl" or "moses".

    By default JSON lines if the name ends in ``.jsonl`` or ``.json``, otherwise Moses; a final
    ``.gz`` compresses. Moses has no place for inputs and references, which are files of their own,
    and none for vectors, which are refused. ``loss`` is the name that losses get.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "lists.nbest")
    >>> write(of_outputs(["time flies"], [["NN NNS", "NN VBZ"]], scores=[[-3, -4]]), path)
    >>> path.read_text()
    '0 ||| NN NNS |||  ||| -3.0\\n0 ||| NN VBZ |||  ||| -4.0\\n'
    """
    if format is None:
        format = "jsonl" if format_suffix(path) in (".jsonl", ".json") else "moses"
    check_choice(format, FORMATS, "format")
    with replace_when_done(path) as file:
        file.writelines(f"{line}\n" for line in FORMATS[format].lines_of(lists, loss))


def is_jsonl(path: PathName) -> bool:
    """Whether a file holds JSON lines: its first character is a brace."""
    return _is_json(next((line for line in read_lines(path) if line.strip()), ""))


def _is_json(line: str) -> bool:
    return line.lstrip().startswith("{")


def _parallel(path: PathName, of: PathName, n_lists: int) -> list[str]:
    """The lines of a file that has one for each list."""
    texts = read_lines(path)
    if len(texts) != n_lists:
        raise DataError(
            f"expected {n_lists} lines, one for each list of {of}, found {len(texts)}", path=path
        )
    return texts
