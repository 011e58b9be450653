"""How far judges agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError, check_choice
from didyma.judgements.merging import by_pair, latest, lower_median
from didyma.judgements.store import Judgement
from didyma.values import decimal

FEWEST = 20  # pairs judged by others that a judge's weight is read off
LEVELS = ("nominal", "ordinal")


def cohen_kappa(a: ArrayLike, b: ArrayLike, level: str = "nominal") -> float:
    """Cohen's kappa of two judges: 1 − Σ w_ij o_ij / Σ w_ij e_ij.

    o are the shares of pairs that have label i from one and j from the other, e what chance would
    make of their margins. Weights are 1 for different labels (nominal), or the squared distance of
    their places among all labels in use (ordinal). It is 1 where both always give one same label.

    >>> round(cohen_kappa([1, 0, 1, 0], [1, 0, 0, 0]), 2)
    0.5
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise DataError("expected as many labels from either judge, one or more")
    check_choice(level, LEVELS, "level")
    values, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    k, n = len(values), len(first)
    observed = np.zeros((k, k))
    np.add.at(observed, (places[:n], places[n:]), 1 / n)
    chance = np.outer(observed.sum(1), observed.sum(0))
    distance = np.subtract.outer(np.arange(k), np.arange(k)) ** 2
    weights = distance if level == "ordinal" else distance > 0
    expected = float((weights * chance).sum())
    return 1.0 if expected == 0 else 1 - float((weights * observed).sum()) / expected


def fleiss_kappa(counts: ArrayLike) -> float:
    """Fleiss' kappa of an array with the number of judges by item and label.

    With m judges for each item, P_i = (Σ_j n_ij² − m) / (m (m − 1)) and p_j the share of label j,
    κ = (mean P − Σ p_j²) / (1 − Σ p_j²).

    >>> round(fleiss_kappa([[3, 0], [0, 3], [2, 1]]), 3)
    0.55
    """
    table = np.asarray(counts, np.float64)
    judges = table.sum(axis=1) if table.ndim == 2 and len(table) else np.zeros(1)
    m = float(judges[0])
    if m < 2 or (judges != m).any():
        raise DataError("expected the same number of judges, two or more, for each item")
    agreed = ((table**2).sum(axis=1) - m) / (m * (m - 1))
    chance = float(((table.sum(axis=0) / table.sum()) ** 2).sum())
    return 1.0 if chance == 1 else (float(agreed.mean()) - chance) / (1 - chance)


def krippendorff_alpha(labels: ArrayLike, level: str = "nominal") -> float:
    """Krippendorff's alpha of an array of labels by item and judge, with NaN where there is none.

    α = 1 − D_o / D_e, the mean squared difference δ² of two labels of the same item over that of
    any two labels. Nominal: δ² is 1 for different labels. Ordinal: with n_g labels g,
    δ_ck = Σ_{g=c..k} n_g − (n_c + n_k) / 2. Items with one label do not count. NaN if none has two.

    >>> round(krippendorff_alpha([[0, 0], [1, 1], [0, 1], [1, np.nan]]), 3)
    0.444
    """
    table = np.asarray(labels, np.float64)
    check_choice(level, LEVELS, "level")
    if table.ndim != 2:
        raise DataError("expected an array by item and judge", field="labels")
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    if not len(table):
        return math.nan
    values = np.unique(table[~np.isnan(table)])
    counts = (table[:, :, None] == values).sum(axis=1).astype(np.float64)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    observed = (pairs / (counts.sum(axis=1) - 1)[:, None, None]).sum(axis=0)
    margins = observed.sum(axis=0)
    squared = _squared_differences(margins, level)
    chance = (np.outer(margins, margins) - np.diag(margins)) / (margins.sum() - 1)
    expected = float((squared * chance).sum())
    return 1.0 if expected == 0 else 1 - float((squared * observed).sum()) / expected


def _squared_differences(margins: NDArray[np.float64], level: str) -> NDArray[np.float64]:
    k = len(margins)
    if level == "nominal":
        return 1.0 - np.eye(k)
    middle = np.cumsum(margins) - margins / 2  # so that differences are sums between two labels
    return np.asarray(np.subtract.outer(middle, middle) ** 2)


class JudgeAgreement(NamedTuple):
    """A judge against the lower median of all others, on what they have judged as well.

    ``weight`` is the ordinal kappa, at least 0, or 1 if fewer than twenty pairs are common.
    """

    who: str
    judged: int
    common: int
    kappa: float | None
    ordinal_kappa: float | None
    weight: float


