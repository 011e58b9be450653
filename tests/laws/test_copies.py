"""Whatever is public can be copied, pickled and sent to other processes, also after it was used."""

from __future__ import annotations

import copy
import io
import pickle
import tempfile
from dataclasses import replace
from importlib import import_module
from inspect import isclass
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy.sparse import issparse

import didyma
import didyma.nbest
from didyma import TextReranker
from didyma.applications.clicks import ClickModel
from didyma.applications.clicks import log as click_log
from didyma.applications.coreference.mentions import pair_features
from didyma.applications.coreference.reader import Document, Mention
from didyma.data.attributes import Attributes
from didyma.data.conll import Sentence
from didyma.data.groups import Groups
from didyma.errors import MissingExtraError
from didyma.integrations import RerankEncoder
from didyma.learning import (
    BCFW,
    CCCP,
    Cut,
    NSlack,
    OneSlack,
    Perceptron,
    ProximalBundle,
    PythonProblem,
)
from didyma.metrics import Evaluator, ROCArea, RunEvaluator, compare, evaluate, queries_needed
from didyma.nbest import Bag
from didyma.ranking import Featuriser, Ranked, Ranking, StepEffect
from didyma.report import ModelComparison
from didyma.solvers import Cached, InProcesses
from didyma.structured import StructureTask, TaskProblem
from didyma.structures import (
    AtMost,
    Choice,
    Composition,
    DistanceBins,
    Factor,
    FactorGraph,
    JointTable,
    Plan,
    Tree,
)
from didyma.text import (
    BM25,
    Boost,
    Cascade,
    CascadeRanking,
    Diversity,
    ExtendedFeatures,
    FieldOverlaps,
    Meaning,
    Recency,
    Signals,
    SmallFeatures,
    Target,
    TextFeatures,
    VectorStore,
    distil,
)
from didyma.text.encoders import resolve
from didyma.text.features import FirstStage, WordVectors
from tests.laws.test_distributions import HARD
from tests.laws.test_sparsemap import CASES, instance_of
from tests.model.test_codec import FITTED, LISTS, QID, TEXTS, VECTORS, X, Y
from tests.solvers.cases import CASES as SOLVED
from tests.text.texts import made

torch = pytest.importorskip("torch")

from didyma.nn import (
    BlackboxArgmax,
    FenchelYoungLoss,
    IdentityArgmax,
    ImplicitMLE,
    LocalSparseMAP,
    PerturbedArgmax,
    PerturbedLoss,
    PoolLoss,
    RankingLoss,
    SparseMAP,
    SPOPlusLoss,
    StructureDistribution,
)

PACKAGES = [
    "didyma",
    *(
        f"didyma.{name}"
        for name in (
            "structures",
            "solvers",
            "nn",
            "metrics",
            "ranking",
            "text",
            "nbest",
            "data",
            "structured",
            "polytope",
            "learning",
            "report",
            "integrations",
        )
    ),
]


class Signs(didyma.Task):
    """Is the number positive? The sign of a weight tells."""

    n_features = 1

    def features(self, x, output):
        return np.array([x * output])

    def argmax(self, w, x):
        return 1 if w[0] * x > 0 else -1

    def loss(self, y, output):
        return float(y != output)

    def loss_augmented(self, w, x, y, scale=1.0):
        return max((1, -1), key=lambda output: scale * (output != y) + w[0] * x * output)


class LatentSigns(Signs):
    """The same for learners of what labels do not show."""

    def complete(self, w, x, y):
        return y


class Nearest(PythonProblem):
    """max(0, 1 − w·x) for one x."""

    def cut(self, w, i):
        x = np.array([1.0, 2.0])
        return Cut(-x, 1.0) if w @ x < 1 else Cut(0 * x, 0.0)


class Length(Featuriser):
    """The number of letters."""

    names = ("letters",)

    def fit(self, lists):
        return self

    def transform(self, lists):
        return np.array([[float(len(text))] for text in lists.texts])

    def state(self):
        return {}, {}

    @classmethod
    def from_state(cls, arrays, record):
        return cls()


