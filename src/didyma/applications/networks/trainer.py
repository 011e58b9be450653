"""The training loop that all networks share.

An epoch shuffles, steps through its batches and asks for a value on held-out data. After an epoch
that is not the best so far the learning rate decays; after several in a row training stops. Every
epoch draws its random numbers from (seed, epoch), so a run that was interrupted continues as if it
had not been.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from didyma import DataError
from didyma.checkpoints import check_same, fingerprint, restoring
from didyma.errors import ModelFileError, check_choice
from didyma.files import PathName, replace_when_done
from didyma.protocol import Estimator

OPTIMIZERS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}
MOMENTS = ("exp_avg", "exp_avg_sq")  # of each parameter, with Adam's number of steps
DEVICES = ("auto", "cpu", "cuda", "mps")
CLIP = 5.0  # longest gradient; longer ones are shortened
RECORD = ("epoch", "loss", "value", "learning_rate", "seconds")  # of an epoch
# Settings that a run which goes on must share with the one before.
FIXED = ("learning_rate", "optimizer", "weight_decay", "decay", "random_state")

Batches: TypeAlias = "Callable[[np.random.Generator], Sequence[Any]]"

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Step:
    """Where training stands, after a step or, if there is a ``value``, after an epoch.

    ``improved`` says whether the epoch is the best so far.
    """

    epoch: int
    n_epochs: int
    step: int
    n_steps: int
    loss: float
    value: float | None
    improved: bool
    seconds: float


@dataclass
class History:
    """What happened: a record per epoch, which was the best, and why training ended.

    ``status`` is "epochs" when all were made, "patience" or "interrupted" when not.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    best_epoch: int = 0
    best_value: float = -math.inf
    status: str = "epochs"


@dataclass(eq=False, repr=False, kw_only=True)
class TrainingSettings(Estimator):
    """How a network is trained.

    Parameters
    ----------
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
    patience : int >= 1, optional
        Epochs without a better value on ``eval_set`` after which training stops.
    random_state : int >= 0
        Of initialisation, order and dropout.
    checkpoint : path, optional
        Saved after each epoch; if the file exists, training goes on from it.
    callback : callable, optional
        Called with a `Step` after each step and each epoch.
    """

    epochs: int = 20
    learning_rate: float = 1e-3
    optimizer: str = "adam"
    weight_decay: float = 0.0
    decay: float = 0.9
    patience: int | None = 5
    random_state: int = 0
    checkpoint: str | PathLike[str] | None = None
    callback: Callable[[Step], None] | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.random_state, Integral):  # those of PyTorch know no others
            raise DataError(f"expected a number, found {self.random_state!r}", field="random_state")
        check_choice(self.optimizer, OPTIMIZERS, "optimizer")


