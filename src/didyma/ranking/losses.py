"""Ranking losses as values: ``AveragePrecision()``, ``NDCG(10)``, or steps of your own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, isfinite
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.values import is_whole

__all__ = [
    "NDCG",
    "AveragePrecision",
    "ItemwiseLoss",
    "PrecisionAt",
    "ReciprocalRank",
    "RocArea",
    "StepLoss",
    "parse_loss",
]

NO_CUTOFF = 2**62
LARGEST_CUTOFF = 2**31 - 1  # that of measures
LARGEST_GAIN = 1e100  # so that no sum of gains overflows
MOST_STATES = 20_000_000  # of a user's loss: 8 bytes and some 150 ns for each function
StepFunction: TypeAlias = Callable[[int, int, int, int], float]


def check_cutoff(k: object) -> None:
    """Refuse what is no rank behind which to stop.

    >>> check_cutoff(0)
    Traceback (most recent call last):
    didyma.errors.DataError: k: expected a cut-off from 1 to 2147483647, found 0
    """
    if not is_whole(k) or not 1 <= k <= LARGEST_CUTOFF:
        problem = f"expected a cut-off from 1 to {LARGEST_CUTOFF}, found {k!r:.40}"
        raise DataError(problem, field="k")


@dataclass(frozen=True)
class ItemwiseLoss:
    """A loss that adds up over the items of a ranking; labels of at least ``rel`` are relevant."""

    name: ClassVar[str]
    measure_name: ClassVar[str] = "AP"
    independent: ClassVar[bool]  # negatives may choose their places one by one (pairwise map)

    rel: float = 1.0

    def __post_init__(self) -> None:
        if not isfinite(self.rel):
            raise DataError(f"expected a finite grade, found {self.rel}", field="rel")
        k, default = getattr(self, "k", None), getattr(type(self), "k", None)
        if k is not default:
            check_cutoff(k)

    @property
    def cutoff(self) -> int:
        """Rank behind which the loss does not look."""
        k: int | None = getattr(self, "k", None)
        return NO_CUTOFF if k is None else k

    @property
    def measure(self) -> str:
        """The measure that the loss stands for, by its ir-measures name.

        >>> parse_loss("ap(rel=2)").measure, parse_loss("precision@5").measure
        ('AP(rel=2)', 'P@5')
        """
        rel = f"(rel={ceil(self.rel)})" if self.rel > 1.0 else ""
        return self.measure_name + rel + self._cutoff()

    def _cutoff(self) -> str:
        return "" if self.cutoff == NO_CUTOFF else f"@{self.cutoff}"

    def described(self, counts: NDArray[np.int64]) -> Any:
        """The loss as the core knows it, for queries of so many positives and negatives."""
        from didyma._core.ranking import loss

        return loss(self.name, self.cutoff)

    def __str__(self) -> str:
        options = ",".join(f"{name}={value}" for name, value in self._options())
        return f"{self.name}{self._cutoff()}" + (f"({options})" if options else "")

    def _options(self) -> Iterator[tuple[str, str]]:
        """What the text says in brackets: all that differs from the defaults."""
        if self.rel != 1.0:
            yield "rel", repr(float(self.rel)).removesuffix(".0")


@dataclass(frozen=True)
class AveragePrecision(ItemwiseLoss):
    """1 − AP = (1/P) Σ_i n_i / (i + n_i), with n_i negatives above the i-th positive."""

    name = "ap"
    independent = True


@dataclass(frozen=True)
class ReciprocalRank(ItemwiseLoss):
    """1 − 1/rank of the first positive."""

    name = "rr"
    measure_name = "RR"
    independent = True


@dataclass(frozen=True)
class RocArea(ItemwiseLoss):
    """1 − area under the ROC curve: the share of pairs in the wrong order."""

    name = "roc"
    measure_name = "ROCArea"
    independent = True


@dataclass(frozen=True)
class PrecisionAt(ItemwiseLoss):
    """min(1, P/k) − precision@k."""

    name = "precision"
    measure_name = "P"
    independent = False

    k: int = 10


@dataclass(frozen=True)
class NDCG(ItemwiseLoss):
    """1 − NDCG@k with gains 2^y − 1 (``gain="linear"``: y) and discounts 1/log2(1 + rank).

    Grades are kept; ``rel`` plays no part.
    """

    name = "ndcg"

    k: int | None = None
    gain: str = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gain not in ("exponential", "linear"):
            raise DataError(
                f"expected 'exponential' or 'linear', found {self.gain!r}", field="gain"
            )

    @property
    def measure(self) -> str:
        """NDCG with the gains of the loss.

        >>> NDCG(k=10).measure, NDCG(gain="linear").measure
        ("nDCG(dcg='exp-log2')@10", 'nDCG')
        """
        gain = "(dcg='exp-log2')" if self.gain == "exponential" else ""
        return f"nDCG{gain}{self._cutoff()}"

    @property
    def independent(self) -> bool:  # type: ignore[override]
        """A cut-off couples the choices of negatives (maths: their order may break)."""
        return self.k is None

    def gains(self, grades: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gain of each grade."""
        with np.errstate(over="ignore"):
            gains = np.exp2(grades) - 1.0 if self.gain == "exponential" else grades
        if not np.all(gains <= LARGEST_GAIN):
            raise DataError(
                f"a grade of {np.max(grades):g} has a gain beyond {LARGEST_GAIN:g}", field="y"
            )
        return gains

    def _options(self) -> Iterator[tuple[str, str]]:
        yield from super()._options()
        if self.gain != "exponential":
            yield "gain", self.gain