def last_negatives(i, j, P, N):
    return j / N if i == P - 1 else 0.0


def asked(case):
    """What a structure answers."""
    scores, additional = instance_of(case, "gaussian", 0, batch=2)

    def ask(structure):
        _, solution = didyma.sparsemap(
            scores, structure, return_solution=True, n_jobs=1, **additional
        )
        answers = [solution.marginals, solution.weights, *solution.vjp(scores)]
        answers += [structure.predict(scores, **additional)]
        answers += structure.k_best(scores, 2, **additional)
        if hasattr(structure, "marginals") and not isinstance(structure, HARD_CLASSES):
            answers += [structure.marginals(scores, **additional)]
            answers += [structure.sample(scores, 3, 0, **additional)]
        return answers

    return lambda: case.structure, ask


def solved(name, wrap=lambda structure: structure):
    """What a solver of others answers."""
    structure, outputs = SOLVED[name]()
    scores = -np.random.default_rng(0).random((2, *outputs.shape[1:]))
    return lambda: wrap(structure), lambda one: [one.predict(scores), didyma.sparsemap(scores, one)]


HARD_CLASSES = tuple(type(CASES[name].structure) for name in HARD)
GRAPH = Composition(4, [Factor(Choice(), [0, 1])], edges=[(1, 2)], logic=[AtMost(1, [1, 2, 3])])
FOUR = np.array([0.3, 1.0, 0.9, 0.2])
TREES = np.random.default_rng(0).standard_normal((2, 4, 4))
HEADS = np.array([[-1, 2, 0, 2], [-1, 0, 1, 1]])
WORDS = ["a bell rings", "the ship sails", "who rings the bell"]


def layered(ask):
    """What a module answers, with gradients."""

    def answer(module):
        scores = torch.tensor(TREES, requires_grad=True)
        value = ask(module, scores)
        (gradient,) = torch.autograd.grad(value.sum() if value.ndim else value, scores)
        return [value.detach(), gradient]

    return answer


def plan_of_pairs():
    plan = Plan(n_scores=3)
    plan.add([(0, 1), (1, 2)])
    return plan


# of each document at each position: impressions and clicks
CLICKS = click_log.ClickLog(
    ["who?"],
    np.zeros(2, np.int64),
    ["a", "b"],
    *np.array([(0, 1, 100, 60), (0, 2, 50, 15), (1, 2, 100, 20), (1, 1, 50, 20)]).T,
)


def part(features):
    n = len(TEXTS)
    attributes = Attributes({"title": ["A bell"] * n}, {"clicks": np.arange(n, dtype=float)})
    lists = replace(TEXTS, attributes=attributes)
    return TextFeatures([features]).fit(lists).transform(lists)


def letters(texts):
    return [[text.count(letter) for letter in "aeiou"] for text in texts]


def longest(query, documents):
    return [len(document) for document in documents]


by_length = SimpleNamespace(
    trained_on_=None, predict=lambda lists: np.array([float(len(text)) for text in lists.texts])
)


def cascade():
    return Cascade(TextReranker(quick=True).fit(made(12, n_passages=4)), longest)


def meaning_of(texts):
    return [[len(text), 1.0] for text in texts]


def vectors_of(terms):
    return np.array([VECTORS.get(term, [0.0, 0.0]) for term in terms])


def rank(reranker):
    return [(one.index, one.score) for one in reranker.rank("a bell", WORDS)]


def transform(featuriser):
    return featuriser.transform(TEXTS)


