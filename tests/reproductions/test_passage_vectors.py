"""Word vectors in the network of Table 2: a run in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from didyma.data.lists import Lists
from reproductions import passage_vectors
from tests.reproductions.test_latent_reranking import data

__all__ = ["data"]  # a fixture


class Table:
    """Stands in for the table of an extra that tests do not install."""

    @classmethod
    def installed(cls) -> Table:
        return cls()

    def __call__(self, words: list[str]) -> np.ndarray:
        random = np.random.default_rng(len(words))
        return random.normal(5.0, 2.0, (len(words), 64)).astype(np.float32)


def test_vectors_are_as_wide_and_as_spread_as_learned_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_vectors, "SubwordTable", Table)
    monkeypatch.setattr(passage_vectors, "DIMENSION", 2)
    lists = Lists.of_texts(["who runs ?"], [["Ann runs .", "Bob sleeps ."]], [[1, 0]])
    words, _ = passage_vectors.vectors({"all": lists}, 2)
    assert list(words) == [".", "runs"]
    words, given = passage_vectors.vectors({"all": lists}, 1)
    assert np.shape(given) == (len(words), 2)
    assert len(words) == 7
    assert np.std(given) == pytest.approx(passage_vectors.SPREAD)


def test_all_ways_are_compared_on_dev_and_kept(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passage_vectors, "SubwordTable", Table)
    monkeypatch.setattr(passage_vectors, "DIMENSION", 4)
    options = ["--quick", "--data", str(data), "--cache", str(tmp_path)]
    assert passage_vectors.main(options) == 0
    text = capsys.readouterr().out
    assert all(f"| {way} " in text for way in passage_vectors.WAYS)
    monkeypatch.setattr(passage_vectors, "train", lambda *_: pytest.fail("made again"))
    assert passage_vectors.main(options) == 0
    assert capsys.readouterr().out == text