@dataclass(frozen=True)
class StepLoss(ItemwiseLoss):
    """A loss of your own, as Python functions of the state (i, j, P, N).

    ``positive`` is what a positive costs when i positives and j negatives stand above it,
    ``negative`` likewise. The loss is their sum over the first ``k`` ranks (None: all), less that
    of a perfect ranking. Both are tabulated: called for each state, once for queries of each size.
    The loss has no text, so a model file does not keep it.

    >>> rank_of_last = StepLoss(positive=lambda i, j, P, N: (j / N if i == P - 1 else 0.0))
    """

    name = "steps"
    independent = False

    positive: StepFunction | None = None
    negative: StepFunction | None = None
    k: int | None = None

    @property
    def measure(self) -> str:
        """Average precision: a loss of one's own has no name among measures."""
        return AveragePrecision(self.rel).measure

    def described(self, counts: NDArray[np.int64]) -> Any:
        """Tables of both functions, for each number of positives and negatives that occurs."""
        from didyma._core.ranking import tabulated_loss

        sizes = np.unique(counts, axis=0)
        k, (P, N) = self.cutoff, sizes.T
        n_states = float(np.minimum(P + 1.0, k) @ np.minimum(N + 1.0, k))
        if n_states > MOST_STATES:
            raise DataError(
                f"a loss of your own has {n_states:.0e} states (i, j) for queries of "
                f"{len(sizes)} sizes, more than {MOST_STATES:.0e}; give it a cut-off k, or learn "
                "from fewer results per query",
                field="loss",
            )
        # Before a positive all N negatives may stand, but P − 1 others at most.
        positive = _tabulate(self.positive, "positive", sizes, sizes + np.array([0, 1]), k)
        negative = _tabulate(self.negative, "negative", sizes, sizes + np.array([1, 0]), k)
        return tabulated_loss(sizes, *positive, *negative, k)


def _tabulate(
    step: StepFunction | None,
    name: str,
    sizes: NDArray[np.int64],
    shapes: NDArray[np.int64],
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where the table of each size begins, and the values of all tables up to the cut-off."""
    shapes = np.minimum(shapes, k)
    starts = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))]).astype(np.int64)
    if step is None:
        return starts, np.empty(0)
    steps = (
        step(i, j, P, N) if i + j < k else 0.0
        for (P, N), (rows, columns) in zip(sizes.tolist(), shapes.tolist())
        for i in range(rows)
        for j in range(columns)
    )
    values = np.fromiter(steps, float, starts[-1])
    if not np.isfinite(values).all():
        raise DataError("expected finite steps, found NaN or infinity", field=name)
    return starts, values


_LOSSES: dict[str, type[ItemwiseLoss]] = {
    "ap": AveragePrecision,
    "map": AveragePrecision,
    "rr": ReciprocalRank,
    "mrr": ReciprocalRank,
    "roc": RocArea,
    "auc": RocArea,
    "ndcg": NDCG,
    "precision": PrecisionAt,
    "p": PrecisionAt,
}
_PATTERN = re.compile(r"([a-z]+)(?:@(\d{1,99}))?(?:\(([^()]*)\))?")
_OPTION = re.compile(r"\s*(rel|gain)\s*=\s*([\w.+-]+)\s*")


def parse_loss(loss: str | ItemwiseLoss) -> ItemwiseLoss:
    """The loss that a name stands for: the inverse of ``str``.

    >>> parse_loss("ndcg@10")
    NDCG(rel=1.0, k=10, gain='exponential')
    >>> str(parse_loss("NDCG@5(gain=linear, rel=2)"))
    'ndcg@5(rel=2,gain=linear)'
    """
    if isinstance(loss, ItemwiseLoss):
        return loss
    match = _PATTERN.fullmatch(str(loss).strip().lower())
    cls = _LOSSES.get(match[1]) if match else None
    if match is None or cls is None:
        raise DataError(
            f"unknown loss {loss!r}; expected one of 'ap', 'rr', 'roc', 'ndcg', 'ndcg@10', "
            "'precision@5', optionally with '(rel=2)'",
            field="loss",
        )
    options: dict[str, Any] = {}
    if match[2]:
        if not hasattr(cls, "k"):
            raise DataError(f"loss {match[1]!r} has no cut-off, found {loss!r}", field="loss")
        options["k"] = int(match[2])
    for text in match[3].split(",") if match[3] is not None else ():
        option = _OPTION.fullmatch(text)
        if option is None or option[1] in options:
            raise DataError(
                f"expected options as in 'ap(rel=2)' or 'ndcg(rel=2,gain=linear)', found {loss!r}",
                field="loss",
            )
        name, value = option.groups()
        if name == "gain" and cls is not NDCG:
            raise DataError(f"loss {match[1]!r} has no gain, found {loss!r}", field="loss")
        try:
            options[name] = float(value) if name == "rel" else value
        except ValueError:
            raise DataError(f"expected a number for rel, found {loss!r}", field="loss") from None
    try:
        return cls(**options)
    except DataError as error:
        raise DataError(f"{error.problem} in {loss!r}", field="loss") from None