DOCUMENT = Document(
    *("d", "0", ("Anne", "saw", "her")),
    *(np.zeros(3, np.int64), ("",) * 3, (Mention(0, 1, "0"), Mention(2, 3, "1"))),
)
SENTENCES = [["a", "dog"], ["a", "bell"]]
RANKERS = (
    *("AdditiveSVMRanker", "SVMRanker", "ClassificationRanker", "PolynomialRanker"),
    *("LatentPerceptronRanker", "LatentSVMRanker", "RidgeRanker"),
)
TASKS = {
    didyma.StructuredSVM: Signs,
    didyma.StructuredPerceptron: Signs,
    didyma.LatentStructuredSVM: LatentSigns,
    didyma.LatentStructuredPerceptron: LatentSigns,
}
SCALERS = (didyma.QueryMinMaxScaler, didyma.QueryPercentileScaler, didyma.QueryStandardScaler)
SOLVERS = (BCFW, NSlack, OneSlack, ProximalBundle)

# An object of each public class, or of a class of one's own, and what it is asked.
EXAMPLES = {
    **{f"{type(c.structure).__name__}: {name}": asked(c) for name, c in CASES.items()},
    "Milp": solved("milp"),
    "Flow": solved("flow"),
    "Route": solved("route"),
    "SpanningTree": solved("spanning tree"),
    "GraphMatching": solved("perfect matching"),
    "CpSat": solved("cp-sat"),
    "Tour": solved("tour"),
    "Cached": solved("milp", Cached),
    "InProcesses": solved("milp", lambda structure: InProcesses(structure, 1)),
    "Distributions": (
        lambda: didyma.sparsemap(TREES, Tree(), return_solution=True, n_jobs=1)[1],
        lambda one: [one.marginals, one.weights, *one.vjp(TREES), one[0].structures],
    ),
    "JointTable": (lambda: JointTable(2), lambda one: one.marginals([0.5, 1], table=np.eye(2))),
    "Cardinality": (lambda: AtMost(1, [0, ~1]), lambda one: one.holds(np.eye(2))),
    "Factor": (
        lambda: GRAPH.factors[0],
        lambda one: didyma.local_sparsemap(FOUR, Composition(4, [one])).marginals,
    ),
    "Composition": (
        lambda: GRAPH,
        lambda graph: didyma.local_sparsemap(FOUR, graph, pairwise=[0.5]).marginals,
    ),
    "DistanceBins": (lambda: DistanceBins(4), lambda bins: list(bins.indices().values())),
    "Plan": (plan_of_pairs, lambda plan: plan.finish(4).dims),
    "Hypergraph": (
        lambda: plan_of_pairs().finish(4),
        lambda graph: [graph.dims, graph.room, graph.reads(np.zeros((1, 0), int))],
    ),
    "SparseMAP": (lambda: SparseMAP(Tree()), layered(lambda layer, s: layer(s)[..., 1])),
    "SparseMAP: closed form": (
        lambda: SparseMAP(Choice()),
        layered(lambda layer, s: layer(s[:, 0])[..., 1]),
    ),
    **{
        f"FenchelYoungLoss: {kind}": (
            lambda kind=kind: FenchelYoungLoss(Tree(), kind, margin=0.5),
            layered(lambda loss, s: loss(s, HEADS)),
        )
        for kind in ("sparsemap", "crf", "perceptron")
    },
    "LocalSparseMAP": (
        lambda: LocalSparseMAP(GRAPH),
        layered(lambda layer, s: layer(s[0], pairwise=torch.ones(1))[..., 1]),
    ),
    "LocalSparseMAP: factor graph": (
        lambda: LocalSparseMAP(FactorGraph(8, edges=[(0, 1)], logic=[AtMost(2, range(8))])),
        layered(lambda layer, s: layer(s.reshape(2, 8, 2))[..., 1]),
    ),
    "SPOPlusLoss": (lambda: SPOPlusLoss(Tree()), layered(lambda loss, s: loss(s, s.flip(0)))),
    "PerturbedArgmax": (
        lambda: PerturbedArgmax(Tree(), 1e-9),
        layered(lambda layer, s: layer(s)[..., 1] + 0 * s[..., 1]),
    ),
    "PerturbedLoss": (
        lambda: PerturbedLoss(Tree(), 1e-3),
        layered(lambda loss, s: (torch.manual_seed(0), loss(s, torch.zeros_like(s)))[1]),
    ),
    "BlackboxArgmax": (lambda: BlackboxArgmax(Tree()), layered(lambda layer, s: layer(s)[..., 1])),
    "IdentityArgmax": (lambda: IdentityArgmax(Tree()), layered(lambda layer, s: layer(s)[..., 1])),
    "ImplicitMLE": (
        lambda: ImplicitMLE(Tree(), scale=1e-9),
        layered(lambda layer, s: layer(s)[..., 1]),
    ),
    "PoolLoss": (lambda: PoolLoss(Tree()), layered(lambda loss, s: loss(s, s.flip(0)))),
    "RankingLoss": (
        lambda: RankingLoss("ndcg@2"),
        layered(lambda loss, s: loss(s[0, 0], torch.tensor([1, 0, 0, 1]))),
    ),
    "StructureDistribution": (
        lambda: StructureDistribution(Tree(), torch.tensor(TREES)),
        lambda one: [one.entropy(), one.marginals, one.mode, one.log_prob(torch.tensor(HEADS))],
    ),
    "DependencyParser": (
        FITTED["DependencyParser"],
        lambda one: one.arc_scores([Sentence.from_words(["a", "tree"])]),
    ),
    "EntailmentClassifier": (
        FITTED["EntailmentClassifier"],
        lambda one: one.predict_proba([("a dog", "a cat")]),
    ),
    "PassageRanker": (FITTED["PassageRanker"], lambda one: one.predict(TEXTS)),
    "PassageEmbedding": (FITTED["PassageEmbedding"], transform),
    **{name: (FITTED[name], lambda one: one.predict(X)) for name in RANKERS},
    **{
        cls.__name__: (
            lambda cls=cls, task=task: cls(task()).fit([1.0, -2.0], [1, -1]),
            lambda one: one.predict([3.0, -1.0]),
        )
        for cls, task in TASKS.items()
    },
    "CoreferenceResolver": (
        FITTED["CoreferenceResolver"],
        lambda one: one.predict_pairs([pair_features(DOCUMENT)]),
    ),
    "MotifFinder": (FITTED["MotifFinder"], lambda one: one.decision_function(["ACGTAC"])),
    "TrigramTagger": (
        FITTED["TrigramTagger"],
        lambda one: [one.predict(SENTENCES), one.n_best(SENTENCES, 2)],
    ),
    "LowRankReranker": (
        FITTED["LowRankReranker"],
        lambda one: one.similarities(X[:2], [X[:3, :3], X[3:5, :3]]),
    ),
    "BoostingReranker": (
        FITTED["BoostingReranker"],
        lambda one: one.score_candidates([X[:3], X[3:6]]),
    ),
    "NBestReranker": (FITTED["NBestReranker"], lambda one: [one.rerank(LISTS)]),
    "NBestReranker: joint": (FITTED["JointFeatures"], lambda one: [one.rerank(LISTS)]),
    "Reranker": (FITTED["Reranker"], lambda one: one.predict(TEXTS)),
    "TextReranker": (FITTED["TextReranker"], rank),
    "Cascade": (cascade, rank),
    "CascadeRanking": (lambda: CascadeRanking([Ranked(0, 0.5)], ["asked"], 3), vars),
    "CascadeCurve": (
        lambda: cascade().curve(made(6, n_passages=4)),
        lambda curve: [curve.text(), curve.threshold()],
    ),
    "Distillation": (
        lambda: distil(made(12, n_passages=4), longest, TextReranker(quick=True)),
        lambda done: [str(done), *rank(done.reranker)],
    ),
    "RerankEncoder": (
        lambda: RerankEncoder(TextReranker(quick=True).fit(made(12, n_passages=4))),
        lambda one: one.predict([("a bell", text) for text in WORDS]),
    ),
    "Input": (lambda: didyma.nbest.Input("time flies", "NN VBZ"), repr),
    "Output": (lambda: didyma.nbest.Output("NN VBZ", {"lm": -2.5}), repr),
    "StepEffect": (lambda: StepEffect("boost", 0.5, 2, 1, "kind is news"), repr),
    "Boost": (lambda: Boost("kind", "news", 0.2), repr),
    "Diversity": (lambda: Diversity(0.3, "kind"), repr),
    "Recency": (lambda: Recency("date", "30d"), repr),
    "Ranked": (lambda: Ranked(0, 0.5, "d1", "A novel.", {"year": 1815}, raw=2.0), repr),
    "Ranking": (lambda: Ranking([Ranked(0, 0.5, text="A novel.")], ["no vector"]), vars),
    "PassageIndex": (
        lambda: didyma.PassageIndex.build(WORDS, f"{tempfile.mkdtemp()}/index"),
        lambda index: [(one.id, one.score) for one in index.search("bells")],
    ),
    "ObjectEncoder": (
        lambda: resolve(letters),
        lambda encoder: encoder.encode_queries(WORDS),
    ),
    "VectorStore": (
        lambda: VectorStore(tempfile.mkdtemp()),
        lambda store: store.get(letters, WORDS).tolist(),
    ),
    "BM25": (lambda: BM25().fit(WORDS), lambda one: one.top(["bells"], 2)),
    "Bag": (lambda: Bag().fit(LISTS), lambda one: one.transform(LISTS)),
    "Featuriser": (Length, transform),
    "Joined": (FITTED["Joined"], transform),
    "TextFeatures": (FITTED["TextFeatures"], transform),
    **{
        type(one).__name__: (lambda one=one: one, part)
        for one in (
            *(SmallFeatures(), ExtendedFeatures(), FirstStage(), WordVectors(VECTORS)),
            *(Signals(), FieldOverlaps("title"), Meaning(meaning_of)),
        )
    },
    "WordVectors: a callable": (lambda: WordVectors(vectors_of), part),
    **{
        cls.__name__: (
            lambda cls=cls: cls().fit(X, qid=QID),
            lambda one: one.transform(X, qid=QID),
        )
        for cls in SCALERS
    },
    "ScoreBinner": (lambda: didyma.ScoreBinner(3).fit(X), lambda one: one.transform(X)),
    "Schema": (
        lambda: didyma.data.Schema.infer([{"text": "a", "age": 1}, {"text": "b", "age": 2}]),
        lambda schema: [schema.read([{"text": "c", "age": 3}]).attributes.signals["age"]],
    ),
    "Attributes": (
        lambda: didyma.data.Attributes({"title": ["a"]}, {"age": np.ones(1)}),
        lambda one: [one.fields["title"], one.signals["age"]],
    ),
    "Lists": (lambda: didyma.Lists(X, Y, QID), lambda one: [one.X, one.y, one.groups.starts]),
    "Shards": (lambda: didyma.Shards(__file__), lambda one: one.sources(2)),
    "StepLoss": (
        lambda: didyma.StepLoss(positive=last_negatives),
        lambda loss: didyma.SVMRanker(loss=loss).fit(X, Y, qid=QID).coef_,
    ),
    "Evaluation": (
        lambda: evaluate(X[:, 0], Y, qid=QID, measures="AP, nDCG@3"),
        lambda one: [one["AP"], one.mean("nDCG@3")],
    ),
    "Evaluator": (
        lambda: Evaluator(Y, Groups.from_qid(QID), "AP, nDCG@3, Judged@2"),
        lambda one: one(X[:, 0])["nDCG@3"],
    ),
    "RunEvaluator": (
        lambda: RunEvaluator(
            SimpleNamespace(qid=["1", "1"], docid=["a", "b"], relevance=[1, 1]), "AP, Judged@2"
        ),
        lambda one: one(SimpleNamespace(qid=["1", "1"], docid=["a", "c"], score=[2.0, 1.0]))["AP"],
    ),
    "ModelComparison": (
        lambda: ModelComparison.of(by_length, by_length, made(12)),
        ModelComparison.text,
    ),
    "Power": (lambda: queries_needed([0.1, -0.1, 0.2], 0.1), str),
    "Comparison": (lambda: compare([0.2, 0.4], {"new": [0.3, 0.4]})["new"], repr),
    "ROCArea": (lambda: ROCArea, lambda one: evaluate(X[:, 0], Y, qid=QID, measures=one)[one]),
    "TaskProblem": (
        lambda: TaskProblem(Signs(), [1.0, -2.0], [1, -1], np.ones(2)),
        lambda one: one.cut_all(np.zeros(1)),
    ),
    "StructureTask": (
        lambda: StructureTask(Choice(), np.asarray, 2),
        lambda task: task.argmax(np.ones(2), np.arange(6.0).reshape(3, 2)),
    ),
    "Target": (
        lambda: Target.of(np.array([0.5, 1.5]), Groups.from_lists([2])),
        lambda one: [one.grades, one.relevance],
    ),
    "Distribution": (
        lambda: didyma.sparsemap(TREES, Tree(), return_solution=True, n_jobs=1)[1][0],
        lambda one: [one.structures, one.probabilities],
    ),
    "Task": (Signs, lambda task: task.argmax(np.ones(1), 2.0)),
    "PythonProblem": (lambda: Nearest(1, 2), lambda one: one.cut_all(np.zeros(2))),
    "Cut": (lambda: Cut(np.ones(2), 1.0), lambda cut: cut.at(np.ones(2))),
    **{
        cls.__name__: (cls, lambda solver: solver.solve(Nearest(1, 2), C=10.0).w) for cls in SOLVERS
    },
    "Perceptron": (Perceptron, lambda solver: solver.solve(Nearest(1, 2)).w),
    "CCCP": (
        CCCP,
        lambda solver: (
            solver.solve(LatentSigns().problem([1.0, -2.0], [1, -1], np.ones(2)), C=10.0).w
        ),
    ),
    "ClickModel": (
        lambda: ClickModel(bootstrap=0).fit(CLICKS),
        lambda one: [one.examination_.values, one.judge(CLICKS).lists.labels],
    ),
}


