"""Networks as estimators: training, the arrays that a model file keeps, and back."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from didyma.applications.networks.trainer import (
    FIXED,
    Batches,
    History,
    TrainingSettings,
    choose_device,
    seeded,
    train,
)
from didyma.checkpoints import fingerprint
from didyma.errors import ModelFileError
from didyma.model import Savable, Saved
from didyma.protocol import check_is_fitted

Network = TypeVar("Network", bound=nn.Module)


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(Savable, TrainingSettings, ABC, Generic[Network]):
    """A network, and the arrays that it has learned.

    A subclass is a data class, whose fields are its parameters beside those of
    `TrainingSettings`, and says how its network is built (`_build`); its `fit` makes one
    (`_begin`) and trains it (`_train`).

    Parameters
    ----------
    batch_size : int >= 1
        Examples in each step.
    device : {"auto", "cpu", "cuda", "mps"}
        Where to compute; "auto" takes a GPU if there is one.

    Attributes
    ----------
    weights_ : dict of str to array
        The parameters of the network.
    history_ : History
        A record of each epoch, the best one, and why training ended; not kept in model files.
    """

    _transient: ClassVar[tuple[str, ...]] = ("device", "checkpoint", "callback")

    batch_size: int = 32
    device: str = "auto"

    weights_: Annotated[dict[str, NDArray[Any]], Saved()] = field(init=False)
    history_: History = field(init=False)

    @property
    def network(self) -> Network:
        """The trained network."""
        if "_network" not in vars(self):
            check_is_fitted(self, "weights_")
            try:
                network = self._restored()
            except ValueError as error:
                raise ModelFileError(f"the weights do not fit the network ({error})") from None
            self._network = network.to(choose_device(self.device))
        return self._network

    @abstractmethod
    def _build(self) -> Network:
        """A network of the sizes that the parameters and what was learned tell."""

    def _begin(self, build: Callable[[], Network] | None = None) -> Network:
        """A network before training, by ``build`` or `_build`, its parameters random."""
        return seeded(self.random_state, build or self._build)

    def _train(
        self,
        network: Network,
        batches: Batches,
        loss: Callable[[Any], Tensor],
        evaluate: Callable[[], float] | None,
        data: Sequence[Any],
    ) -> Self:
        """Train a network and keep it; a checkpoint must be of this ``data``."""
        self._network = network.to(choose_device(self.device))
        identity = {} if self.checkpoint is None else self._identity(data)
        self.history_ = train(self, network, batches, loss, evaluate, identity)
        state = network.state_dict()
        self.weights_ = {name: tensor.cpu().numpy().copy() for name, tensor in state.items()}
        return self

    def _identity(self, data: Sequence[Any]) -> dict[str, str]:
        """What a checkpoint belongs to: parameters that are not of training, and the data."""
        others = self.get_params(deep=False)
        for name in (*FIXED, "epochs", "patience", *self._transient):
            del others[name]
        return {**{name: repr(value) for name, value in others.items()}, "data": fingerprint(data)}

    def _restored(self) -> Network:
        """The network that has learned ``weights_``; ValueError if they are of another one."""
        return restore(self._build, self.weights_)

    def _check_state(self) -> None:
        self._restored()


def device_of(network: nn.Module) -> torch.device:
    """Where the parameters of a network are."""
    return next(network.parameters()).device


def restore(
    build: Callable[[], Network], weights: Mapping[str, NDArray[Any]], n_layers: int = 1
) -> Network:
    """The network that ``build`` builds, with these parameters, ready to predict.

    It is laid out without memory first: one that declares other sizes than the weights have, as a
    damaged or hostile file may, is a ValueError and costs nothing.

    >>> import numpy as np
    >>> weights = {"weight": np.ones((1, 2), np.float32), "bias": np.zeros(1, np.float32)}
    >>> restore(lambda: nn.Linear(2, 1), weights)(torch.ones(2)).item()
    2.0
    """
    if n_layers > len(weights):
        raise ValueError(f"{n_layers} layers are declared, but there are {len(weights)} arrays")
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Initializing zero-element tensors")
            network = build()
    except (OverflowError, RuntimeError) as error:  # sizes that no network can have
        raise ValueError(str(error).partition("\n")[0]) from None
    declared = network.state_dict()
    expected = {name: tuple(tensor.shape) for name, tensor in declared.items()}
    if lacking := sorted(expected.keys() ^ weights.keys()):
        raise ValueError(f"the network and its weights differ in {lacking[0]}")
    for name, shape in expected.items():
        if weights[name].shape != shape:
            raise ValueError(f"{name} should be of shape {shape}, but is {weights[name].shape}")
    tensors = {name: torch.tensor(array) for name, array in weights.items()}
    for name, tensor in declared.items():
        if tensors[name].dtype != tensor.dtype:
            raise ValueError(f"{name} should be {tensor.dtype}, but is {tensors[name].dtype}")
    network.load_state_dict(tensors, assign=True)
    return network.eval()
