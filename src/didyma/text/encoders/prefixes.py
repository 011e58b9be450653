"""What some encoders want before a text, by the names of the models."""

from __future__ import annotations

import re
from typing import NamedTuple


class Prefixes(NamedTuple):
    """What stands before a query and before a document."""

    query: str = ""
    document: str = ""


# As the cards of these models say; the first that matches counts.
KNOWN = {
    r"e5-.*instruct": Prefixes(
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
        "Query: "
    ),
    r"(^|[/_-])e5-(small|base|large)": Prefixes("query: ", "passage: "),
    r"bge-(small|base|large)-en": Prefixes(
        "Represent this sentence for searching relevant passages: "
    ),
    r"mxbai-embed|snowflake-arctic-embed-(xs|s|m|l)($|[^-])": Prefixes(
        "Represent this sentence for searching relevant passages: "
    ),
    r"nomic-embed-text": Prefixes("search_query: ", "search_document: "),
}


def prefixes_of(model: str) -> Prefixes:
    """The prefixes of a model, by its name; none if it is not listed.

    >>> prefixes_of("intfloat/multilingual-e5-small")
    Prefixes(query='query: ', document='passage: ')
    >>> prefixes_of("sentence-transformers/all-MiniLM-L6-v2")
    Prefixes(query='', document='')
    """
    name = model.lower()
    return next((prefixes for rule, prefixes in KNOWN.items() if re.search(rule, name)), Prefixes())
