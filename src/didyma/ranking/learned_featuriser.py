"""Featurisers whose parameters and learned attributes are those of an estimator."""

from __future__ import annotations

from typing import Self

from didyma.model.codec import decode, encode
from didyma.model.serialisable import Record, State, Tensors
from didyma.protocol import Estimator
from didyma.ranking.featuriser import Featuriser

__all__ = ["LearnedFeatures"]


class LearnedFeatures(Featuriser, Estimator):
    """A featuriser that is an estimator: its state are its parameters and what it has learned."""

    def state(self) -> State:
        """Arrays by the names of their attributes; parameters and all other attributes."""
        arrays, record = encode(self)
        return arrays, {"parameters": record["parameters"], "learned": record["attributes"]}

    @classmethod
    def from_state(cls, arrays: Tensors, values: Record) -> Self:
        """The featuriser that has this state; ValueError if it does not fit together."""
        record = {"class": cls.__name__, "parameters": values["parameters"]}
        columns = {"n_features": None, "feature_names": None}
        found: Self = decode({**record, "attributes": values["learned"], **columns}, arrays)
        return found
