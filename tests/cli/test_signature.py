from __future__ import annotations

import inspect
from importlib import import_module

import pytest

from didyma.applications.alignment.command import CLASSIFIER
from didyma.applications.clicks.command import MODEL
from didyma.applications.coreference.command import RESOLVER
from didyma.applications.motif.command import FINDER
from didyma.applications.parsing.command import PARSER
from didyma.applications.passages.command import RANKER
from didyma.applications.tagging.command import TAGGER
from didyma.cli.fit import RANKERS
from didyma.cli.groups import ParametersOf
from didyma.cli.nbest import RERANKER
from didyma.cli.rerankers import PARAMETERS
from didyma.cli.serve import LIMITS
from didyma.cli.signature import Parameter, parameters_of

GROUPS = [CLASSIFIER, MODEL, RESOLVER, FINDER, PARSER, RANKER, TAGGER, PARAMETERS, LIMITS]
CLASSES = [*(path for group in GROUPS for path in group.classes.values()), RERANKER]
CLASSES += RANKERS.values()


@pytest.mark.parametrize("path", CLASSES)
def test_the_source_says_what_the_class_does(path: str) -> None:
    module, _, name = path.rpartition(".")
    signature = inspect.signature(getattr(import_module(module), name)).parameters
    read = parameters_of(path)
    assert read.keys() == signature.keys()
    for name, parameter in read.items():
        if not parameter.source.isupper():  # a constant, of no option
            assert parameter.default == signature[name].default


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.classes[""].rpartition(".")[2])
def test_every_option_has_a_help(group: ParametersOf) -> None:
    for option in group.members():
        info = option.annotation.__metadata__[0]
        assert info.help, option.name
        assert "See " not in info.help
        assert "`" not in info.help


def test_choices_and_bounds() -> None:
    grades = Parameter("g", "str", "'auto'", '{"auto", "joint"}', "Which bound.")
    assert grades.choices == ("auto", "joint")
    assert Parameter("m", "Literal['a', 'b']", "'a'", "", "").choices == ("a", "b")
    assert Parameter("t", "str | None", "None", '{"upos", None}', "").choices == ("upos", None)
    assert Parameter("n", "int", "1", "int", "").choices == ()
    assert Parameter("n", "int", "1", "int in [2, 254]", "").bounds == (2, 254)
    assert Parameter("n", "int | None", "None", "int >= 1, optional", "").bounds == (1, None)
    assert Parameter("n", "float", "1.0", "float >= 0.1", "").bounds == (0.1, None)
    assert Parameter("n", "int", "1", "int", "").bounds == (None, None)


def test_help_is_plain_text_in_the_words_of_commands() -> None:
    text = 'Stop by ``eval_set``, as "ap" does; see `didyma.Lists`. It is `fast`.'
    parameter = Parameter("p", "int", "1", "int", text)
    assert parameter.sentences() == "Stop by --dev, as ap does."
    assert parameter.sentences(2) == "Stop by --dev, as ap does. It is fast."


def test_a_subclass_documents_its_own_parameters_only() -> None:
    additive = parameters_of("didyma.ranking.additive.AdditiveSVMRanker")
    assert additive["tol"].description == parameters_of(RANKERS["svm"])["tol"].description
    assert additive["bins"].bounds == (2, 254)
