"""`NBestReranker`: every model, the combination with the decoder, and lists that are not nice."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.model import Model
from didyma.nbest.boosting import BoostingReranker
from didyma.nbest.defaults import next_default, warn_of_ends
from didyma.nbest.formats import Output, read
from didyma.nbest.loss import losses
from didyma.nbest.low_rank import LowRankReranker
from didyma.nbest.reranker import DECODERS_OWN, MODELS, NBestReranker
from didyma.ranking.explanation import PassageExplanation
from didyma.ranking.featuriser import Featuriser
from didyma.ranking.svm import SVMRanker
from didyma.report.choices import first_choices
from didyma.text.reranker import Reranker
from tests.cases import Case, Guess, cases, stack

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
NAMES = list(MODELS)
WORDS = {
    "ring": ("NN", "VB"),
    "the": ("DT",),
    "they": ("PR",),
    "loud": ("JJ",),
    "watch": ("NN", "VB"),
}


def tagged(seed: int, n_lists: int = 40) -> list[Case]:
    """Nouns follow articles and verbs follow pronouns, which the decoder does not know."""
    random = np.random.default_rng(seed)
    lists = []
    for number in range(n_lists):
        first, tag = (("the", "NN"), ("they", "VB"))[random.integers(2)]
        word = ("ring", "watch")[random.integers(2)]
        guesses = [f"{WORDS[first][0]} {guess}" for guess in WORDS[word]]
        values = random.normal(size=2)
        scored = [Guess(text, float(s)) for text, s in zip(guesses, values)]
        scored.sort(key=lambda guess: -(guess.score or 0.0))
        reference = f"{WORDS[first][0]} {tag}"
        lists.append(Case(str(number), f"{first} {word}", reference, scored))
    return lists


SMALL = 0.1  # the least weight that makes no mistake on dev lists may make some on others
TRAIN, DEV, TEST = (stack(tagged(seed)) for seed in range(3))


def mean_loss(lists: Lists, choices: NDArray[np.int64]) -> float:
    return float(replace(lists, losses=losses(lists)).loss_of(choices).mean())


def explained(reranker: NBestReranker, lists: Lists, number: int = 0) -> list[PassageExplanation]:
    single = lists.select_lists([number])
    return reranker.explain(single.queries[0], single.items, single.scores)


@pytest.mark.parametrize("model", NAMES)
def test_every_model_learns_what_the_decoder_does_not_know(model: str, tmp_path: Path) -> None:
    reranker = NBestReranker(model).fit(TRAIN, DEV)
    choices = reranker.rerank(TEST)
    assert mean_loss(TEST, first_choices(TEST)) > 0.3
    assert mean_loss(TEST, choices) < SMALL
    found = reranker.predict(TEST)
    assert TEST.groups.choose(found).tolist() == choices.tolist()
    reranker.save(tmp_path / "m.safetensors")
    again = NBestReranker.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(TEST), found)
    assert again.get_params()["model"] == model


@pytest.mark.parametrize("model", NAMES)
def test_weight_0_is_the_decoder_and_100_the_model(model: str) -> None:
    decoder = NBestReranker(model, weight=0).fit(TRAIN)
    np.testing.assert_array_equal(decoder.predict(TEST), TEST.scores)
    np.testing.assert_array_equal(decoder.rerank(TEST), first_choices(TEST))
    alone = NBestReranker(model, weight=100).fit(TRAIN)
    half = NBestReranker(model, weight=50).fit(TRAIN)
    expected = (TEST.scores + alone.predict(TEST)) / 2
    np.testing.assert_allclose(half.predict(TEST), expected, atol=1e-12)


@pytest.mark.parametrize("model", NAMES)
def test_the_scale_of_decoder_scores_does_not_matter(model: str) -> None:
    def scaled(lists: Lists) -> Lists:
        return replace(lists, scores=1e4 * lists.scores)

    reranker = NBestReranker(model, weight=50).fit(TRAIN)
    other = NBestReranker(model, weight=50).fit(scaled(TRAIN))
    np.testing.assert_array_equal(other.rerank(scaled(TEST)), reranker.rerank(TEST))


@pytest.mark.parametrize("model", NAMES)
def test_lists_that_are_not_nice(model: str) -> None:
    """Empty, of one candidate, of unseen words, without the reference, of equal losses."""
    empty = Case("e", "the ring", "DT NN", [])
    single = Case("s", "the ring", "DT NN", [Guess("DT VB", 3.0)])
    unseen = Case("u", "xyzzy plugh", "XX YY", [Guess("QQ ZZ", -2.0), Guess("ZZ QQ", -1.0)])
    absent = Case("a", "the ring", "DT JJ", [Guess("DT VB", 0.0), Guess("DT NN", 0.0)])
    awkward = [empty, single, unseen, absent]
    reranker = NBestReranker(model, weight=50).fit(TRAIN)
    assert reranker.rerank(stack(awkward)).tolist() == [-1, 0, 1, 1]
    assert reranker.predict(stack(awkward)).shape == (5,)
    assert reranker.rerank(stack([empty])).tolist() == [-1]
    train, dev = (stack([*awkward, *cases(lists)]) for lists in (TRAIN, DEV))
    taught = NBestReranker(model).fit(train, dev)
    assert mean_loss(TEST, taught.rerank(TEST)) < SMALL
    assert taught.rerank(stack(awkward))[:2].tolist() == [-1, 0]


@pytest.mark.parametrize("model", NAMES)
def test_decoder_scores_may_be_absent(model: str) -> None:
    def bare(lists: Lists) -> Lists:
        return replace(lists, scores=None)

    reranker = NBestReranker(model).fit(bare(TRAIN), bare(DEV))
    assert not reranker.uses_decoder_
    assert mean_loss(TEST, reranker.rerank(bare(TEST))) == 0
    np.testing.assert_array_equal(reranker.rerank(TEST), reranker.rerank(bare(TEST)))
    first = NBestReranker(model, weight=0).fit(bare(TRAIN))
    assert not first.rerank(bare(TEST)).any()
    scored = NBestReranker(model).fit(TRAIN)
    with pytest.raises(DataError, match="scores: expected a score for each candidate, as in trai"):
        scored.rerank(bare(TEST))


@pytest.mark.parametrize("model", NAMES)
def test_explanations_add_up(model: str) -> None:
    reranker = NBestReranker(model).fit(TRAIN, DEV)
    values = reranker.predict(TEST)
    for number in range(10):
        first, second = explained(reranker, TEST, number)
        own = values[TEST.groups.rows_of(number)]
        for found, value in ((first, own[0]), (second, own[1])):
            assert found.raw == found.score == value
            assert sum(part.amount for part in found.contributions) == pytest.approx(value)
        relative = first.above(second)
        assert relative.distance == own[0] - own[1]
        assert sum(part.amount for part in relative.differences) == pytest.approx(own[0] - own[1])
    assert reranker.explain("the ring", [], []) == []


def test_an_explanation_names_what_matters() -> None:
    wrong = stack([Case("w", "they ring", None, [Guess("PR NN", 1.0), Guess("PR VB", 0.0)])])
    found = explained(NBestReranker("svm", features="n-gram").fit(TRAIN), wrong)
    assert found[1].text == "PR VB"
    amounts = {part.name: part.amount for part in found[1].above(found[0]).differences}
    assert amounts["PR VB"] > 0 < amounts["PR NN"]
    pairs = explained(NBestReranker(input_view="n-grams", weight=100).fit(TRAIN), wrong)
    values = {part.name: part.amount for part in pairs[1].contributions}
    assert values["they ~ PR VB"] > 0


@pytest.mark.parametrize("model", NAMES)
def test_one_list_is_ranked_as_one_of_many(model: str, tmp_path: Path) -> None:
    reranker = NBestReranker(model).fit(TRAIN, DEV)
    assert isinstance(reranker, Reranker)
    values, choices = reranker.predict(TEST), reranker.rerank(TEST)
    for number in range(5):
        rows = TEST.groups.rows_of(number)
        texts = [TEST.items[row].text for row in rows]
        for outputs in (texts, [TEST.items[row] for row in rows], [{"text": t} for t in texts]):
            ranked = reranker.rank(TEST.queries[number].text, outputs, scores=TEST.scores[rows])
            assert ranked[0].index == choices[number]
            assert [own.raw for own in ranked] == sorted(values[rows], reverse=True)
            assert [own.text for own in ranked] == [texts[own.index] for own in ranked]
    assert len(reranker.rank("the ring", ["DT NN", "DT VB"], top_k=1, scores=[0.0, 1.0])) == 1
    assert reranker.rank("the ring", [], scores=[]) == []
    again = NBestReranker.from_state(*reranker.state())
    np.testing.assert_array_equal(again.predict(TEST), values)
    assert reranker.evaluate(TEST).mean("RR") > 1 - SMALL


def test_rows_may_stand_in_any_order() -> None:
    order = np.random.default_rng(0).permutation(len(TEST))
    shuffled = TEST.select(order)
    for model in ("svm", "low-rank"):
        reranker = NBestReranker(model).fit(TRAIN)
        expected = reranker.predict(TEST)[order]
        np.testing.assert_allclose(reranker.predict(shuffled), expected, atol=1e-12)


def test_decoder_scores_that_it_was_trained_without_are_refused() -> None:
    reranker = NBestReranker("perceptron").fit(replace(TRAIN, scores=None))
    with pytest.raises(DataError, match="scores: the reranker was trained without"):
        reranker.rank("the ring", ["DT NN", "DT VB"], scores=[1.0, 0.0])
    assert DECODERS_OWN not in {
        part.name for part in reranker.explain("the ring", ["DT NN"])[0].contributions
    }
    with pytest.raises(DataError, match="query: expected a text or an Input, found int"):
        reranker.rank(3, ["DT NN"])
    with pytest.raises(DataError, match="the reranker is not fitted yet"):
        NBestReranker().rank("the ring", ["DT NN"])


def test_what_outputs_bring_is_used_and_given_back() -> None:
    def featured(lists: Lists) -> Lists:
        right = losses(lists) == 0
        items = [
            replace(own, features={"lm": float(good)}, other={"id": n, "at": 3})
            for n, (own, good) in enumerate(zip(lists.items, right))
        ]
        return replace(lists, items=items)

    reranker = NBestReranker("svm", features="text").fit(featured(TRAIN))
    outputs = [{"text": "a", "features": {"lm": 0.0}}, {"text": "a", "features": {"lm": 1.0}}]
    ranked = reranker.rank("the ring", outputs, scores=[0.0, 0.0])
    assert [own.index for own in ranked] == [1, 0]
    test = featured(TEST)
    best, _ = reranker.rank("the ring", test.items[:2], scores=[0.0, 0.0])
    assert (best.id, best.metadata) == (best.index, {"at": 3, "features": {"lm": 1.0}})
    for wrong in ({"features": {"lm": "x"}}, {"vector": ["x"]}, {"features": 3}, {"vector": [[1]]}):
        with pytest.raises(DataError, match="document 0: expected"):
            reranker.rank("the ring", [{"text": "a", **wrong}], scores=[0.0])


def test_the_weight_is_the_best_on_dev() -> None:
    few = TRAIN.select_lists(range(6))
    reranker = NBestReranker("perceptron").fit(few, DEV)
    by_weight = {}
    for weight in range(101):
        fixed = NBestReranker("perceptron", weight=weight).fit(few, DEV)
        by_weight[weight] = mean_loss(DEV, fixed.rerank(DEV))
        assert fixed.tuning_ == [{"weight": weight, "loss": by_weight[weight]}]
    best = min(by_weight, key=lambda weight: (by_weight[weight], weight))
    assert reranker.weight_ == best
    assert reranker.tuning_[0]["loss"] == by_weight[best]


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("svm", {"C": [1e-6, 10.0]}),
        ("boosting", {"n_rounds": [0, 20]}),
        ("low-rank", {"tau": [0.5, 0.9], "n_components": [1, 5], "objective": ["generative"]}),
        ("low-rank", {"objective": ["generative", "softened"], "lam": 0.5}),
    ],
)
def test_parameters_are_chosen_on_dev(model: str, parameters: dict) -> None:
    reranker = NBestReranker(model, parameters).fit(TRAIN, DEV)
    assert mean_loss(TEST, reranker.rerank(TEST)) < SMALL
    best = min(record["loss"] for record in reranker.tuning_)
    assert best == mean_loss(DEV, reranker.rerank(DEV))
    for name, values in parameters.items():
        choices = values if isinstance(values, list) else [values]
        assert getattr(reranker.model_, name) in choices
    with pytest.raises(DataError, match="need held-out lists to choose by"):
        NBestReranker(model, {name: [1, 2] for name in list(parameters)[:1]}).fit(TRAIN)


def vectors_of(lists: Lists, known: bool = True) -> Lists:
    """The same with vectors instead of words."""
    random = np.random.default_rng(0)
    of_input = {word: random.normal(size=8) for word in ("the", "they", "ring", "watch")}
    of_tag = {tag: random.normal(size=6) for tag in ("DT NN", "DT VB", "PR NN", "PR VB")}
    return stack(
        case._replace(
            input=None,
            vector=np.sum([of_input[word] for word in (case.input or "").split()], axis=0),
            reference_vector=of_tag[case.reference or ""] if known else None,
            guesses=[guess._replace(vector=of_tag[guess.text]) for guess in case.guesses],
        )
        for case in cases(lists)
    )


@pytest.mark.parametrize("known", [True, False])
def test_vectors_may_take_the_place_of_texts(tmp_path: Path, known: bool) -> None:
    train, dev, test = (vectors_of(lists, known) for lists in (TRAIN, DEV, TEST))
    reranker = NBestReranker(parameters={"n_components": 6, "tau": 0.01}).fit(train, dev)
    assert mean_loss(test, reranker.rerank(test)) < SMALL
    reranker.save(tmp_path / "m")
    loaded = NBestReranker.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.rerank(test), reranker.rerank(test))
    with pytest.raises(DataError, match=r"vectors: expected vectors of one length, found \[0\]"):
        reranker.rerank(TEST)
    assert len(explained(reranker, test)[0].contributions) > 1
    linear = NBestReranker("svm").fit(train, dev)
    assert mean_loss(test, linear.rerank(test)) < mean_loss(test, first_choices(test))


def test_given_vectors_are_features_as_any_others(tmp_path: Path) -> None:
    train, test = vectors_of(TRAIN), vectors_of(TEST)
    reranker = NBestReranker(parameters={"n_components": 6, "tau": 0.01}).fit(train)
    view = reranker.output_view_
    assert isinstance(view, Featuriser)
    again = Model.of(view).estimator
    assert again.names == view.names == tuple("012345")
    np.testing.assert_array_equal(again.transform(test), [own.vector for own in test.items])
    with pytest.raises(DataError, match="vectors: expected vectors of length 6, found 1"):
        view.transform(Lists([Output("NN", vector=np.ones(1))]))
    # In older files nothing stands for a view of vectors.
    model = Model.of(reranker)
    for name in ("input_view_", "output_view_"):
        del model.record["parts"][name]
        model.record["attributes"][name] = None
    model.write(tmp_path / "old")
    old = NBestReranker.load(tmp_path / "old")
    np.testing.assert_array_equal(old.predict(test), reranker.predict(test))


def test_losses_of_candidates_come_before_references() -> None:
    inverted = replace(TRAIN, losses=1.0 - losses(TRAIN))
    reranker = NBestReranker("perceptron").fit(inverted)
    assert mean_loss(TEST, reranker.rerank(TEST)) == 1


def test_views_and_features_can_be_chosen() -> None:
    reranker = NBestReranker(input_view="characters", output_view="suffixes").fit(TRAIN)
    assert reranker.input_view_ is not None
    assert reranker.output_view_ is not None
    assert "th" in reranker.input_view_.names
    assert "-NN" in reranker.output_view_.names
    joint = NBestReranker("svm", features="n-gram", min_count=5).fit(TRAIN).joint_
    assert joint is not None
    assert "w=ring/NN" in joint.names


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"model": "magic"}, "model: expected one of 'low-rank', 'boosting'"),
        ({"weight": 101}, "weight: expected 0 to 100 per cent, found 101"),
        ({"parameters": {"C": 1.0}}, "parameters: low-rank has no parameter 'C'"),
        ({"parameters": {"tau": 7.0}}, "tau: expected"),
        ({"features": "stems", "model": "svm"}, "features: expected one of"),
        ({"input_view": "stems"}, "input_view: expected one of"),
        ({"loss": "bleu"}, "loss: expected one of"),
        ({"output_view": "vectors"}, "vectors: expected vectors"),
        (
            {"features": "suffix"},
            "features: is not for low-rank, which has input_view, output_view",
        ),
        ({"model": "svm", "input_view": "n-grams"}, "input_view: is not for svm, which has feat"),
        ({"min_count": 10**6}, "min_count: inputs have no feature that occurs so often"),
        ({"min_count": 0}, "min_count: expected a whole number from 1 on"),
    ],
)
def test_parameters_are_checked(parameters: dict, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        NBestReranker(**parameters).fit(TRAIN)


def test_scores_are_not_so_large_that_their_squares_overflow() -> None:
    large = replace(TRAIN, scores=np.full(len(TRAIN), -1e308))
    with pytest.raises(DataError, match=r"scores: expected a number from -1e\+90 to 1e\+90"):
        NBestReranker("perceptron").fit(large)


@pytest.mark.parametrize("model", NAMES)
def test_nothing_to_learn_from(model: str) -> None:
    lists = [Case("1", "the ring", "DT NN", [])]
    if model != "low-rank":
        lists.append(Case("2", "the ring", "DT NN", [Guess("DT NN", 1.0)]))
    with pytest.raises(DataError, match="nothing to learn from"):
        NBestReranker(model).fit(stack(lists))
    with pytest.raises(DataError, match="lists: expected at least one list"):
        NBestReranker(model).fit(TRAIN, stack([]))


def test_an_input_is_needed_where_it_is_looked_at() -> None:
    blind = stack(case._replace(input=None) for case in cases(TRAIN))
    with pytest.raises(DataError, match="list '0': expected an input, found none"):
        NBestReranker().fit(blind)
    assert NBestReranker("svm").fit(blind).joint_.features_ == "text"


@pytest.mark.parametrize("model", NAMES)
def test_reranking_helps_on_the_examples(model: str) -> None:
    train, dev, test = (read(EXAMPLES / f"nbest-{part}.jsonl") for part in ("train", "dev", "test"))
    reranker = NBestReranker(model).fit(train, dev)
    assert mean_loss(test, reranker.rerank(test)) < 0.6 * mean_loss(test, first_choices(test))


def test_a_default_that_is_best_at_its_end_goes_on(caplog):
    caplog.set_level("INFO")

    def tried(*losses):
        return [{"C": C, "loss": loss} for C, loss in zip((100.0, 1000.0, 10_000.0), losses)]

    large, middle, small = (SVMRanker(C=C) for C in (10_000.0, 1000.0, 100.0))
    assert next_default(large, {}, tried(3.0, 2.0, 1.0)) == {"C": [100_000.0]}
    assert "C=10000 is the best" in caplog.text
    assert next_default(small, {}, tried(1.0, 2.0, 3.0)) == {"C": [10.0]}
    assert next_default(small, {}, tried(1.0, 1.0, 3.0)) == {}
    assert next_default(middle, {}, tried(2.0, 1.0, 3.0)) == {}
    assert next_default(large, {}, tried(3.0, 2.0, 1.995)) == {}
    assert "by so little that no other is tried" in caplog.text
    assert next_default(large, {"C": [1.0]}, tried(3.0, 2.0, 1.0)) == {}
    farthest = [{"C": 1e6, "loss": 2.0}, {"C": 1e7, "loss": 1.0}]
    assert next_default(SVMRanker(C=1e7), {}, farthest) == {}
    boosted = BoostingReranker(10)
    boosted.n_rounds_ = 10
    assert next_default(boosted, {}, []) == {"n_rounds": [20]}
    boosted.n_rounds_ = 9
    assert next_default(boosted, {}, []) == {}


def test_a_given_value_that_is_best_at_an_end_is_told():
    with pytest.warns(UserWarning, match=r"tau=0\.9 is the best .* largest of those given"):
        warn_of_ends(LowRankReranker(tau=0.9), {"tau": [0.1, 0.5, 0.9]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_ends(LowRankReranker(tau=0.5), {"tau": [0.1, 0.5, 0.9], "lam": [1.0, 2.0]})
