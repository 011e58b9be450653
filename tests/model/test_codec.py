"""Every class that a model file may name: files of 0.2.0 are read, and wrong sizes are refused."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import didyma
from didyma import model
from didyma.applications.coreference.mentions import FEATURES
from didyma.applications.coreference.resolver import CoreferenceResolver
from didyma.applications.motif.finder import MotifFinder
from didyma.applications.tagging.tagger import TrigramTagger
from didyma.data.conll import Field, Sentence
from didyma.data.lists import Lists
from didyma.errors import ModelFileError
from didyma.model import CLASSES, Model
from didyma.nbest.bags import GivenVectors
from didyma.nbest.boosting import BoostingReranker
from didyma.nbest.formats import Output, of_outputs
from didyma.nbest.low_rank import LowRankReranker
from didyma.nbest.reranker import NBestReranker
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.classification import ClassificationRanker, PolynomialRanker
from didyma.ranking.featuriser import Joined
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker
from didyma.ranking.ridge import RidgeRanker
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler, QueryStandardScaler
from didyma.ranking.svm import SVMRanker
from didyma.report.inspection import model_summary
from didyma.structured.learners import (
    LatentStructuredPerceptron,
    LatentStructuredSVM,
    StructuredPerceptron,
    StructuredSVM,
)
from didyma.text.cascade import Cascade
from didyma.text.features import (
    ExtendedFeatures,
    FirstStage,
    SmallFeatures,
    TextFeatures,
    WordVectors,
)
from didyma.text.reranker import Reranker
from didyma.text.text_reranker import TextReranker
from tests.text.texts import made

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 5))
Y = np.tile([1.0, 0.0, 0.0], 8)
QID = np.repeat(np.arange(4), 6)
LISTS = of_outputs(
    ["the ring", "they ring"],
    [["DT VB", "DT NN"], ["PR VB", "PR NN"]],
    scores=[[-3.0, -4.0], [-3.0, -4.0]],
    references=["DT NN", "PR VB"],
)
TEXTS = didyma.Lists.of_texts(
    ["a ring", "who rings", "a bell"],
    [["the ring", "a cat"], ["they ring", "it is late"], ["a dog", "the bell"]],
    [[1, 0], [1, 0], [0, 1]],
    [[2, 1], [1, 2], [1, 2]],
)
VECTORS = {"ring": [1.0, 0.0], "bell": [0.8, 0.6], "ship": [0.0, 1.0]}


def weighted(estimator: Any, **learned: Any) -> Any:
    """An estimator that has learned this, without the time to learn it."""
    for name, value in learned.items():
        setattr(estimator, name, value)
    return estimator


def parser() -> Any:
    from didyma.applications.parsing.parser import DependencyParser

    words = Sentence.from_words(["a", "small", "tree"])
    columns = {Field.UPOS: ["X"] * 3, Field.HEAD: [0, 1, 2], Field.DEPREL: ["root", "x", "x"]}
    trees = [words.replaced(columns)]
    sizes = {"word_size": 4, "tag_size": 3, "hidden": 5, "mlp": 6, "layers": 2}
    return DependencyParser(epochs=1, **sizes).fit(trees)


def classifier() -> Any:
    from didyma.applications.alignment.esim import EntailmentClassifier

    pairs = [("a dog", "a cat"), ("a dog", "a dog")]
    return EntailmentClassifier(epochs=1, dimension=3, hidden=4).fit(pairs, ["no", "yes"])


def passages() -> Any:
    from didyma.applications.passages.ranker import PassageRanker

    asked = Lists.of_texts(["who is it"] * 2, [["it is me", "it is late"]] * 2, [[1, 0]] * 2)
    sizes = {"dimension": 3, "filters": 4, "hidden": 5, "width": 2, "overlap": 2}
    return PassageRanker(epochs=1, **sizes).fit(asked)


def embedding() -> Any:
    from didyma.applications.passages.ranker import PassageEmbedding

    return PassageEmbedding(passages())


def reranker() -> Any:
    return Reranker(joined(), SVMRanker(C=1.0)).fit(TEXTS)


def cascade() -> Cascade:
    reranker = TextReranker(quick=True).fit(made(12, n_passages=4))
    return Cascade(reranker, "http://localhost/v2/rerank", threshold=0.5)


def joined() -> Joined:
    texts = [TextFeatures([ExtendedFeatures(), FirstStage()]), TextFeatures([SmallFeatures()])]
    return Joined(texts).fit(TEXTS)


def rows(estimator: Any) -> Any:
    return estimator.fit(X, Y, qid=QID)


FITTED: dict[str, Callable[[], Any]] = {
    "AdditiveSVMRanker": lambda: rows(AdditiveSVMRanker(bins=4)),
    "SVMRanker": lambda: rows(SVMRanker()),
    "ClassificationRanker": lambda: rows(ClassificationRanker()),
    "LatentPerceptronRanker": lambda: rows(LatentPerceptronRanker(epochs=2)),
    "LatentSVMRanker": lambda: rows(LatentSVMRanker(C=0.1)),
    "PolynomialRanker": lambda: rows(PolynomialRanker()),
    "RidgeRanker": lambda: rows(RidgeRanker()),
    "CoreferenceResolver": lambda: weighted(
        CoreferenceResolver(),
        coef_=np.ones(len(FEATURES)),
        objective_trace_=[1.0],
        n_documents_=1,
        n_features_in_=len(FEATURES),
        feature_names_in_=np.array(FEATURES, dtype=object),
    ),
    "MotifFinder": lambda: weighted(
        MotifFinder(length=3, order=1),
        coef_=np.ones(28),
        counts_=np.ones((3, 4)),
        frequencies_=np.full(4, 0.25),
        objective_trace_=[1.0],
    ),
    "TrigramTagger": lambda: TrigramTagger().fit([["a", "dog"], ["a"]], [["X", "Y"], ["X"]]),
    "LowRankReranker": lambda: LowRankReranker("generative", n_components=2, weight=50.0).fit(
        X, RNG.normal(size=(24, 3))
    ),
    "BoostingReranker": lambda: BoostingReranker(3).fit([X[:3], X[3:6]], [[0, 1, 2], [1, 0, 2]]),
    "NBestReranker": lambda: NBestReranker("perceptron").fit(LISTS),
    "DependencyParser": parser,
    "EntailmentClassifier": classifier,
    "PassageRanker": passages,
    **{
        cls.__name__: lambda cls=cls: weighted(cls(task=None), coef_=np.ones(4))
        for cls in (
            *(LatentStructuredPerceptron, LatentStructuredSVM),
            *(StructuredPerceptron, StructuredSVM),
        )
    },
    "Cascade": cascade,
    "Reranker": reranker,
    "TextReranker": lambda: TextReranker(vectors=VECTORS).fit(made(12, n_passages=4)),
    "Joined": joined,
    "PassageEmbedding": embedding,
    "TextFeatures": lambda: TextFeatures([WordVectors(VECTORS)]).fit(TEXTS),
    "Bag": lambda: NBestReranker().fit(LISTS),
    "JointFeatures": lambda: NBestReranker("boosting").fit(LISTS),
    "GivenVectors": lambda: GivenVectors().fit(
        Lists([Output("NN", vector=np.arange(3.0)), Output("VB", vector=np.ones(3))])
    ),
    "ScoreBinner": lambda: make_pipeline(ScoreBinner(3), ClassificationRanker()).fit(X, Y),
    **{
        cls.__name__: lambda cls=cls: make_pipeline(cls(), ClassificationRanker()).fit(X, Y)
        for cls in (
            *(QueryMinMaxScaler, QueryPercentileScaler, QueryStandardScaler),
            *(MaxAbsScaler, MinMaxScaler, StandardScaler),
        )
    },
    "Pipeline": lambda: make_pipeline(StandardScaler(with_std=False), SVMRanker()).fit(X, Y),
}


def test_every_class_has_an_example() -> None:
    assert set(FITTED) == set(CLASSES)


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return {}


@pytest.fixture(params=sorted(CLASSES))
def fitted(request: pytest.FixtureRequest, models: dict[str, Model]) -> Model:
    if request.param not in models:
        models[request.param] = Model.of(FITTED[request.param]())
    return models[request.param]


def refused(damaged: Model, path: Path) -> bool:
    """Whether the file is refused by a ModelFileError, without much memory."""
    damaged.write(path)
    tracemalloc.start()
    try:
        didyma.load(path)
    except ModelFileError:
        return True
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2**24
    return False


def test_what_is_whole_is_read(fitted: Model, tmp_path: Path) -> None:
    assert not refused(fitted, tmp_path / "m")


# Lengths that nothing else tells: of the weights of a task that the file does not hold, and of the
# trace of a training.
FREE = {
    **dict.fromkeys(("LatentStructuredPerceptron", "LatentStructuredSVM"), ("coef_",)),
    **dict.fromkeys(("StructuredPerceptron", "StructuredSVM"), ("coef_",)),
    "LatentSVMRanker": ("objective_trace_",),
    "LowRankReranker": ("slacks_", "B_"),
    "NBestReranker": ("model_/slacks_",),
}


def test_an_array_of_another_shape_is_refused(fitted: Model, tmp_path: Path) -> None:
    for name, array in fitted.tensors.items():
        longer = np.concatenate([array, array])
        for wrong in (array[None], longer, array[:0], array.ravel()[:0]):
            free = name in FREE.get(fitted.name, ()) and wrong.ndim == array.ndim
            if wrong.shape != array.shape and not free:
                damaged = Model(fitted.record, {**fitted.tensors, name: wrong}, {})
                assert refused(damaged, tmp_path / "m"), (name, wrong.shape)


def test_an_array_that_is_missing_is_refused(fitted: Model, tmp_path: Path) -> None:
    for name in fitted.tensors:
        fewer = {key: array for key, array in fitted.tensors.items() if key != name}
        assert refused(Model(fitted.record, fewer, {}), tmp_path / "m"), name


def parts(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield record
    for part in (*(part for _, part in record.get("steps", [])), *record.get("parts", {}).values()):
        yield from parts(part)


# What parameters and lists say about the sizes of arrays.
DECLARED = {
    "DependencyParser": (
        *("hidden", "layers", "mlp", "word_size", "tag_size"),
        *("words_", "tags_", "labels_"),
    ),
    "EntailmentClassifier": ("hidden", "words_", "classes_"),
    "PassageRanker": ("filters", "hidden", "width", "overlap", "words_"),
    "MotifFinder": ("length", "order"),
    "TrigramTagger": ("tags_", "words_", "suffixes_"),
    "JointFeatures": ("number_names_",),
}


@pytest.mark.parametrize("size", [0, 15_000, 10_000_000, 10**30])
def test_a_declared_size_that_is_wrong_is_refused(fitted: Model, tmp_path: Path, size: int) -> None:
    for k, part in enumerate(parts(fitted.record)):
        counted = part.get("n_features") is not None and not part["class"].startswith("Query")
        names = ["n_features"] * (counted and part["class"] != "ScoreBinner")
        for name in (*names, *DECLARED.get(part["class"], ())):
            record = deepcopy(fitted.record)
            own = list(parts(record))[k]
            if name == "n_features":
                own[name] = size
            elif name.endswith("_"):
                if len(own["attributes"][name]) == size:
                    continue
                own["attributes"][name] = [f"t{i}" for i in range(min(size, 15_000))]
            else:
                own["parameters"][name] = size
            assert refused(Model(record, fitted.tensors, {}), tmp_path / "m"), name


def test_concepts_are_a_bounded_part_of_a_file(tmp_path: Path) -> None:
    """Words as frequent as in natural texts: each has its strongest entries, three bytes each."""
    rng = np.random.default_rng(0)
    n_lists, n_passages, n_words = 200, 10, 60
    words = (rng.pareto(0.7, (n_lists, n_passages, n_words)) * 3).astype(np.int64) % 20_000
    passages = [[" ".join(f"w{n}" for n in text) for text in own.tolist()] for own in words]
    lists = Lists.of_texts(["w1 w2"] * n_lists, passages)
    Model.of(TextFeatures([ExtendedFeatures()], None).fit(lists)).write(path := tmp_path / "m")
    sizes = model_summary(path, 0)["bytes_of"]
    n_stems = len(np.unique(words))
    occurring = sum(len(np.unique(own)) for own in words)
    entries = sum(min(32, len(np.unique(np.nonzero(words == n)[0]))) for n in np.unique(words))
    assert sizes["concepts"] == 3 * entries + 8 * n_stems + 4
    assert sizes["concepts"] < 0.6 * 6 * occurring
    assert sizes["words and their counts"] < 40 * n_stems
    assert sum(sizes.values()) <= path.stat().st_size


def test_a_small_file_cannot_ask_for_a_large_network(tmp_path: Path) -> None:
    small = Model.of(parser())
    for name, size in (("hidden", 15_000), ("layers", 10_000_000)):
        record = deepcopy(small.record)
        record["parameters"][name] = size
        path = tmp_path / "m"
        Model(record, small.tensors, {}).write(path)
        assert path.stat().st_size < 30_000
        with pytest.raises(ModelFileError, match=f"^{path}: the model cannot be restored"):
            didyma.load(path)
        assert model.describe(path)["parameters"][name] == size
        json.dumps(model.describe(path))


# Files that 0.2.0 has written of the models in FITTED; answers.json has what `answers` gave then.
FOLDER = Path(__file__).parents[1] / "model_files"
QUERY, PASSAGES = "who rings ?", ["They ring .", "It is late .", "A bell ."]

NEW = {"Cascade", "RidgeRanker"}  # which 0.2 has not


def answers(model: Any) -> Any:
    """What a model says of some input that is the same for all models of its kind."""
    name = type(model).__name__
    if name in ("TextReranker", "Reranker", "PassageRanker"):
        if name == "TextReranker":
            model.attach(VECTORS)
        scores = {"scores": [2.0, 1.0, 3.0]} if getattr(model, "uses_scores", False) else {}
        return [getattr(own, "raw", own.score) for own in model.rank(QUERY, PASSAGES, **scores)]
    if name == "TextFeatures":
        for part in model.parts:
            part.attach(VECTORS)
    if name in ("TextFeatures", "Joined", "PassageEmbedding"):
        return model.transform(TEXTS).tolist()
    if name == "NBestReranker":
        return model.predict(LISTS).tolist()
    if name == "TrigramTagger":
        return [own for _, own in model.n_best([["a", "dog", "sleeps"]], 2)[0]]
    if name == "MotifFinder":
        return model.decision_function(["ACGTACGT", "TTTACG"]).tolist()
    if name == "EntailmentClassifier":
        return model.predict_proba([("a dog", "a bird")]).tolist()
    if hasattr(model, "n_features_in_") and hasattr(model, "predict"):
        n = model.n_features_in_
        if name == "CoreferenceResolver":
            return model.coef_.tolist()
        return model.predict(np.sin(np.arange(6.0 * n)).reshape(6, n)).tolist()
    return []


@pytest.mark.parametrize("name", sorted(set(CLASSES) - NEW))
def test_a_file_of_0_2_answers_as_it_did(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.safetensors"
    written = Model.read(path)
    assert (written.format_version, written.library_version) == (1, "0.2.0")
    model = didyma.load(path)
    expected = json.loads((FOLDER / "answers.json").read_text())[name]
    np.testing.assert_allclose(answers(model), expected, rtol=1e-6, atol=1e-9)
    again = Model.of(didyma.load(path))
    if name == "MotifFinder":  # the length of the background's words was meant, one more
        written.record["parameters"]["order"] -= 1
    assert without_new_parameters(again.record, written.record) == written.record
    assert again.tensors.keys() == written.tensors.keys()
    for key, array in written.tensors.items():
        np.testing.assert_array_equal(again.tensors[key], array)
    again.write(tmp_path / "again")
    assert Model.read(tmp_path / "again").record == again.record


def without_new_parameters(record: Any, old: Any) -> Any:
    """A record without the parameters that its classes had not yet when another was written."""
    if isinstance(record, list) and isinstance(old, list):
        return [without_new_parameters(*pair) for pair in zip(record, old, strict=True)]
    if not (isinstance(record, dict) and isinstance(old, dict)):
        return record
    return {
        key: {name: part[name] for name in part if name in old[key]}
        if key == "parameters" and key in old
        else without_new_parameters(part, old.get(key))
        for key, part in record.items()
    }
