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
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from didyma import DataError
from didyma.checkpoints import check_same, fingerprint, restoring
from didyma.errors import ModelFileError
from didyma.files import replace_when_done

OPTIMIZERS = {"adam": torch.optim.AdamW, "sgd": torch.optim.SGD}
MOMENTS = ("exp_avg", "exp_avg_sq")  # of each parameter, with Adam's number of steps
DEVICES = ("auto", "cpu", "cuda", "mps")

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


@dataclass(frozen=True)
class Trainer:
    """How to train: settings only, so one trainer may fit many modules.

    Args:
        epochs: most passes over the data.
        learning_rate: of the first epoch.
        optimizer: "adam" (with decoupled weight decay) or "sgd".
        weight_decay: strength of the decay of weights.
        decay: factor of the learning rate after an epoch that is not the best so far.
        patience: epochs in a row without a new best after which training stops.
        clip: longest gradient; longer ones are shortened.
        random_state: of initialisation (see `seeded`), order and dropout.
        checkpoint: file that every epoch is saved to, and that training goes on from if it exists.
        identity: what else a checkpoint must agree with, as texts by name: of the model and its
            data (see `of`).
    """

    epochs: int = 20
    learning_rate: float = 1e-3
    optimizer: str = "adam"
    weight_decay: float = 0.0
    decay: float = 0.9
    patience: int = 5
    clip: float = 5.0
    random_state: int = 0
    checkpoint: Path | None = None
    identity: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise DataError(f"expected one of {known}, found {self.optimizer!r}", field="optimizer")
        for name in ("learning_rate", "clip", "decay"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise DataError(f"expected a positive number, found {value}", field=name)
        for name in ("epochs", "patience"):
            value = getattr(self, name)
            if value < 1:
                raise DataError(f"expected at least 1, found {value}", field=name)

    @classmethod
    def of(cls, estimator: Any, *data: Any) -> Self:
        """The trainer with the settings that an estimator has as parameters of the same names.

        A checkpoint keeps its other parameters and a fingerprint of the ``data`` too.
        """
        given = estimator.get_params(deep=False)
        if given["batch_size"] < 1:
            raise DataError(f"expected at least 1, found {given['batch_size']}", field="batch_size")
        settings = {f.name: given[f.name] for f in fields(cls) if f.name in given}
        if settings["checkpoint"] is not None:
            settings["checkpoint"] = Path(settings["checkpoint"])
            others = given.keys() - settings.keys() - set(estimator._transient)
            settings["identity"] = {name: repr(given[name]) for name in sorted(others)}
            settings["identity"]["data"] = fingerprint(data)
        return cls(**settings)

    def seeded(self, make: Callable[[], Module]) -> Module:
        """The module that ``make`` makes, its parameters drawn from the seed."""
        with torch.random.fork_rng():
            torch.manual_seed(self.random_state)
            return make()

    def fit(
        self,
        module: nn.Module,
        batches: Callable[[np.random.Generator], Sequence[Any]],
        loss: Callable[[Any], Tensor],
        evaluate: Callable[[], float] | None = None,
        callback: Callable[[Step], None] | None = None,
    ) -> History:
        """Train a module in place; it ends with the parameters of its best epoch.

        Args:
            module: what the optimiser sees.
            batches: the batches of one epoch, in an order drawn from the generator.
            loss: of one batch, a scalar.
            evaluate: value on held-out data, higher is better; without it the last epoch is best.
            callback: called after each step and each epoch.

        >>> line = nn.Linear(1, 1)
        >>> x = torch.linspace(-1, 1, 9)[:, None]
        >>> history = Trainer(epochs=99, learning_rate=0.3).fit(
        ...     line, lambda rng: [x], lambda x: ((line(x) - 2 * x) ** 2).mean())
        >>> round(line.weight.item(), 1), history.best_epoch
        (2.0, 99)
        """
        run = _Run(self, module)
        history = run.history
        begun = time.perf_counter()
        try:
            with torch.random.fork_rng():
                for epoch in range(len(history.records) + 1, self.epochs + 1):
                    if run.waited >= self.patience:
                        history.status = "patience"
                        break
                    run.epoch(epoch, batches, loss, evaluate, callback, begun)
        except KeyboardInterrupt:
            if not history.records:
                raise
            history.status = "interrupted"
        module.load_state_dict(run.best)
        module.eval()
        return history


class _Run:
    """One run of a trainer: the optimiser, the best parameters, the history."""

    def __init__(self, trainer: Trainer, module: nn.Module) -> None:
        self.trainer, self.module = trainer, module
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.optimizer = OPTIMIZERS[trainer.optimizer](
            trained, lr=trainer.learning_rate, weight_decay=trainer.weight_decay
        )
        self.history = History()
        self.best = _copy(module.state_dict())
        if trainer.checkpoint is not None and trainer.checkpoint.exists():
            self.resume(trainer.checkpoint)

    @property
    def waited(self) -> int:
        """Epochs since the best one."""
        return len(self.history.records) - self.history.best_epoch

    def epoch(
        self,
        epoch: int,
        batches: Callable[[np.random.Generator], Sequence[Any]],
        loss: Callable[[Any], Tensor],
        evaluate: Callable[[], float] | None,
        callback: Callable[[Step], None] | None,
        begun: float,
    ) -> None:
        trainer, module, history = self.trainer, self.module, self.history
        start = time.perf_counter()
        torch.manual_seed(trainer.random_state + 1_000_003 * epoch)
        order = batches(np.random.default_rng((trainer.random_state, epoch)))
        module.train()
        mean = 0.0

        def tell(step: int, value: float | None) -> None:
            if callback is not None:
                seconds = time.perf_counter() - begun
                improved = history.best_epoch == epoch
                callback(
                    Step(epoch, trainer.epochs, step, len(order), mean, value, improved, seconds)
                )

        for step, batch in enumerate(order, start=1):
            self.optimizer.zero_grad()
            value = loss(batch)
            if not torch.isfinite(value):
                raise DataError(
                    f"the loss is no longer finite in epoch {epoch}; try a lower learning rate",
                    field="learning_rate",
                )
            value.backward()
            nn.utils.clip_grad_norm_(module.parameters(), trainer.clip)
            self.optimizer.step()
            mean += (value.item() - mean) / step
            tell(step, None)
        module.eval()
        with torch.no_grad():
            reached = math.nan if evaluate is None else evaluate()
        (group, *_) = self.optimizer.param_groups
        history.records.append(
            {
                "epoch": epoch,
                "loss": mean,
                "value": reached,
                "learning_rate": group["lr"],
                "seconds": time.perf_counter() - start,
            }
        )
        if evaluate is None or reached > history.best_value:
            history.best_epoch, history.best_value = epoch, reached
            self.best = _copy(module.state_dict())
        else:
            group["lr"] *= trainer.decay
        if trainer.checkpoint is not None:
            self.save(trainer.checkpoint)
        tell(len(order), reached)

    def settings(self) -> dict[str, Any]:
        """What a checkpoint must agree with; more epochs or patience may be given later."""
        free = ("checkpoint", "epochs", "patience", "identity")
        shapes = {name: list(tensor.shape) for name, tensor in self.module.state_dict().items()}
        kept = {key: value for key, value in asdict(self.trainer).items() if key not in free}
        return {**kept, **self.trainer.identity, "shapes": shapes}

    def save(self, path: Path) -> None:
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
            "settings": json.dumps(self.settings()),
            "history": json.dumps(asdict(self.history)),
            "learning_rate": repr(self.optimizer.param_groups[0]["lr"]),
        }
        contents = save(tensors, {**texts, "checksum": _checksum(tensors, texts)})
        with replace_when_done(path, "wb") as file:
            file.write(contents)

    def resume(self, path: Path) -> None:
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
        ours = json.loads(json.dumps(self.settings()))
        with restoring(path):
            check_same(path, {key: settings.get(key) for key in ours}, ours)
            self._restore(tensors, rate, history)

    def _restore(self, tensors: Mapping[str, Tensor], rate: float, history: dict[str, Any]) -> None:
        """Take up what was saved, if it is of this module and optimiser."""
        own = self.module.state_dict()
        for prefix in ("now/", "best/"):
            _check_alike(_under(prefix, tensors), own)
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


def _check_alike(tensors: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Raise a ValueError unless these are finite, and like others in names, types and shapes."""
    if tensors.keys() != own.keys():
        wrong = ", ".join(sorted(tensors.keys() ^ own.keys()))
        raise ValueError(f"expected the arrays of this module, found others: {wrong:.200}")
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape or tensor.dtype != own[name].dtype:
            wanted = f"{own[name].dtype} of {tuple(own[name].shape)}"
            raise ValueError(f"{name} should be {wanted}, but is {tensor.dtype} of {tensor.shape}")
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{name} should be of finite numbers")


def _check_history(history: History) -> None:
    names = {"epoch", "loss", "value", "learning_rate", "seconds"}
    if not all(record.keys() == names for record in history.records):
        raise ValueError(f"history should have records of {', '.join(sorted(names))}")
    if history.best_epoch not in range(len(history.records) + 1):
        raise ValueError(f"best_epoch should be one of the epochs, but is {history.best_epoch!r}")
    float(history.best_value)


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name; "auto" takes a graphics processor where there is one.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name not in DEVICES:
        raise DataError(f"expected one of {', '.join(DEVICES)}, found {name!r}", field="device")
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
