"""Parameters of a network as arrays, and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def restore(
    build: Callable[[], Module], weights: Mapping[str, NDArray[Any]], n_layers: int = 1
) -> Module:
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
