"""Several rerank requests in one: ``/v1/batch``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Struct

from didyma.errors import DataError
from didyma.ranking.ranked import Ranking
from didyma.serve.dialects import COHERE, Dialect, DocumentsAnswer, DocumentsBody, Question
from didyma.serve.errors import DocumentsError

Requests: TypeAlias = Annotated[
    list[DocumentsBody],
    msgspec.Meta(description="Requests as for /v2/rerank; limits hold for all of them together."),
]


class BatchBody(Struct):
    """Rerank requests; ``model`` is that of those which name none."""

    requests: Requests
    model: str | None = None


class BatchAnswer(Struct):
    """The answer to each request, in their order."""

    id: str
    answers: list[DocumentsAnswer]


class BatchDialect(Dialect[Sequence[Question]]):
    """This server's own, around requests and answers as Cohere's."""

    name = "batch"
    body = BatchBody
    answered = BatchAnswer
    error = DocumentsError
    invalid = 400

    def _question(self, body: BatchBody) -> list[Question]:
        questions = []
        for n, request in enumerate(body.requests):
            try:
                question = COHERE._question(request)
            except DataError as error:
                raise DataError(str(error), field=f"request {n}") from None
            questions.append(replace(question, model=question.model or body.model))
        return questions

    def _answer(
        self, id: str, question: Sequence[Question], ranked: Sequence[Ranking]
    ) -> BatchAnswer:
        pairs = zip(question, ranked)
        return BatchAnswer(id, [COHERE._answer(f"{id}-{n}", *own) for n, own in enumerate(pairs)])


BATCH = BatchDialect()
