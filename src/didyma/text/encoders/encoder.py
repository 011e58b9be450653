"""The interface of sentence encoders: texts become vectors of unit length."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.execution import check_interruption
from didyma.lazy import cached_property
from didyma.model import Saved, Serialisable
from didyma.values import kind_of

# Short and long, several scripts, a number and a sign: what tokenisers and prefixes disagree about.
PROBES = (
    "when do swifts sleep?",
    "Swifts sleep on the wing, at heights of up to 3,000 m; young ones do so for two years.",
    "Ein Fluß, der im Sommer versiegt. Река, 河流, نهر",
)
SAME = 0.9999  # least cosine of two vectors of a probe by one encoder on two machines


@dataclass(frozen=True, eq=False)
class Fingerprint(Serialisable):
    """Vectors of `PROBES` as queries, then as documents; shape (2 × n_probes, dimension).

    Machines, numbers of threads and sizes of batches change the last digits of a vector, so two
    fingerprints are the same if the cosines of their rows are all at least .9999. Another model,
    another prefix or another way of pooling moves some row by more than that.

    >>> first = Fingerprint(np.eye(2, 3, dtype=np.float32))
    >>> first.matches(Fingerprint(first.vectors + np.float32(1e-3)))
    True
    >>> first.matches(Fingerprint(first.vectors[::-1])), first.matches(Fingerprint(np.eye(2)))
    (False, False)
    """

    vectors: Annotated[NDArray[np.float32], Saved("probes", "dimension")]

    def matches(self, other: Fingerprint) -> bool:
        """Whether both are of one encoder."""
        if self.vectors.shape != other.vectors.shape:
            return False
        lengths = np.linalg.norm(self.vectors, axis=1) * np.linalg.norm(other.vectors, axis=1)
        products = np.einsum("ij,ij->i", self.vectors, other.vectors)
        both_zero = ~self.vectors.any(axis=1) & ~other.vectors.any(axis=1)
        return bool((both_zero | ((products >= SAME * lengths) & (lengths > 0))).all())

    def _check_state(self) -> None:
        if self.vectors.ndim != 2 or not np.isfinite(self.vectors).all():
            raise ValueError("expected vectors of finite numbers as a fingerprint")


Side: TypeAlias = Literal["query", "document"]


class Encoder(ABC):
    """A function from texts to vectors; the dot product of two is the cosine of their meanings.

    Queries and documents are two methods, since many encoders want another prefix before each. A
    subclass has a ``name`` and says what the vectors are; scaling to unit length, the cut into
    batches and all checks are done here.

    >>> class Letters(Encoder):
    ...     name = "letters"
    ...     def _encode(self, texts, side):
    ...         return [[text.count(letter) for letter in "abc"] for text in texts]
    >>> encoder = Letters()
    >>> encoder.encode_documents(["bed", "abba"]) @ encoder.encode_queries(["a"])[0]
    array([0.        , 0.70710677], dtype=float32)

    Attributes
    ----------
    name : str
        What `resolve` makes it from, or a description of the object that it wraps.
    dimension : int
        Length of a vector.
    fingerprint : Fingerprint
        Its vectors of a few fixed texts, by which it is known again.
    is_static : bool
        Whether the vector of a text is a mean of those of its words, so that a single word has one.
    is_restorable : bool
        Whether the name of the installed package is all that it takes to have it again: such an
        encoder is found by itself when a model is loaded. Others are attached by the user, since a
        file must not decide what is downloaded or which server is asked.
    """

    name: str
    batch_size: ClassVar[int] = 64
    is_static: bool = False
    is_restorable: ClassVar[bool] = False

    @abstractmethod
    def _encode(self, texts: list[str], side: Side) -> Any:
        """The vectors of some texts, one each, of any length but zero."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, of unit length; shape (n_texts, dimension)."""
        return self.encode(texts, "query")

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, of unit length; shape (n_texts, dimension)."""
        return self.encode(texts, "document")

    def encode(self, texts: Sequence[str], side: Side) -> NDArray[np.float32]:
        """Vectors of one side, of unit length; a text without any meaning may have zeros."""
        if isinstance(texts, str):
            raise DataError("expected several texts, found a single one", field="encoder")
        if not len(texts):
            return np.zeros((0, self.dimension), np.float32)
        vectors = []
        for start in range(0, len(texts), self.batch_size):
            check_interruption()
            batch = [_readable(text) for text in texts[start : start + self.batch_size]]
            vectors.append(self._unit(self._encode(batch, side), len(batch)))
        if len({part.shape[1] for part in vectors}) > 1:
            raise self._error("expected vectors of one length")
        return np.concatenate(vectors)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Its vectors of a few fixed texts, by which it is known again."""
        sides: tuple[Side, ...] = ("query", "document")
        return Fingerprint(np.concatenate([self.encode(PROBES, side) for side in sides]))

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.fingerprint.vectors.shape[1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _error(self, problem: str) -> DataError:
        return DataError(problem, field=f"encoder {self.name}")

    def _unit(self, answer: Any, n: int) -> NDArray[np.float32]:
        """What a model has answered, checked and scaled to unit length."""
        try:
            vectors = _array(answer)
        except (TypeError, ValueError):
            vectors = np.zeros(0, np.float32)
        if vectors.ndim != 2 or len(vectors) != n or not vectors.shape[1]:
            shape = getattr(answer, "shape", None)
            kind = kind_of(answer) if shape is None else f"an array of shape {tuple(shape)}"
            raise self._error(f"expected {n} vectors of one length, found {kind}")
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise self._error(f"expected finite numbers, found others in vector {row + 1} of {n}")
        lengths = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
        lengths[lengths == 0] = 1
        return (vectors / lengths).astype(np.float32)


class Prefixes(NamedTuple):
    """What an encoder wants before a query and before a document."""

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


class PrefixedEncoder(Encoder):
    """An encoder that wants prefixes before queries and documents."""

    query_prefix: str
    document_prefix: str

    def _use_prefixes(self, usual: Prefixes, query: str | None, document: str | None) -> None:
        self.query_prefix = usual.query if query is None else query
        self.document_prefix = usual.document if document is None else document

    def _prefixed(self, texts: list[str], side: Side) -> list[str]:
        prefix = self.query_prefix if side == "query" else self.document_prefix
        return [prefix + text for text in texts]


def _readable(text: Any) -> str:
    """A text that every tokeniser can read: halves of surrogate pairs become question marks."""
    if not isinstance(text, str):
        raise DataError(f"expected a text, found {kind_of(text)}", field="encoder")
    return text.encode("utf-8", "replace").decode()


def _array(answer: Any) -> NDArray[np.float32]:
    """The numbers of an array, a tensor, a list, or a generator of vectors."""
    if hasattr(answer, "detach"):  # a tensor, perhaps of another device
        answer = answer.detach().cpu().float()
    elif isinstance(answer, Iterable) and not hasattr(answer, "shape"):
        answer = [_array(vector) if hasattr(vector, "detach") else vector for vector in answer]
    return np.asarray(answer, np.float32)