@dataclass(frozen=True)
class Agreement:
    """What `agreement` tells; figures are None where nothing was judged twice.

    >>> said = [Judgement("q", d, float(d == "x"), who=who) for who in "ab" for d in "xy"]
    >>> print(agreement(said).text())
    2 pairs, 2 of them by two judges or more
    Krippendorff's alpha  1.0000 nominal, 1.0000 ordinal
    Fleiss' kappa         1.0000 on 2 pairs by 2 judges each
    a                     2 judged, 2 with others: kappa 1.0000, ordinal 1.0000, weight 1.00
    b                     2 judged, 2 with others: kappa 1.0000, ordinal 1.0000, weight 1.00
    """

    pairs: int
    shared: int
    alpha: float | None
    ordinal_alpha: float | None
    fleiss: tuple[float, int, int] | None
    judges: tuple[JudgeAgreement, ...]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each judge by name, for `merge`."""
        return {judge.who: judge.weight for judge in self.judges}

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        judges = [judge._asdict() for judge in self.judges]
        fleiss = None if self.fleiss is None else dict(zip(("kappa", "pairs", "of"), self.fleiss))
        return {**asdict(self), "fleiss": fleiss, "judges": judges}

    def text(self) -> str:
        """The same in words."""
        from didyma.report.table import listed

        lines = {}
        if self.alpha is not None and self.ordinal_alpha is not None:
            both = f"{decimal(self.alpha)} nominal, {decimal(self.ordinal_alpha)} ordinal"
            lines["Krippendorff's alpha"] = both
        if self.fleiss is not None:
            kappa, pairs, judges = self.fleiss
            lines["Fleiss' kappa"] = f"{decimal(kappa)} on {pairs} pairs by {judges} judges each"
        for judge in self.judges:
            line = f"{judge.judged} judged, {judge.common} with others"
            if judge.kappa is not None and judge.ordinal_kappa is not None:
                line += f": kappa {decimal(judge.kappa)}, ordinal {decimal(judge.ordinal_kappa)}"
            lines[judge.who or "(no name)"] = f"{line}, weight {judge.weight:.2f}"
        head = f"{self.pairs} pairs, {self.shared} of them by two judges or more"
        return f"{head}\n{listed(lines)}"


def agreement(judgements: Iterable[Judgement]) -> Agreement:
    """How far judges agree, all together and each with the others.

    A model that has judged, such as a teacher, is one more judge.

    >>> agreement([Judgement("q", "x", 1, who="a")]).alpha is None
    True
    """
    said = {
        pair: {judgement.who: float(judgement.label or 0) for judgement in judged}
        for pair, judged in by_pair(latest(judgements)).items()
    }
    judges = list(dict.fromkeys(who for labels in said.values() for who in labels))
    table = np.array([[labels.get(who, np.nan) for who in judges] for labels in said.values()])
    shared = [labels for labels in said.values() if len(labels) > 1]
    nominal, ordinal = (krippendorff_alpha(table, level) if shared else None for level in LEVELS)
    return Agreement(
        len(said),
        len(shared),
        nominal,
        ordinal,
        _fleiss(shared),
        tuple(_of_judge(who, said) for who in judges),
    )


def _fleiss(shared: list[dict[str, float]]) -> tuple[float, int, int] | None:
    """Fleiss' kappa on the pairs that the most usual number of judges has judged."""
    if not shared:
        return None
    sizes = np.bincount([len(labels) for labels in shared])
    m = int(sizes.argmax())
    chosen = [list(labels.values()) for labels in shared if len(labels) == m]
    values = np.unique(chosen)
    counts = (np.array(chosen)[:, :, None] == values).sum(axis=1)
    return fleiss_kappa(counts), len(chosen), m


def _of_judge(who: str, said: Mapping[tuple[str, str], Mapping[str, float]]) -> JudgeAgreement:
    labels = [
        (label_of[who], [label for judge, label in label_of.items() if judge != who])
        for label_of in said.values()
        if who in label_of
    ]
    common = [(mine, lower_median((v, 1.0) for v in others)) for mine, others in labels if others]
    if not common:
        return JudgeAgreement(who, len(labels), 0, None, None, 1.0)
    mine, theirs = zip(*common)
    nominal, ordinal = (cohen_kappa(mine, theirs, level) for level in LEVELS)
    weight = max(0.0, ordinal) if len(common) >= FEWEST else 1.0
    return JudgeAgreement(who, len(labels), len(common), nominal, ordinal, weight)
