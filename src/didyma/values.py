"""What a value is, for checks; values and numbers as text, for messages and tables."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from numpy.typing import NDArray

import math

GREATEST_SEED = 2**32 - 1  # that NumPy's generators take


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number; True and False count nothing.

    >>> is_whole(3), is_whole(True), is_whole(3.0)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a number that a float can be, which may be infinite; True and False are none.

    >>> is_number(0.5), is_number(True), is_number(10**400)
    (True, False, False)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def as_array(values: Any) -> NDArray[Any]:
    """An array, of objects where True or False stands among numbers rather than of 1 and 0.

    >>> as_array([2, 3]).dtype, as_array([True, 3]).dtype
    (dtype('int64'), dtype('O'))
    """
    import numpy as np

    array = np.asarray(values)
    hides = array.dtype.kind in "iufc" and _has_truth(values)
    return np.asarray(values, dtype=object) if hides else array


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array as compiled loops take it: row after row, each number where the processor wants it.

    An array out of a buffer, such as one that came over a network, may begin anywhere.

    >>> import numpy as np
    >>> shifted = np.zeros(9, np.uint8)[1:].view(np.float64)
    >>> shifted.flags.aligned, aligned(shifted).flags.aligned
    (False, True)
    """
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    import numpy as np

    return np.require(array, requirements=["C", "A"])


def _has_truth(values: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return any(map(_has_truth, values))
    return isinstance(values, bool) or getattr(getattr(values, "dtype", None), "kind", "") == "b"


def kind_of(value: object) -> str:
    """The type of what was found, in a message.

    >>> kind_of(7), kind_of(None)
    ('int', 'none')
    """
    return "none" if value is None else type(value).__name__


def shown(value: object) -> str:
    """What was found, in a message: its type and its beginning.

    >>> shown(7), shown(None)
    ('int 7', 'none')
    """
    return "none" if value is None else f"{type(value).__name__} {value!r:.40}"


def decimal(value: float | None, *, signed: bool = False) -> str:
    """Four decimals without a leading zero; a dash for what is missing.

    >>> decimal(0.34167), decimal(1), decimal(-0.012, signed=True), decimal(None)
    ('.3417', '1.0000', '-.0120', '-')
    """
    if value is None or math.isnan(value):
        return "-"
    text = f"{value:+.4f}" if signed else f"{value:.4f}"
    return text.replace("0.", ".", 1) if abs(value) < 0.99995 else text


def shown_value(value: float | str | None) -> str:
    """The value of a feature with three digits, or the text of a category; nothing for none."""
    return value or "" if isinstance(value, str | None) else f"{value:.3g}"
