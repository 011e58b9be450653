"""Featurisers whose parameters and learned attributes are those of an estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from didyma.protocol import Estimator
from didyma.ranking.featuriser import Featuriser, State

__all__ = ["LearnedFeatures"]


class LearnedFeatures(Featuriser, Estimator):
    """What is learned are the attributes in ``_state``: arrays, or values that JSON can hold."""

    _state: ClassVar[tuple[str, ...]]

    def state(self) -> State:
        """Arrays by the names of their attributes; parameters and all other attributes."""
        learned = {name: getattr(self, name) for name in self._state}
        arrays = {name: value for name, value in learned.items() if isinstance(value, np.ndarray)}
        plain = {name: value for name, value in learned.items() if name not in arrays}
        return arrays, {"parameters": self.get_params(), "learned": plain}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> Self:
        """The featuriser that has this state; ValueError if it does not fit together."""
        learned = {**record["learned"], **arrays}
        if learned.keys() != set(cls._state):
            raise ValueError(f"{cls.__name__} has learned {', '.join(cls._state)}")
        try:
            found = cls(**record["parameters"])
        except TypeError as error:
            raise ValueError(str(error)) from None
        for name, value in learned.items():
            setattr(found, name, value)
        found._check_state()
        return found

    def _check_state(self) -> None:
        """Raise ValueError if what was learned does not fit together."""
