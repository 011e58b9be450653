"""Requests that change what is served or stored: who sends them has a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from didyma.judgements import Judgement
from didyma.serve.dialects import Dialect
from didyma.serve.errors import DocumentsError, HTTPError

if TYPE_CHECKING:
    from didyma.serve.app import Service

NO_TOKENS = "expected a server with tokens (--token-file): without them nobody may change anything"


class Operation(Struct):
    """The body of such a request."""

    def run(self, service: Service, fields: dict[str, Any]) -> Any:
        """Do it, if requests need a token; ``fields`` are for the log."""
        if not len(service.tokens):
            raise HTTPError(403, NO_TOKENS)
        return self._run(service, fields)

    def _run(self, service: Service, fields: dict[str, Any]) -> Any:
        raise NotImplementedError


class Rollback(Operation):
    """Serve an earlier version of a model again: a given one that is kept, or the one before."""

    model: str | None = None
    version: str | None = None

    def _run(self, service: Service, fields: dict[str, Any]) -> RollbackAnswer:
        name = service.models.resolve(self.model)
        before = service.models.by_name[name].version
        model = service.models.roll_back(name, self.version)
        fields |= {"model": name, "version": model.version, "before": before}
        service.metrics.reloads.labels(name, "rolled back").inc()
        return RollbackAnswer(name, model.version, before)


class RollbackAnswer(Struct):
    """The version that is served, and the one that was."""

    model: str
    version: str
    before: str


class GivenJudgement(Struct):
    """A judgement; ``label`` null takes back what the same judge has said before."""

    query: str
    document: str
    label: float | None
    who: str = ""
    why: str = ""
    shown: list[str] = []
    text: str | None = None
    qid: str | None = None


class Judging(Operation):
    """Judgements for the store of the server."""

    judgements: list[GivenJudgement]

    def _run(self, service: Service, fields: dict[str, Any]) -> JudgingAnswer:
        if service.judgements is None:
            raise HTTPError(404, "expected a server that keeps judgements (--judgements)")
        service.limits.check_documents(len(self.judgements))
        said = [Judgement.of(to_builtins(own)) for own in self.judgements]
        fields["judgements"] = service.judgements.add(said)
        return JudgingAnswer(len(said))


class JudgingAnswer(Struct):
    """How many were stored."""

    stored: int


class OperationDialect(Dialect[Operation]):
    """This server's own."""

    error = DocumentsError
    invalid = 400
    summary: str

    def _question(self, body: Any) -> Operation:
        operation: Operation = body
        return operation

    def _answer(self, id: str, question: Operation, ranked: Any) -> Any:
        return ranked


class RollbackDialect(OperationDialect):
    """``/v1/rollback``."""

    name = "rollback"
    body = Rollback
    answered = RollbackAnswer
    summary = "Serve an earlier version of a model again."


class JudgingDialect(OperationDialect):
    """``/v1/judgements``."""

    name = "judgements"
    body = Judging
    answered = JudgingAnswer
    summary = "Add judgements to the store of the server."


OPERATIONS: dict[str, OperationDialect] = {
    "/v1/rollback": RollbackDialect(),
    "/v1/judgements": JudgingDialect(),
}
