"""`didyma serve`: a reranker behind the interfaces that clients already call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from didyma.cli import options
from didyma.cli.groups import ParametersOf, command
from didyma.cli.rerankers import AskedTeacher, Embedding, Trust
from didyma.cli.steps import AfterRanking
from didyma.errors import MissingExtraError

if TYPE_CHECKING:
    from didyma.serve.samples import SampleFile
    from didyma.serve.served import ServedModels

LIMITS = ParametersOf(
    "didyma.serve.limits.Limits",
    {
        "Limits": [
            *("body", "documents", "characters", "text", "seconds"),
            *("waiting", "connections", "in_flight"),
        ]
    },
    prefix="max_",
)
ACCESS = "Who may ask"


@dataclass(frozen=True)
class Watching:
    """Shadow models, and a sample of requests."""

    PANEL: ClassVar[str] = "Watching"

    shadows: Annotated[
        list[str] | None,
        options.text(
            "NAME=FILE",
            "A model that ranks the requests to the model NAME as well, after their answers, and "
            "is not answered; FILE alone is for the model without a name. May be given again.",
            "--shadow",
        ),
    ] = None
    sample: Annotated[
        float, options.number("Share of requests to keep, to be judged.", min=0, max=1)
    ] = 0.0
    sample_file: Annotated[
        Path | None, options.file("Where they are kept, with all texts: JSON lines (.jsonl).")
    ] = None
    sample_bytes: Annotated[
        int, options.number("Nothing is written once the file is as large.", min=1)
    ] = 100 << 20
    redact: Annotated[
        str | None,
        options.text(
            "MODULE:FUNCTION",
            "A function of your own, imported and called with each request of the sample: it "
            "returns what may be kept, or None.",
        ),
    ] = None

    def samples(self) -> SampleFile | None:
        """The file of the sample, if there is one."""
        from didyma.serve.samples import SampleFile, redaction

        if self.sample_file is None:
            if self.sample or self.redact is not None:
                raise typer.BadParameter("is needed", param_hint="--sample-file")
            return None
        if not self.sample:
            raise typer.BadParameter("give a share", param_hint="--sample")
        redact = None if self.redact is None else redaction(self.redact)
        return SampleFile(self.sample_file, self.sample, self.sample_bytes, redact)

    def shadow_models(self, served: ServedModels, load: Any) -> ServedModels:
        """Shadow models by the names of those whose requests they rank."""
        from didyma.serve.served import NamedSource, ServedModels

        sources = [NamedSource.of(shadow) for shadow in self.shadows or []]
        named = [source._replace(name=source.name or served.default) for source in sources]
        for source in named:
            if source.name not in served.by_name:
                names = ", ".join(served.by_name)
                raise typer.BadParameter(
                    f"expected one of the models {names}, found {source.name}",
                    param_hint="--shadow",
                )
        return ServedModels(named, load, keep=0)


@command
def serve(
    *,
    models: Annotated[
        list[str] | None,
        options.argument(
            "MODEL",
            "Model files of didyma rerank fit, each as FILE or NAME=FILE. One without a name "
            "answers to every name that no other has.",
            default=False,
        ),
    ] = None,
    indexes: Annotated[
        list[str] | None,
        options.text(
            "NAME=FOLDER",
            "An index of didyma index to search, or NAME= and the address of a search engine (as "
            "of didyma ask --from), named as models are; may be given again. Without a model, "
            "passages are in the order of the search.",
            "--index",
        ),
    ] = None,
    host: Annotated[
        str, options.text("ADDRESS", "Address to listen on.", panel=ACCESS)
    ] = "127.0.0.1",
    port: Annotated[int, options.number("Port; 0 takes a free one.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        options.file(
            "Tokens, one a line, of which a request must have one. DIDYMA_TOKENS in the "
            "environment adds others, separated by spaces.",
            panel=ACCESS,
        ),
    ] = None,
    insecure: Annotated[
        bool, options.flag("--insecure", "Let other machines ask without a token.", ACCESS)
    ] = False,
    allowed_hosts: Annotated[
        list[str] | None,
        options.text(
            "NAME",
            "A name that the server may be asked for by (Host, and Origin of web pages); may be "
            "given again. On a loopback address localhost, 127.0.0.1 and \\[::1] are allowed, "
            "elsewhere every name if none is given.",
            "--allowed-host",
            panel=ACCESS,
        ),
    ] = None,
    trust: Trust = None,
    embedding: Embedding,
    asked: AskedTeacher,
    after: AfterRanking,
    jobs: options.Jobs = None,
    keep: Annotated[
        int,
        options.number(
            "Earlier versions of each model that are kept in memory, to roll back to "
            "(POST /v1/rollback, with a token).",
            min=0,
            metavar="K",
        ),
    ] = 3,
    judgements: Annotated[
        Path | None,
        options.text(
            "FOLDER",
            "Keep judgements of the page, and of POST /v1/judgements, in this folder (didyma "
            "judge); who sends them needs a token.",
            default="they are not kept",
        ),
    ] = None,
    watching: Watching,
    log_queries: Annotated[
        bool, options.flag("--log-queries", "Write queries into the log.")
    ] = False,
    limits: Annotated[dict[str, Any], LIMITS],
) -> None:
    """Answer the rerank requests of Cohere's, Jina's, vLLM's and TEI's clients, and searches.

    Give a client the address of this server in place of its service's:
    POST …/v2/rerank is Cohere's, …/v1/rerank and /rerank are Jina's and vLLM's,
    and with "texts" in place of "documents" TEI's. POST /v1/search finds
    passages of an index. GET /health, /ready, /info, /metrics (Prometheus) and
    /openapi.json tell about the server. "explain": true in a request adds to
    each result what every feature adds to its score.

    Files that change on disk are loaded again (on SIGHUP all of them), and no
    request is lost. On SIGTERM or Ctrl-C the server answers the requests that
    have begun, and ends. Its log, on stderr, has one JSON object on each line.

    [bold]Examples[/bold]

    didyma serve model.didyma.safetensors

    didyma serve news=news.safetensors law=law.safetensors --host 0.0.0.0 --token-file tokens.txt

    didyma serve model.didyma.safetensors --index notes=notes.index

    didyma serve model.didyma.safetensors --shadow new.safetensors

    didyma serve cascade.didyma.safetensors --teacher http://localhost:8080/rerank

    curl localhost:8000/v2/rerank -d '{"query": "…", "documents": ["…", "…"]}'
    """
    try:
        from didyma.serve.access import AllowedHosts, BearerTokens, check_host
        from didyma.serve.app import Service
        from didyma.serve.limits import Limits
        from didyma.serve.logs import log_to_stderr
        from didyma.serve.served import NamedSource, ServedIndexes, ServedModels
        from didyma.serve.server import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("didyma"):
            raise
        raise MissingExtraError("a server", "serve") from None
    from didyma.judgements import JudgementStore

    if not models and not indexes:
        raise typer.BadParameter("give one, or an --index", param_hint="MODEL")
    then = after.steps
    tokens = BearerTokens.read(token_file)
    hosts = AllowedHosts(host, allowed_hosts or [])
    check_host(host, has_tokens=bool(tokens), insecure=insecure)
    if judgements is not None and not tokens:
        raise typer.BadParameter("needs tokens (--token-file)", param_hint="--judgements")
    with log_to_stderr():
        load = partial(asked.load, embedding=embedding, trust=trust)
        served = ServedModels([NamedSource.of(model) for model in models or []], load, keep=keep)
        searched = ServedIndexes([NamedSource.of(index) for index in indexes or []])
        service = Service(
            served,
            Limits(**limits),
            tokens,
            indexes=searched,
            hosts=hosts,
            log_queries=log_queries,
            then=then,
            judgements=None if judgements is None else JudgementStore(judgements),
            shadows=watching.shadow_models(served, load),
            samples=watching.samples(),
        )
        run(service, host, port)
