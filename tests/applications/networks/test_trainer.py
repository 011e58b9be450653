from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

from didyma.applications.networks import trainer
from didyma.applications.networks.estimator import NetworkEstimator
from didyma.applications.networks.trainer import (
    CLIP,
    History,
    TrainingSettings,
    choose_device,
    seeded,
    train,
)
from didyma.checkpoints import fingerprint
from didyma.errors import DataError, ModelFileError

GENERATOR = np.random.default_rng(0)
X = torch.tensor(GENERATOR.normal(size=(40, 3)), dtype=torch.float32)
Y = X @ torch.tensor([[1.0], [-2.0], [0.5]])


def build():
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Tanh(), nn.Linear(8, 1))


def fit(evaluate=None, **settings):
    """Train a small network with dropout on rows in random order."""
    module = seeded(settings.get("random_state", 0), build)

    def batches(generator):
        return torch.tensor(generator.permutation(len(X))).split(8)

    def loss(rows):
        return ((module(X[rows]) - Y[rows]) ** 2).mean()

    return module, train(TrainingSettings(**settings), module, batches, loss, evaluate)


def weights(module):
    return {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}


def assert_equal(one, other):
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_the_loss_falls():
    _, history = fit(epochs=10, learning_rate=0.02)
    losses = [record["loss"] for record in history.records]
    assert losses[-1] < 0.3 * losses[0]
    assert history.status == "epochs"


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_seeds_repeat_to_the_bit(optimizer):
    settings = {"epochs": 3, "learning_rate": 0.02, "optimizer": optimizer}
    torch.manual_seed(1)
    first = weights(fit(**settings)[0])
    torch.manual_seed(2)
    assert_equal(first, weights(fit(**settings)[0]))
    other = weights(fit(**settings, random_state=1)[0])
    assert any((first[name] != other[name]).any() for name in first)


