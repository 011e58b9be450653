"""What all networks with a scikit-learn face share: training, arrays that are kept, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, device, nn

from didyma.applications.networks.trainer import History, Step, Trainer, choose_device
from didyma.applications.networks.weights import restore
from didyma.errors import ModelFileError
from didyma.model import Savable, Saved
from didyma.protocol import Estimator, check_is_fitted

Network = TypeVar("Network", bound=nn.Module)


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkEstimator(Savable, Estimator, ABC, Generic[Network]):
    """A network, and the arrays that it has learned.

    A subclass is a data class, whose fields are its parameters, and says how its network is built
    (`_build`); its `fit` makes one (`_begin`) and trains it (`_train`).

    Parameters
    ----------
    batch_size : int >= 1
        Examples in each step.
    epochs : int >= 1
        Most passes over the data.
    learning_rate : float
        That of the first epoch; it decays after each epoch that is not the best on ``eval_set``.
    optimizer : {"adam", "sgd"}
        Adam has decoupled weight decay.
    weight_decay : float >= 0
        Strength of the decay of weights.
    decay : float > 0
        Factor of the learning rate after an epoch that is not the best so far.
    patience : int >= 1
        Epochs without a better value on ``eval_set`` after which training stops.
    random_state : int
        Of initialisation, order and dropout.
    device : {"auto", "cpu", "cuda", "mps"}
        Where to compute; "auto" takes a GPU if there is one.
    checkpoint : path, optional
        Saved after each epoch; if the file exists, training goes on from it.
    callback : callable, optional
        Called with a `Step` after each step and each epoch.

    Attributes
    ----------
    weights_ : dict of str to array
        The parameters of the network.
    history_ : History
        A record of each epoch, the best one, and why training ended; not kept in model files.
    """

    _transient: ClassVar[tuple[str, ...]] = ("device", "checkpoint", "callback")

    batch_size: int = 32
    epochs: int = 20
    learning_rate: float = 1e-3
    optimizer: str = "adam"
    weight_decay: float = 0.0
    decay: float = 0.9
    patience: int = 5
    random_state: int = 0
    device: str = "auto"
    checkpoint: str | PathLike[str] | None = None
    callback: Callable[[Step], None] | None = None

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
        """A network before training, by ``build`` if it is given, its parameters random."""
        return Trainer.of(self).seeded(build or self._build)

    def _train(
        self,
        network: Network,
        batches: Callable[[np.random.Generator], Sequence[Any]],
        loss: Callable[[Any], Tensor],
        evaluate: Callable[[], float] | None,
        data: Sequence[Any],
    ) -> Self:
        """Train a network (`Trainer.fit`) and keep it; a checkpoint must be of this ``data``."""
        self._network = network.to(choose_device(self.device))
        trainer = Trainer.of(self, *data)
        self.history_ = trainer.fit(network, batches, loss, evaluate, self.callback)
        state = network.state_dict()
        self.weights_ = {name: tensor.cpu().numpy().copy() for name, tensor in state.items()}
        return self

    def _restored(self) -> Network:
        """The network that has learned ``weights_``; ValueError if they are of another one."""
        return restore(self._build, self.weights_)

    def _check_state(self) -> None:
        self._restored()


def device_of(network: nn.Module) -> device:
    """Where the parameters of a network are."""
    return next(network.parameters()).device
