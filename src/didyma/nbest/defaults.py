"""Values of parameters that are tried by default, and how to go on where the best is the last."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from didyma.errors import warn

logger = logging.getLogger(__name__)

# Parameters that are chosen on dev lists unless they are given.
GRIDS: dict[str, dict[str, list[Any]]] = {"svm": {"C": [100.0, 1000.0, 10000.0]}}
GROWTH, LEAST_C, MOST_C = 10.0, 1e-2, 1e7
MOST_ROUNDS = 8000
LEAST_GAIN = 0.005  # of the loss, by a step that is to be followed by another: each takes longer


def next_default(
    model: Any, given: Mapping[str, Any], tuning: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """What to try after the best model so far, if that alone is best and at the end.

    C of an SVM goes on in both directions while a step gains half a per cent of the loss, the
    rounds of boosting are doubled; the log says so.
    """
    name, value = "", None
    if "C" not in given and tuning and "C" in tuning[0]:
        name, tried = "C", [record["C"] for record in tuning]
        ends = {max(tried): model.C * GROWTH, min(tried): model.C / GROWTH}
        losses = sorted(record["loss"] for record in tuning)
        value = ends.get(model.C) if losses[0] < losses[1] else None
        value = value if value is not None and LEAST_C <= value <= MOST_C else None
        if value is not None and losses[0] > (1.0 - LEAST_GAIN) * losses[1]:
            logger.info(
                "C=%g is the best on the held-out lists, at the end of what was tried, by so "
                "little that no other is tried",
                model.C,
            )
            value = None
    elif "n_rounds" not in given and hasattr(model, "n_rounds_"):
        name = "n_rounds"
        value = 2 * model.n_rounds if model.n_rounds_ == model.n_rounds < MOST_ROUNDS else None
    if value is None:
        return {}
    logger.info(
        "%s=%g is the best on the held-out lists, at the end of what was tried: %g is tried too",
        *(name, getattr(model, name), value),
    )
    return {name: [value]}


def warn_of_ends(model: Any, given: Mapping[str, Any]) -> None:
    """Say where the best of three given numbers or more is the least or the largest of them."""
    for name, values in given.items():
        several = isinstance(values, (list, tuple)) and len(values) > 2
        if not several or not all(isinstance(value, (int, float)) for value in values):
            continue
        best = getattr(model, name)
        if best in (min(values), max(values)):
            end = "least" if best == min(values) else "largest"
            warn(
                f"{name}={best:g} is the best on the held-out lists, and the {end} of those given",
                UserWarning,
            )