def test_the_outer_random_state_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(epochs=1)
    torch.testing.assert_close(torch.rand(3), expected, rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_an_interrupted_run_goes_on_as_if_it_had_not_been(optimizer, tmp_path):
    values = [1.0, 3.0, 2.0, 4.0, 0.0, 1.0]

    settings = {"learning_rate": 0.02, "optimizer": optimizer}
    whole, expected = fit(iter(values).__next__, epochs=6, **settings)
    settings["checkpoint"] = tmp_path / "checkpoint.safetensors"
    fit(iter(values).__next__, epochs=3, **settings)
    module, history = fit(iter(values[3:]).__next__, epochs=6, **settings)
    assert_equal(weights(whole), weights(module))
    assert [record["loss"] for record in history.records] == [
        record["loss"] for record in expected.records
    ]
    assert (history.best_epoch, history.best_value) == (4, 4.0)


def test_ctrl_c_keeps_the_best_epoch(tmp_path):
    def stop(step):
        if step.value is not None and step.epoch == 2:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint.safetensors"
    module, history = fit(iter([2.0, 1.0]).__next__, epochs=5, checkpoint=path, callback=stop)
    assert history.status == "interrupted"
    assert history.best_epoch == 1
    assert_equal(weights(module), weights(fit(epochs=1)[0]))


def test_the_rate_decays_and_patience_ends():
    values = iter([1.0, 2.0, 1.5, 1.5, 1.5, 3.0])
    module, history = fit(values.__next__, epochs=9, learning_rate=0.1, decay=0.5, patience=3)
    assert history.status == "patience"
    assert [record["learning_rate"] for record in history.records] == [0.1, 0.1, 0.1, 0.05, 0.025]
    assert (history.best_epoch, history.best_value) == (2, 2.0)
    same, _ = fit(iter([1.0, 2.0]).__next__, epochs=2, learning_rate=0.1)
    assert_equal(weights(module), weights(same))


def test_gradients_are_clipped():
    module = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.fill_(0.0)
    settings = TrainingSettings(epochs=1, learning_rate=1.0, optimizer="sgd")
    train(settings, module, lambda generator: [None], lambda batch: 1000 * module.weight.sum())
    assert module.weight.item() == pytest.approx(-CLIP)


def test_progress_after_each_step_and_epoch():
    steps = []
    fit(lambda: 1.0, epochs=2, callback=steps.append)
    assert [(step.epoch, step.step, step.value) for step in steps[:6]] == [
        *((1, k, None) for k in range(1, 6)),
        (1, 5, 1.0),
    ]
    assert all(step.n_steps == 5 and step.n_epochs == 2 for step in steps)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fit(epochs=1, checkpoint=path)
    with pytest.raises(ModelFileError, match=r"differs in learning_rate \(0.001, now 0.5\)"):
        fit(epochs=2, learning_rate=0.5, checkpoint=path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelFileError, match="damaged, or not a checkpoint"):
        fit(epochs=2, checkpoint=path)


def test_a_changed_byte_of_a_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fit(epochs=1, checkpoint=path)
    contents = bytearray(path.read_bytes())
    contents[-1] ^= 1  # of a tensor, which then is another number
    path.write_bytes(contents)
    with pytest.raises(ModelFileError, match="its checksum is another"):
        fit(epochs=2, checkpoint=path)


FORGERIES = {
    "shorter": lambda tensor: tensor.reshape(-1)[:-1].clone(),
    "longer": lambda tensor: torch.cat([tensor.reshape(-1)] * 2),
    "turned": lambda tensor: tensor.T.contiguous() if tensor.ndim > 1 else tensor[None],
    "wider": lambda tensor: tensor.double(),
    "whole": lambda tensor: tensor.long(),
    "not numbers": lambda tensor: torch.full_like(tensor, torch.nan),
}


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_checkpoint_is_refused(forgery, optimizer, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fit(epochs=1, optimizer=optimizer, checkpoint=path)
    with safe_open(path, framework="pt") as file:
        texts = {name: text for name, text in file.metadata().items() if name != "checksum"}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    changed = [{**tensors, name: FORGERIES[forgery](own)} for name, own in tensors.items()]
    changed += [{**tensors, f"optimizer/{number}/step": torch.ones(())} for number in (-1, 99)]
    changed += [{name: own for name, own in tensors.items() if name != "best/0.weight"}]
    for forged in changed:
        checksum = trainer._checksum(forged, texts)
        path.write_bytes(save(forged, {**texts, "checksum": checksum}))
        with pytest.raises(ModelFileError, match="damaged, or not of this training"):
            fit(epochs=2, optimizer=optimizer, checkpoint=path)
    for name, value in {"learning_rate": "nan", "history": '{"records": [1]}'}.items():
        changed_texts = {**texts, name: value}
        checksum = trainer._checksum(tensors, changed_texts)
        path.write_bytes(save(tensors, {**changed_texts, "checksum": checksum}))
        with pytest.raises(ModelFileError, match="damaged, or not of this training"):
            fit(epochs=2, optimizer=optimizer, checkpoint=path)


def test_a_fingerprint_tells_data_apart():
    pairs = (["a"], ["b"]), [1.0], np.arange(3), History()
    assert fingerprint(pairs) == fingerprint(deepcopy(pairs))
    others = (
        ((["a", "b"], []), [1.0], np.arange(3), History()),
        ((["a"], ["b"]), [1.0], np.arange(3.0), History()),
        ((["a"], ["b"]), [1.0], np.arange(3)[:, None], History()),
        ((["a"], ["b"]), ["1.0"], np.arange(3), History()),
        ((["a"], ["b"]), [1.0], np.arange(3), History(best_epoch=1)),
        ((["a"], ["b"]), [1.0], np.array(["0", "1", "2"], dtype=object), History()),
    )
    assert len({fingerprint(data) for data in (pairs, *others)}) == 7


def test_a_checkpoint_belongs_to_its_data_and_its_model(tmp_path):
    @dataclass(eq=False, repr=False)
    class Regressor(NetworkEstimator):
        name: str = "a"

        def _build(self):
            return nn.Linear(3, 1)

        def fit(self, rows):
            network = self._begin()
            return self._train(
                network, lambda rng: [rows], lambda x: network(x).sum(), None, [rows]
            )

    def fit(rows, **settings):
        path = tmp_path / "checkpoint.safetensors"
        return Regressor(**settings, checkpoint=path).fit(rows)

    fit(X, epochs=1, device="cpu")
    fit(X, epochs=2, device="auto")
    with pytest.raises(ModelFileError, match="differs in data"):
        fit(X[1:], epochs=1)
    with pytest.raises(ModelFileError, match=r"differs in batch_size.*name"):
        fit(X, batch_size=4, name="b")


def test_a_loss_that_explodes_is_told():
    module = nn.Linear(1, 1)
    with pytest.raises(DataError, match="no longer finite in epoch 1"):
        train(
            TrainingSettings(epochs=1),
            module,
            lambda generator: [None],
            lambda batch: module.weight.sum() * float("inf"),
        )


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"optimizer": "newton"}, "optimizer"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"epochs": 0}, "epochs"),
        ({"patience": 0}, "patience"),
        ({"decay": -1.0}, "decay"),
    ],
)
def test_settings_that_cannot_be(settings, field):
    with pytest.raises(DataError, match=f"^{field}: expected"):
        fit(**settings)


def test_devices():
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(DataError, match=r"^device: expected one of"):
        choose_device("abacus")
    if not torch.cuda.is_available():
        with pytest.raises(DataError, match="no cuda device"):
            choose_device("cuda")
