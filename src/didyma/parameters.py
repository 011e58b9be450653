"""What parameters may be: one rule for each name, since a name means the same everywhere.

Estimators refuse other values when they are fitted, before they look at the data. What depends on
the data or on other parameters, and names of losses, maps and the like, is read where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from didyma.errors import DataError
from didyma.values import GREATEST_SEED, is_number, is_whole

__all__ = ["RULES", "Lost", "Rule", "check_parameter"]


class Lost:
    """What stands for a parameter that a model file could not keep."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}, which the model file does not hold>"


class Rule(NamedTuple):
    """Which values a parameter may have: in words, and as a test."""

    words: str
    holds: Callable[[Any], bool]

    def check(self, value: Any, field: str) -> None:
        """Refuse another value."""
        if not self.holds(value):
            raise DataError(f"expected {self.words}, found {value!r:.40}", field=field)


def _or(value: Any, rule: Rule) -> Rule:
    words, holds = rule
    kind = type(value)
    return Rule(
        f"{value!r} or {words}",
        lambda found: (isinstance(found, kind) and found == value) or holds(found),
    )


def _whole(least: int) -> Rule:
    return Rule(f"a whole number from {least} on", lambda value: is_whole(value) and value >= least)


def _number(words: str, holds: Callable[[float], bool]) -> Rule:
    return Rule(f"a number {words}", lambda value: is_number(value) and holds(float(value)))


COUNT = _whole(1)
POSITIVE = _number("above 0", lambda value: 0.0 < value < math.inf)
FLAG = Rule("True or False", lambda value: isinstance(value, bool | np.bool_))
SEED = Rule(
    "None, a whole number from 0 to 2^32 - 1 or a RandomState",
    lambda value: (
        value is None
        or value is np.random
        or isinstance(value, np.random.RandomState)
        or (is_whole(value) and 0 <= value <= GREATEST_SEED)
    ),
)
THREADS = Rule(
    "None, a number of threads, or a negative one for all cores",
    lambda value: value is None or (is_whole(value) and value != 0),
)
COLUMNS = Rule(
    "a list of columns",
    lambda value: isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping),
)

_NAMES: dict[Rule, str] = {
    _whole(0): "embed_budget longest_suffix n_rounds ties",
    COUNT: (
        "batch_size character_size degree dimension epochs filters hidden layers length max_iter "
        "max_length min_count mlp n_components n_restarts n_sweeps n_thresholds overlap rank rare "
        "tag_size width word_size"
    ),
    _or(None, COUNT): "patience window",
    _or(None, _whole(2)): "n_candidates",
    _number("from 0 on", lambda value: value >= 0.0): "time_budget tol",
    _number("from 0 on, and finite", lambda value: 0.0 <= value < math.inf): (
        "margin roughness step weight_decay"
    ),
    _number("from 0 to 1", lambda value: 0.0 <= value <= 1.0): "lam",
    _number("above 0, up to 1", lambda value: 0.0 < value <= 1.0): "tau",
    _number("above 1", lambda value: 1.0 < value < math.inf): "a",
    _number("from 0 to below 1", lambda value: 0.0 <= value < 1.0): (
        "dropout threshold word_dropout"
    ),
    POSITIVE: "b decay learning_rate prior pseudocount r smoothing",
    _or(None, POSITIVE): "ridge",
    _or("balanced", POSITIVE): "cost_ratio",
    _or("scale", POSITIVE): "gamma",
    COLUMNS: "categorical decreasing increasing",
    FLAG: (
        "binary both_strands characters decoder latent lowercase projective quick similarity "
        "single_root sparse_output tune_vectors warm_start"
    ),
    SEED: "random_state",
    THREADS: "n_jobs",
    _or(None, _number("that is finite", math.isfinite)): "weight",
    _or(None, Rule("a function", callable)): "callback on_encoded",
}
RULES = {name: rule for rule, names in _NAMES.items() for name in names.split()}


def check_parameter(name: str, value: Any) -> None:
    """Refuse a value that a parameter of this name cannot have.

    >>> check_parameter("max_iter", 0)
    Traceback (most recent call last):
    didyma.errors.DataError: max_iter: expected a whole number from 1 on, found 0
    """
    if isinstance(value, Lost):
        raise DataError(
            f"was {value.what}, which the model file does not hold: set it, set_params({name}=…)",
            field=name,
        )
    if (rule := RULES.get(name)) is not None:
        rule.check(value, name)
