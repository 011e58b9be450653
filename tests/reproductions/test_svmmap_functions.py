"""The retrieval functions of Yue et al. (2007) against their definitions, and a trial in small."""

from __future__ import annotations

from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from reproductions.svmmap_models import YUE_MODELS

from reproductions import svmmap_functions as functions
from reproductions import svmmap_trials

DOCUMENTS = [
    "a rose is a rose",
    "the tulip and the rose",
    "tulips tulips",
    "a boat at sea is a boat",
]
QUERIES = ["a rose rose tulip", "boat unknown"]


def by_definition(name: str, query: str, text: str) -> float:
    """A score, term by term."""
    texts = [d.split() for d in DOCUMENTS]
    d, q = text.split(), query.split()
    n, mean = len(texts), sum(map(len, texts)) / len(texts)
    total = {t: sum(x.count(t) for x in texts) for x in texts for t in x}
    df = {t: sum(t in x for x in texts) for t in total}
    idf = {t: log(n / df[t]) for t in total}
    terms = [t for t in sorted(set(q)) if t in total]
    shared = [t for t in terms if t in d]

    def saturated(t: str, k: float, b: float) -> float:
        return d.count(t) / (d.count(t) + k * (1 - b + b * len(d) / mean))

    if name == "cosine":
        mine = {t: (1 + log(d.count(t))) * idf[t] for t in set(d)}
        theirs = {t: (1 + log(q.count(t))) * idf[t] for t in terms}
        norms = [sqrt(sum(v * v for v in part.values())) for part in (mine, theirs)]
        return sum(mine[t] * theirs[t] for t in shared) / (norms[0] * norms[1])
    if name == "tf-idf":
        return sum(q.count(t) * saturated(t, 1.0, 0.3) * idf[t] ** 2 for t in shared)
    if name == "Okapi":
        return sum(
            (8 * q.count(t) / (7 + q.count(t)))
            * (2.2 * saturated(t, 1.2, 0.75))
            * log((n - df[t] + 0.5) / (df[t] + 0.5))
            for t in shared
        )
    share = {t: total[t] / sum(total.values()) for t in total}
    known = [t for t in q if t in total]
    if name == "Dirichlet":
        smoothed = [(d.count(t) + 1000 * share[t]) / (len(d) + 1000) for t in known]
    else:
        smoothed = [0.5 * d.count(t) / len(d) + 0.5 * share[t] for t in known]
    constant = sum(log((1.0 if name == "Dirichlet" else 0.5) * share[t]) for t in known)
    return sum(map(log, smoothed)) - constant


@pytest.mark.parametrize("name", ["cosine", "tf-idf", "Okapi", "Dirichlet", "Jelinek-Mercer"])
def test_functions_are_their_formulas(name: str) -> None:
    found = functions.Index(str.split, DOCUMENTS, QUERIES).functions()[name]
    expected = [[by_definition(name, query, text) for text in DOCUMENTS] for query in QUERIES]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_the_indices_hold() -> None:
    text = "The wings' loading, at M 2"
    assert functions.words(text) == ["the", "wings", "loading", "at", "m", "2"]
    assert functions.stems(text)[1:3] == ["wing", "load"]
    assert functions.content_stems(text) == ["wing", "load", "m", "2"]
    assert functions.grams("wings at") == ["wing", "ings", "at"]


def test_a_run_has_the_best_documents_that_share_a_term() -> None:
    scores = np.array([[1.0, 3.0, 2.0]])
    run = functions.make_run(
        "x", scores, np.array([[True, False, True]]), np.array(["q"]), np.array(["a", "b", "c"])
    )
    assert (run.docid.tolist(), run.score.tolist()) == (["c", "a"], [2.0, 1.0])


def test_a_trial_in_small(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(svmmap_trials, "CS", (0.1, 1.0))
    monkeypatch.setattr(functions, "COLLECTIONS", {"cranfield": "aerodynamics"})
    found = functions.reproduce_functions(shared_data / "rerank", YUE_MODELS[:1], 1, 0)
    text = svmmap_trials.trial_tables(found)
    assert "| paper: TREC 9 MAP | W/L      |" in text
    for setting in found["settings"]:
        judged = setting["collections"]["aerodynamics"]["judged"]
        assert len(judged) == 4
        assert 0.2 < judged["SVMmap"]["MAP"] < 0.6
    assert "trial 1" in capsys.readouterr().err