def seeded(random_state: int, build: Callable[[], Module]) -> Module:
    """The module that ``build`` makes, its parameters drawn from the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(random_state)
        return build()


def train(
    settings: TrainingSettings,
    module: nn.Module,
    batches: Batches,
    loss: Callable[[Any], Tensor],
    evaluate: Callable[[], float] | None = None,
    identity: Mapping[str, str] | None = None,
) -> History:
    """Train a module in place; it ends with the parameters of its best epoch.

    Args:
        settings: how to train.
        module: what the optimiser sees.
        batches: the batches of one epoch, in an order drawn from the generator.
        loss: of one batch, a scalar.
        evaluate: value on held-out data, higher is better; without it the last epoch is best.
        identity: what else a checkpoint must agree with, as texts by name: of model and data.

    >>> line = nn.Linear(1, 1)
    >>> x = torch.linspace(-1, 1, 9)[:, None]
    >>> history = train(TrainingSettings(epochs=99, learning_rate=0.3), line,
    ...                 lambda rng: [x], lambda x: ((line(x) - 2 * x) ** 2).mean())
    >>> round(line.weight.item(), 1), history.best_epoch
    (2.0, 99)
    """
    settings._check_parameters()
    run = _Run(settings, module, batches, loss, evaluate, identity or {})
    history = run.history
    try:
        with torch.random.fork_rng():
            for epoch in range(len(history.records) + 1, settings.epochs + 1):
                waited = len(history.records) - history.best_epoch
                if settings.patience is not None and waited >= settings.patience:
                    history.status = "patience"
                    break
                run.epoch(epoch)
    except KeyboardInterrupt:
        if not history.records:
            raise
        history.status = "interrupted"
    module.load_state_dict(run.best)
    module.eval()
    return history


class _Run:
    """One run of training: the optimiser, the best parameters, the history."""

    def __init__(
        self,
        settings: TrainingSettings,
        module: nn.Module,
        batches: Batches,
        loss: Callable[[Any], Tensor],
        evaluate: Callable[[], float] | None,
        identity: Mapping[str, str],
    ) -> None:
        self.settings, self.module, self.identity = settings, module, identity
        self.batches, self.loss, self.evaluate = batches, loss, evaluate
        self.begun = time.perf_counter()
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.optimizer = OPTIMIZERS[settings.optimizer](
            trained, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.history = History()
        self.best = _copy(module.state_dict())
        if settings.checkpoint is not None and Path(settings.checkpoint).exists():
            self.resume(settings.checkpoint)

    def epoch(self, epoch: int) -> None:
        settings, module, history = self.settings, self.module, self.history
        start = time.perf_counter()
        torch.manual_seed(settings.random_state + 1_000_003 * epoch)
        order = self.batches(np.random.default_rng((settings.random_state, epoch)))
        module.train()
        mean = 0.0

        def report(step: int, value: float | None) -> None:
            if settings.callback is not None:
                place = (epoch, settings.epochs, step, len(order))
                improved, seconds = history.best_epoch == epoch, time.perf_counter() - self.begun
                settings.callback(Step(*place, mean, value, improved, seconds))

        for step, batch in enumerate(order, start=1):
            self.optimizer.zero_grad()
            value = self.loss(batch)
            if not torch.isfinite(value):
                raise DataError(
                    f"the loss is no longer finite in epoch {epoch}; try a lower learning rate",
                    field="learning_rate",
                )
            value.backward()
            nn.utils.clip_grad_norm_(module.parameters(), CLIP)
            self.optimizer.step()
            mean += (value.item() - mean) / step
            report(step, None)
        module.eval()
        with torch.no_grad():
            reached = math.nan if self.evaluate is None else self.evaluate()
        (group, *_) = self.optimizer.param_groups
        values = (epoch, mean, reached, group["lr"], time.perf_counter() - start)
        history.records.append(dict(zip(RECORD, values)))
        if self.evaluate is None or reached > history.best_value:
            history.best_epoch, history.best_value = epoch, reached
            self.best = _copy(module.state_dict())
        else:
            group["lr"] *= settings.decay
        if settings.checkpoint is not None:
            self.save(settings.checkpoint)
        report(len(order), reached)

    def requirements(self) -> dict[str, Any]:
        """What a checkpoint must agree with; more epochs or patience may be given later."""
        settings = {name: getattr(self.settings, name) for name in FIXED}
        shapes = {name: list(tensor.shape) for name, tensor in self.module.state_dict().items()}
        return {**settings, "clip": CLIP, **self.identity, "shapes": shapes}

    def save(self, path: PathName) -> None:
        from safetensors.torch import save

        tensors = {
            f"now/{name}": tensor for name, tensor in _copy(self.module.state_dict()).items()
        }
        tensors |= {f"best/{name}": tensor for name, tensor in self.best.items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {
                f"optimizer/{number}/{name}": torch.as_tensor(value).detach().cpu()
                for name, value in state.items()
                if value is not None
            }
        texts = {
            "settings": json.dumps(self.requirements()),
            "history": json.dumps(asdict(self.history)),
            "learning_rate": repr(self.optimizer.param_groups[0]["lr"]),
        }
        contents = save(tensors, {**texts, "checksum": _checksum(tensors, texts)})
        with replace_when_done(path, "wb") as file:
            file.write(contents)

    def resume(self, path: PathName) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="pt") as file:
                texts = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if texts.pop("checksum") != _checksum(tensors, texts):
                raise ValueError("its checksum is another")
            settings, history = json.loads(texts["settings"]), json.loads(texts["history"])
            rate = float(texts["learning_rate"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            raise ModelFileError(f"{path}: damaged, or not a checkpoint ({error})") from None
        ours = json.loads(json.dumps(self.requirements()))
        with restoring(path):
            check_same(path, {key: settings.get(key) for key in ours}, ours)
            self._restore(tensors, rate, history)

    def _restore(self, tensors: Mapping[str, Tensor], rate: float, history: dict[str, Any]) -> None:
        """Take up what was saved, if it is of this module and optimiser."""
        for prefix in ("now/", "best/"):
            _check_alike(_under(prefix, tensors), self.module.state_dict())
        parameters = self.optimizer.param_groups[0]["params"]
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer/", tensors).items():
            place, _, key = name.partition("/")
            state.setdefault(int(place), {})[key] = tensor
        for number, values in state.items():
            if number not in range(len(parameters)):
                raise ValueError(f"expected one of {len(parameters)} parameters, found {number}")
            shapes = {"step": torch.zeros(())} | dict.fromkeys(MOMENTS, parameters[number].cpu())
            _check_alike(values, shapes)
        if not 0.0 < rate < math.inf:
            raise ValueError(f"learning_rate should be a positive number, but is {rate}")
        self.module.load_state_dict(_under("now/", tensors))
        self.best = _under("best/", tensors)
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.optimizer.param_groups[0]["lr"] = rate
        self.history = History(**{**history, "status": "epochs"})
        _check_history(self.history)


def _check_alike(tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise a ValueError unless these are finite, and like others in names, types and shapes."""
    if tensors.keys() != expected.keys():
        wrong = ", ".join(sorted(tensors.keys() ^ expected.keys()))
        raise ValueError(f"expected the arrays of this module, found others: {wrong:.200}")
    for name, tensor in tensors.items():
        like = expected[name]
        if tensor.shape != like.shape or tensor.dtype != like.dtype:
            wanted = f"{like.dtype} of {tuple(like.shape)}"
            raise ValueError(f"{name} should be {wanted}, but is {tensor.dtype} of {tensor.shape}")
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{name} should be of finite numbers")


def _check_history(history: History) -> None:
    if not all(record.keys() == set(RECORD) for record in history.records):
        raise ValueError(f"history should have records of {', '.join(sorted(RECORD))}")
    if history.best_epoch not in range(len(history.records) + 1):
        raise ValueError(f"best_epoch should be one of the epochs, but is {history.best_epoch!r}")
    float(history.best_value)


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name; "auto" takes a graphics processor where there is one.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    check_choice(name, DEVICES, "device")
    present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next((device for device, here in present.items() if here), "cpu"))
    if not present.get(name, True):
        raise DataError(f"this machine has no {name} device", field="device")
    return torch.device(name)


def _checksum(tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> str:
    return fingerprint([sorted(texts.items()), [(n, tensors[n].numpy()) for n in sorted(tensors)]])


def _copy(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
