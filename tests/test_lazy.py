"""Names that are found when they are used, and those of the version before."""

from __future__ import annotations

from importlib import import_module

import pytest

from didyma import features, formats, learning, nn, report, structures

FORMER = {
    features: ["BM25", "Bag", "Featuriser", "Joined", "SmallFeatures", "TextFeatures"],
    formats: ["conll", "click_log", "coreference", "fasta", "letor", "nbest", "nli", "qa", "read"],
    learning: ["ClickModel"],
    nn: ["DependencyParser", "EntailmentClassifier", "PassageEmbedding", "PassageRanker"],
    report: ["heat_maps", "save_logo"],
    structures: ["HigherOrderSequence", "Path", "Sequence"],
}


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package in FORMER for name in FORMER[package]]
)
def test_a_former_name_works_and_says_where_the_thing_is_now(package, name):
    with pytest.warns(DeprecationWarning, match=rf"{package.__name__}\.{name} is ") as warnings:
        value = getattr(package, name)
    path = str(warnings[0].message).split()[2]
    home, _, attribute = path.rpartition(".")
    assert value is getattr(import_module(home), attribute)
    assert name not in getattr(package, "__all__", [])


def test_what_never_was_is_an_attribute_error():
    for package in FORMER:
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            package.nothing  # noqa: B018
