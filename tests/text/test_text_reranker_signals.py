"""Text, signals, first stages and meaning in one reranker, and the orders it must beat."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest

import didyma
from didyma import DataError, Lists, TextReranker
from didyma.data.attributes import Attributes
from didyma.metrics import evaluate
from didyma.text import Meaning, SmallFeatures, TextFeatures, VectorStore
from didyma.text.encoders import Encoder
from tests.text.texts import Counting, made, yes_or_no

N_QUERIES = 60


def letters(texts: list[str]) -> np.ndarray:
    """An encoder that knows which letters a text has."""
    return np.array([[text.lower().count(chr(97 + n)) + 0.1 for n in range(26)] for text in texts])


def noise(texts: list[str]) -> np.ndarray:
    """An encoder that knows nothing."""
    return np.array([np.random.default_rng(hash_of(text)).normal(size=8) for text in texts])


def hash_of(text: str) -> int:
    return sum(ord(letter) * (n + 1) for n, letter in enumerate(text))


def with_signals(lists: Lists, seed: int = 1) -> Lists:
    """Two first stages, one of which finds some only; clicks that tell; a kind that does not."""
    rng = np.random.default_rng(seed)
    n, y = len(lists), lists.y
    dense = rng.normal(size=n) + 1.5 * y
    sparse = rng.normal(size=n) + y
    sparse[rng.random(n) < 0.2] = np.nan
    clicks = np.exp(rng.normal(size=n) + y)
    clicks[rng.random(n) < 0.1] = np.nan
    kind = np.array(["blog", "news"], object)[rng.integers(0, 2, n)]
    signals = {"dense": dense, "sparse": sparse, "clicks": clicks, "kind": kind}
    return replace(lists, attributes=Attributes({}, signals, ("dense", "sparse")))


@pytest.fixture(scope="module")
def lists() -> Lists:
    """Half of the queries have an answer of which the text tells nothing."""
    lists = made(N_QUERIES)
    labels, rng = lists.y.copy(), np.random.default_rng(5)
    for query in range(0, N_QUERIES, 2):
        rows = lists.groups.rows_of(query)
        labels[rows] = labels[rng.permutation(rows)]
    return with_signals(replace(lists, labels=labels))


@pytest.fixture(scope="module")
def reranker(lists: Lists) -> TextReranker:
    return TextReranker(quick=True, encoder=letters, increasing=["clicks"]).fit(lists)


def documents_of(lists: Lists, query: int) -> list[dict[str, Any]]:
    signals = lists.attributes.signals  # type: ignore[union-attr]
    return [
        {"text": lists.items[row]}
        | {
            name: values[row]
            for name, values in signals.items()
            if isinstance(values[row], str) or not np.isnan(values[row])
        }
        for row in lists.groups.rows_of(query).tolist()
    ]


def test_a_perfect_signal_is_found() -> None:
    lists = made(N_QUERIES)
    rng = np.random.default_rng(0)
    popularity = rng.lognormal(3, 1, len(lists)) * np.where(lists.y > 0, 1, 1e-3)
    popular = replace(lists, attributes=Attributes({}, {"popularity": popularity}))
    reranker = TextReranker(quick=True).fit(popular)
    assert reranker.evaluate(popular).mean("AP") == 1.0
    assert reranker.gate_.baseline == "signal.popularity"
    other = made(20, seed=9)
    told = replace(other, attributes=Attributes({}, {"popularity": 1e-3 + 9.0 * other.y}))
    assert reranker.evaluate(told).mean("AP") == 1.0


def test_opponents_are_what_their_names_say(lists: Lists, reranker: TextReranker) -> None:
    """By definitions written here with NumPy, and by ir_measures."""
    codes, signals = lists.groups.codes, lists.attributes.signals  # type: ignore[union-attr]
    features = TextFeatures([SmallFeatures()]).fit(lists)
    bm25 = dict(zip(features.names, features.transform(lists).T))
    assert lists.queries is not None
    queries, passages = letters(list(lists.queries))[codes], letters(list(lists.items))
    cosine = (queries * passages).sum(axis=1) / np.sqrt(
        (queries**2).sum(axis=1) * (passages**2).sum(axis=1)
    )
    clicks = np.where(
        np.isnan(signals["clicks"]), np.nanmedian(signals["clicks"]), signals["clicks"]
    )
    sparse = np.where(np.isnan(signals["sparse"]), -np.inf, signals["sparse"])
    orders = {
        "signal.dense": signals["dense"],
        "signal.clicks": clicks,
        "stem_bm25": bm25["stem_bm25"],
        "bm25": bm25["bm25"],
        "meaning": cosine,
    }
    z_sum, fused = np.zeros(len(lists)), np.zeros(len(lists))
    for values in (signals["dense"], sparse, bm25["stem_bm25"], cosine):
        for rows in (np.flatnonzero(codes == code) for code in range(N_QUERIES)):
            own = values[rows]
            found = np.isfinite(own)
            filled = np.where(found, own, own[found].min() if found.any() else 0.0)
            spread = filled.std() if np.ptp(filled) else 1.0
            z_sum[rows] += (filled - filled.mean()) / spread
            rank = 1 + (own[None, :] > own[:, None] + 0).sum(axis=1)
            fused[rows] += np.where(found, 1 / (60 + rank), 0.0)
    orders |= {"z-sum": z_sum, "RRF": fused}
    reported = {order.name: order.value for order in reranker.gate_.opponents}
    assert set(reported) == {*orders, "signal.sparse"}
    for name, scores in orders.items():
        own = evaluate(scores, lists.y, lists.groups).mean("AP")
        assert reported[name] == pytest.approx(own), name
        distinct = np.argsort(np.lexsort((np.arange(len(scores)), scores))).astype(float)
        own = evaluate(distinct, lists.y, lists.groups).mean("AP")
        assert own == pytest.approx(mean_ap(lists, distinct))
    best = max(reported, key=reported.__getitem__)
    assert reranker.gate_.baseline == best
    assert f"against {reported[best]:.3f} of {best}, the best of 8 orders" in str(reranker.gate_)


def mean_ap(lists: Lists, scores: np.ndarray) -> float:
    qrels, run = [], []
    for row, code in enumerate(lists.groups.codes.tolist()):
        qrels.append(ir_measures.Qrel(str(code), str(row), int(lists.y[row])))
        run.append(ir_measures.ScoredDoc(str(code), str(row), float(scores[row])))
    return float(ir_measures.calc_aggregate([ir_measures.AP], qrels, run)[ir_measures.AP])


def test_an_encoder_that_knows_nothing_costs_nothing() -> None:
    lists = made(N_QUERIES)
    with_noise = TextReranker(quick=True, encoder=noise).fit(lists)
    without = TextReranker(quick=True).fit(lists)
    reported = {order.name: order.value for order in with_noise.gate_.opponents}
    assert with_noise.gate_.baseline == "stem_bm25"
    assert reported["z-sum"] < reported["stem_bm25"] - 0.05
    assert with_noise.gate_.value >= without.gate_.value - 0.01


def test_a_model_of_a_file_is_the_same_to_the_last_bit(
    lists: Lists, reranker: TextReranker, tmp_path: Path
) -> None:
    reranker.save(tmp_path / "model")
    again = didyma.load(tmp_path / "model")
    with pytest.raises(DataError, match=r"encoder: .*another"):
        again.attach(encoder=noise)
    again.attach(encoder=letters)
    assert again.predict(lists).tobytes() == reranker.predict(lists).tobytes()
    assert again.gate_ == reranker.gate_
    assert again.increasing == ["clicks"]
    documents = documents_of(lists, 3)
    assert lists.queries is not None
    asked = lists.queries[3], documents
    assert again.rank(*asked) == reranker.rank(*asked)


def test_what_a_request_lacks_is_said(lists: Lists, reranker: TextReranker) -> None:
    assert lists.queries is not None
    documents = documents_of(lists, 0)
    for document in documents[:2]:
        document.pop("dense")
    for document in documents:
        document["colour"] = "red"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranking = reranker.rank(lists.queries[0], documents)
    n = len(documents)
    assert f"colour: not known from training, ignored in {n} of {n} documents" in ranking.notes
    assert any(note.startswith(f"dense: missing in 2 of {n} documents") for note in ranking.notes)
    complete = [{**document, "dense": 1.0, "sparse": 1.0, "clicks": 2.0} for document in documents]
    for document in complete:
        del document["colour"]
    assert reranker.rank(lists.queries[0], complete).notes == ()


def test_documents_beyond_the_budget_go_without() -> None:
    encoder = Counting()
    reranker = TextReranker(quick=True, encoder=encoder, embed_budget=2).fit(yes_or_no())
    encoder.asked.clear()
    ranking = reranker.rank("does it?", ["no", "yes", "yes, it does", "no, never", "yes"])
    assert encoder.asked == ["does it?", "no", "yes"]
    assert ranking.notes == ("no vector: 2 of 5 documents, counted as the median in training",)
    assert [own.index for own in ranking][:2] == [1, 4]
    assert reranker.attach(embed_budget=3).rank("does it?", ["no", "yes", "nay"]).notes == ()


def test_what_a_store_has_is_not_embedded(tmp_path: Path) -> None:
    lists, encoder, counts = yes_or_no(), Counting(), list[int]()
    alone = TextReranker(quick=True, encoder=Counting()).fit(lists)
    TextReranker(
        quick=True, encoder=encoder, store=tmp_path / "store", on_encoded=counts.append
    ).fit(lists)
    assert counts[-1] == len(lists)  # of which the sample for the median was first
    assert sorted(set(encoder.asked) & set(lists.items)) == sorted(set(lists.items))
    encoder.asked.clear()
    again = TextReranker(quick=True, encoder=encoder, store=VectorStore(tmp_path / "store"))
    again.fit(lists).save(tmp_path / "model")
    assert not set(encoder.asked) & set(lists.items)
    np.testing.assert_allclose(again.predict(lists), alone.predict(lists), atol=1e-2)
    loaded = didyma.load(tmp_path / "model")
    loaded.attach(encoder=encoder, store=str(tmp_path / "store"), embed_budget=0)
    encoder.asked.clear()
    documents = lists.items[:3]
    ranking = loaded.rank("does it?", [*documents, "no, new"])
    assert encoder.asked == ["does it?"]
    assert ranking.notes == ("no vector: 1 of 4 documents, counted as the median in training",)
    assert ranking == again.attach(embed_budget=0).rank("does it?", [*documents, "no, new"])
    with pytest.raises(DataError, match="expected a folder of vectors, found a file"):
        loaded.attach(store=tmp_path / "model")


def test_a_fit_that_was_interrupted_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Encoder, "batch_size", 8)
    lists, encoder = yes_or_no(), Counting()

    def stop(n: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TextReranker(quick=True, encoder=encoder, store=tmp_path, on_encoded=stop).fit(lists)
    before = set(encoder.asked) & set(lists.items)
    assert len(VectorStore(tmp_path)) == len(before) == 8
    encoder.asked.clear()
    TextReranker(quick=True, encoder=encoder, store=tmp_path).fit(lists)
    assert set(encoder.asked) & set(lists.items) == set(lists.items) - before


def test_short_fields_have_a_meaning_of_their_own(tmp_path: Path) -> None:
    """Titles tell what the whole text hides from the encoder, since it does not begin so."""
    lists = yes_or_no(40)
    titles = [f"name{row}" for row in range(len(lists))]
    near = [title for title, label in zip(titles, lists.y) if label]
    encoder = Counting(*near)
    fields = {"title": titles, "text": ["It is " + "far away " * 20] * len(lists)}
    whole = [f"{text} {title}" for title, text in zip(fields["title"], fields["text"])]
    titled = replace(lists.with_items(whole), attributes=Attributes(fields))
    reranker = TextReranker(quick=True, encoder=encoder, embed_budget=4).fit(titled)
    assert "meaning.title" in reranker.featuriser.names
    assert "meaning.text" not in reranker.featuriser.names
    assert reranker.evaluate(titled).mean("AP") == 1.0
    features = TextFeatures([Meaning(Counting(*near), fields=["title"])]).fit(titled)
    cosines = dict(zip(features.names, features.transform(titled).T))
    vectors = Counting().encode(["does", "yes", "no"])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    same, other = vectors[1:] @ vectors[0]
    expected = np.where(lists.y > 0, same, other)
    np.testing.assert_allclose(cosines["meaning.title"], expected, atol=1e-6)
    np.testing.assert_allclose(cosines["meaning"], other, atol=1e-6)
    documents = [{"title": title, "text": "It is far."} for title in ("no a", "yes b", "", "no c")]
    encoder.asked.clear()
    ranking = reranker.rank("does it?", documents)
    texts = [f"{document['title']} It is far.".strip() for document in documents]
    assert encoder.asked == ["does it?", *texts]
    assert ranking.notes == ()
    encoder.asked.clear()
    reranker.attach(embed_budget=6).rank("does it?", documents)
    assert encoder.asked[5:] == ["no a", "yes b"]  # an empty title is not asked for
    reranker.save(tmp_path / "model")
    again = didyma.load(tmp_path / "model").attach(encoder=encoder)
    assert again.predict(titled).tobytes() == reranker.predict(titled).tobytes()
    arrays, values = Meaning(Counting()).fit(features.reader_.read(titled)).state()
    assert not values.keys() & {"fields", "field_medians"}  # as files had it before there were any
    assert Meaning.from_state(arrays, values).names == Meaning().names


def test_documents_bring_vectors_along() -> None:
    lists = made(30)
    assert lists.queries is not None
    given = Attributes(vectors=letters(list(lists.items)).astype(np.float32))
    vectors = letters(list(lists.queries)).astype(np.float32)
    brought = replace(lists, attributes=given, query_vectors=vectors)
    without_encoder = TextReranker(quick=True).fit(brought)
    embedded = TextReranker(quick=True, encoder=letters).fit(lists)
    values = [
        {order.name: order.value for order in one.gate_.opponents}
        for one in (without_encoder, embedded)
    ]
    assert values[0].keys() == values[1].keys()
    assert values[0]["meaning"] == pytest.approx(values[1]["meaning"], abs=0.01)


def test_without_judgements_scores_are_fused(tmp_path: Path) -> None:
    lists = with_signals(made(20))
    fused = TextReranker(encoder=letters).fit(replace(lists, labels=None))
    assert "no judgements" in fused.gate_.verdict
    assert "signal.dense, signal.sparse, stem_bm25, meaning" in fused.gate_.verdict
    assert fused.gate_.kept == "z-sum"
    assert fused.evaluate(lists).mean("AP") > 0.7
    ranked = fused.rank("when does the ship sail?", documents_of(lists, 0))
    scores = [one.score for one in ranked]
    assert sorted(scores, reverse=True) == scores
    assert all(0 < score < 1 for score in scores)
    fused.save(tmp_path / "model")
    again = didyma.load(tmp_path / "model").attach(encoder=letters)
    assert again.predict(lists).tobytes() == fused.predict(lists).tobytes()


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("quick", [True, False])
def test_scores_are_monotone_in_signals_that_are_said_to_be(direction: int, quick: bool) -> None:
    """Although the data say the opposite of one of them."""
    lists = made(N_QUERIES if not quick else 30)
    rng = np.random.default_rng(3)
    n = len(lists)
    signals = {
        "told": rng.normal(size=n) + direction * lists.y,
        "against": rng.normal(size=n) - 2 * direction * lists.y,
    }
    which = {"increasing" if direction == 1 else "decreasing": ["told", "against"]}
    given = replace(lists, attributes=Attributes({}, signals))
    reranker = TextReranker(quick=quick, time_budget=5, **which).fit(given)  # type: ignore[arg-type]
    features, model = reranker.featuriser, reranker.model_
    X = features.transform(given)
    names = list(features.names)
    base = model.predict(given.with_items(X, names))
    for name in [own for own in names if own.startswith("signal.")]:
        for step in (1e-9, 0.1, 1.0, 50.0):
            raised = X.copy()
            raised[:, names.index(name)] += direction * step
            assert (model.predict(given.with_items(raised, names)) >= base).all(), (name, step)
    # And as documents are ranked: the one whose signal is raised does not fall.
    assert lists.queries is not None
    documents = [
        {"text": given.items[row], **{key: own[row] for key, own in signals.items()}}
        for row in given.groups.rows_of(0).tolist()
    ]
    scores = {one.index: one.raw for one in reranker.rank(lists.queries[0], documents)}
    for row in range(len(documents)):
        for key in signals:
            changed = [dict(document) for document in documents]
            changed[row][key] += 2.0 * direction
            after = {one.index: one.raw for one in reranker.rank(lists.queries[0], changed)}
            assert after[row] >= scores[row] - 1e-12


def test_what_cannot_be_monotone() -> None:
    lists = with_signals(made(10))
    for names, message in ((["age"], "found 'age'"), (["kind"], "found 'kind'")):
        with pytest.raises(DataError, match=message):
            TextReranker(quick=True, increasing=names).fit(lists)
    with pytest.raises(DataError, match="both increasing and decreasing"):
        TextReranker(quick=True, increasing=["clicks"], decreasing=["clicks"]).fit(lists)


def test_explanations_tell_signals_as_they_were_given(lists: Lists, reranker: TextReranker) -> None:
    assert lists.queries is not None
    documents = documents_of(lists, 0)
    documents[0]["dense"] = 0.83
    documents[1].pop("dense")
    first, second, *_ = reranker.explain(lists.queries[0], documents)
    told = {part.name: part.value for part in first.contributions}
    assert told["signal.dense"] == 0.83
    assert "signal.dense = 0.83" in str(
        replace(
            first,
            contributions=tuple(
                part for part in first.contributions if part.name == "signal.dense"
            ),
        )
    )
    assert {part.name: part.value for part in second.contributions}["signal.dense"] is None


def test_drift_watches_signals(lists: Lists, reranker: TextReranker) -> None:
    assert not reranker.drift(lists).differing
    signals = dict(lists.attributes.signals)  # type: ignore[union-attr]
    signals["dense"] = signals["dense"] + 20.0
    attributes = replace(lists.attributes, signals=signals)  # type: ignore[type-var]
    drift = reranker.drift(replace(lists, attributes=attributes))
    assert any(feature.name == "signal.dense" for feature in drift.differing)
