"""Signals with which scores must not fall, or must not rise."""

from __future__ import annotations

from collections.abc import Sequence

from didyma.errors import DataError
from didyma.text.features.in_lists import IN_LIST, RRF
from didyma.text.features.signals import RANK, SIGNAL


def signs_of(
    increasing: Sequence[str], decreasing: Sequence[str], numbers: Sequence[str]
) -> dict[str, int]:
    """1 or −1 for columns with which scores must rise or fall; ``numbers`` are signals there are.

    >>> sorted(signs_of(["clicks"], ["price"], ["price", "clicks"]).items())[::4]
    [('signal.clicks', 1), ('signal.price', -1)]
    """
    for field, names, others in (
        ("increasing", increasing, decreasing),
        ("decreasing", decreasing, ()),
    ):
        for name in names:
            if name not in numbers:
                present = ", ".join(numbers) or "none"
                raise DataError(
                    f"expected signals of numbers (there are {present}), found {name!r}",
                    field=field,
                )
            if name in others:
                raise DataError(f"{name!r} is both increasing and decreasing", field=field)
    return {
        SIGNAL + name + end: sign
        for names, sign in ((increasing, 1), (decreasing, -1))
        for name in names
        for end in ("", RANK, IN_LIST, RRF)
    }
