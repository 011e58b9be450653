"""Measures are values: those of ir_measures, by its names, and the area under the ROC curve.

>>> parse("nDCG@10"), parse("map"), parse("AP(rel=2)"), parse("ROCArea")
(nDCG@10, AP, AP(rel=2), ROCArea)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import ir_measures
from ir_measures import Measure
from ir_measures.measures import ParamInfo, registry

from didyma.errors import DataError

__all__ = ["Measure", "ROCArea", "parse", "parse_all"]


class _ROCArea(Measure):
    """Share of pairs of a relevant and another document that stand in the right order.

    A pair with equal scores counts half. Without a relevant document the value is 0; where all
    are relevant it is 1.

    >>> from didyma.metrics import evaluate
    >>> evaluate([3.0, 2.0, 1.0], [0, 1, 0], measures="ROCArea").mean("ROCArea")
    0.5
    """

    __name__ = "ROCArea"
    NAME = __name__
    PRETTY_NAME = "Area under the ROC curve"
    SHORT_DESC = "The share of (relevant, other) pairs in the right order."
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "rel": ParamInfo(dtype=int, default=1, desc="minimum relevance to be considered relevant")
    }


ROCArea = _ROCArea()
GREATEST = 2**31 - 1  # cutoff, level or gain: what trec_eval and the core can count to

# Everything is looked up in lower case; what ir_measures does not name itself is named here.
ALIASES = {
    "auc": ROCArea,
    "hit": ir_measures.Success,
    "hits": ir_measures.Success,
    "map_cut": ir_measures.AP,
    "ndcg_cut": ir_measures.nDCG,
    "prec": ir_measures.P,
    "recip_rank": ir_measures.RR,
    "roc": ROCArea,
    "roc_area": ROCArea,
    "rocarea": ROCArea,
}
NAMES: dict[str, Any] = {name.lower(): measure for name, measure in registry.items()} | ALIASES

_FORM = re.compile(r"(?P<name>\w+?)\s*(?:\((?P<params>.*)\))?\s*(?:[@_]\s*(?P<at>\d+(?:\.\d+)?))?")
_SEPARATOR = re.compile(r"[,\s]+(?![^(]*\))")


def parse(measure: str | Measure) -> Measure:
    """The measure that a name means, whatever its case; a measure is returned as it is.

    Accepted are the names of ir_measures, what users type for them (``map``, ``mrr``, ``ndcg@10``)
    and those of trec_eval (``ndcg_cut_10``). Relevance levels and cutoffs start at 1.

    >>> parse("ndcg_cut_10"), parse("mrr")
    (nDCG@10, RR)
    """
    if isinstance(measure, Measure):
        return _checked(measure, str(measure))
    if not isinstance(measure, str):
        raise _unreadable(measure)
    match = _FORM.fullmatch(measure.strip())
    if match is None:
        raise _unreadable(measure)
    base = NAMES.get(match["name"].lower())
    if base is None:
        raise DataError(f"unknown measure {measure!r}; {_supported()}")
    cutoff = f"{base.AT_PARAM}={match['at']}" if match["at"] else ""
    params = _read_params(measure, match["params"] or "") | _read_params(measure, cutoff)
    for name, value in params.items():
        info = base.SUPPORTED_PARAMS.get(name)
        if info is not None and info.dtype is float and type(value) is int:
            params[name] = float(value)
    return _checked(base(**params), measure)


def parse_all(measures: str | Measure | Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Several measures, each once: a list, or one text with commas or spaces between them.

    >>> parse_all("MAP, AP(rel=2) p@5 AP")
    (AP, AP(rel=2), P@5)
    """
    if isinstance(measures, str):
        measures = [name for name in _SEPARATOR.split(measures.strip()) if name]
    elif isinstance(measures, Measure):
        measures = [measures]
    parsed = tuple(dict.fromkeys(parse(measure) for measure in measures))
    if not parsed:
        raise DataError(f"expected at least one measure; {_supported()}")
    return parsed


def level_of(measure: Measure) -> int | None:
    """The grade from which a document is relevant to a measure, None where it knows none.

    >>> level_of(parse("AP(rel=2)")), level_of(parse("P@5")), level_of(parse("nDCG"))
    (2, 1, None)
    """
    level = measure["rel"] if "rel" in measure.SUPPORTED_PARAMS else None
    return level if isinstance(level, int) else None


def _read_params(measure: str, text: str) -> dict[str, Any]:
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
            raise _unreadable(measure)
        return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError):
        raise _unreadable(measure) from None


def _checked(measure: Measure, text: str) -> Measure:
    supported = measure.SUPPORTED_PARAMS
    for name, value in measure.params.items():
        shown = f"{value!r:.40}"
        if name not in supported:
            names = ", ".join(supported) or "none"
            raise DataError(f"measure {text!r} has no parameter {name!r}; it has: {names}")
        if not supported[name].validate(value):
            kind = supported[name].dtype.__name__
            raise DataError(f"measure {text!r}: {shown} is no {kind} that {name!r} can take")
        if name in ("cutoff", "rel") and value < 1:
            raise DataError(f"measure {text!r}: expected {name!r} to be at least 1")
        if isinstance(value, int) and value > GREATEST:
            raise DataError(f"measure {text!r}: expected {name!r} to be at most {GREATEST}")
        if name == "gains" and not all(_is_gain(gain) for gain in value.values()):
            raise DataError(f"measure {text!r}: expected gains from 0 to {GREATEST}")
    for name, info in supported.items():
        if info.required and name not in measure.params:
            example = f"{measure.NAME}@10" if name == "cutoff" else f"{measure.NAME}({name}=…)"
            raise DataError(f"measure {text!r} needs a {name}, as in {example}")
    if problem := _lacks(measure):
        raise DataError(f"measure {text!r} cannot be computed {problem}")
    return measure


def is_native(measure: Measure) -> bool:
    """Whether a kernel of this library computes the measure; ir_measures computes all others."""
    from didyma.metrics.per_query import FORMULAS  # which imports this module

    params = measure.params
    return (
        measure.NAME in FORMULAS
        and not params.get("judged_only")
        and not (params.get("gains") and params.get("dcg") == "exp-log2")
    )


@cache
def _lacks(measure: Measure) -> str:
    """What is missing for a measure to be computed; nothing of most."""
    if is_native(measure) or ir_measures.DefaultPipeline.supports(measure):
        return ""
    needed = [each.NAME for each in ir_measures.DefaultPipeline.providers if each.supports(measure)]
    packages = " or ".join(needed)
    return f"without the package {packages}" if needed else "with these parameters"


def _is_gain(gain: object) -> bool:
    return isinstance(gain, (int, float)) and 0 <= gain <= GREATEST


def _unreadable(measure: object) -> DataError:
    return DataError(
        f"cannot read measure {measure!r:.60}; expected a form as nDCG@10 or AP(rel=2)@100"
    )


def _supported() -> str:
    from didyma.metrics.per_query import FORMULAS

    available = [each for each in ir_measures.DefaultPipeline.providers if each.is_available()]
    found = {measure.NAME for each in available for measure in each.SUPPORTED_MEASURES}
    names = sorted(found | FORMULAS.keys(), key=str.lower)
    return f"there are {', '.join(names)} (as AP, nDCG@10, P(rel=2)@5)"