# What nobody can have an object of has one of a class of one's own.
ABSTRACT = {
    "Encoder": "ObjectEncoder",
    "Structure": "Window",
    "CFunction": "Window",  # its copies are tested with it
    "Planned": "ShortestPath",
    "Recurrence": "Spaced",
}


def public_classes():
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            try:
                value = getattr(module, name)
            except MissingExtraError:
                continue
            if isclass(value) and not issubclass(value, BaseException):
                yield name


def test_every_public_class_has_an_example():
    covered = {"threads", *(name.partition(":")[0] for name in EXAMPLES)}  # a state of the process
    assert {ABSTRACT.get(name, name) for name in public_classes()} <= covered


def through_torch(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def through_joblib(value):
    file = io.BytesIO()
    joblib.dump(value, file)
    file.seek(0)
    return joblib.load(file)


WAYS = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
    "torch": through_torch,
}


def bits(answer):
    """What two answers must have in common."""
    if isinstance(answer, torch.Tensor):
        answer = answer.detach().numpy()
    if issparse(answer):
        answer = answer.toarray()
    if isinstance(answer, np.ndarray) and answer.dtype != object:
        return answer.dtype, answer.shape, answer.tobytes()
    if isinstance(answer, dict):
        return {key: bits(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple | np.ndarray):
        return [bits(value) for value in answer]
    return repr(answer)


@pytest.fixture(scope="module")
def answered():
    return {}


@pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_copy_of_what_was_used_answers_the_same(name, way, answered):
    make, ask = EXAMPLES[name]
    if name not in answered:
        one = make()
        answered[name] = one, bits(ask(one))
    one, expected = answered[name]
    assert bits(ask(WAYS[way](one))) == expected
    assert bits(ask(one)) == expected
