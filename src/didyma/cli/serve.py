"""`didyma serve`: a reranker behind the interfaces that clients already call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from didyma.cli import options
from didyma.errors import MissingExtraError
from didyma.serve.limits import Limits

__all__ = ["serve"]

LIMITS = "Limits"
ACCESS = "Who may ask"


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="Model files of didyma rerank fit, each as FILE or NAME=FILE. One without a name "
            "answers to every name that no other has.",
            show_default=False,
        ),
    ] = None,
    indexes: Annotated[
        list[str] | None,
        typer.Option(
            "--index",
            metavar="NAME=FOLDER",
            help="An index of didyma index to search, named as models are; may be given again. "
            "Without a model, passages are in the order of BM25.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", rich_help_panel=ACCESS, help="Address to listen on."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            rich_help_panel=ACCESS,
            help="Tokens, one a line, of which a request must have one. DIDYMA_TOKENS in the "
            "environment adds others, separated by spaces.",
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", rich_help_panel=ACCESS, help="Let other machines ask without a token."
        ),
    ] = False,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            rich_help_panel=ACCESS,
            help="A name that the server may be asked for by (Host, and Origin of web pages); may "
            "be given again. On a loopback address localhost, 127.0.0.1 and \\[::1] are allowed, "
            "elsewhere every name if none is given.",
        ),
    ] = None,
    jobs: options.Jobs = None,
    log_queries: Annotated[
        bool, typer.Option("--log-queries", help="Write queries into the log.")
    ] = False,
    max_body: Annotated[
        int,
        typer.Option("--max-body", min=1, rich_help_panel=LIMITS, help="Bytes of a request."),
    ] = Limits.body,
    max_documents: Annotated[
        int,
        typer.Option(
            "--max-documents", min=1, rich_help_panel=LIMITS, help="Documents of a request."
        ),
    ] = Limits.documents,
    max_characters: Annotated[
        int,
        typer.Option(
            "--max-characters",
            min=1,
            rich_help_panel=LIMITS,
            help="Length of a query, and of each document.",
        ),
    ] = Limits.characters,
    max_text: Annotated[
        int,
        typer.Option(
            "--max-text",
            min=1,
            rich_help_panel=LIMITS,
            help="Characters of a query and its documents together.",
        ),
    ] = Limits.text,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds",
            min=0.1,
            rich_help_panel=LIMITS,
            help="To read a request, and again to answer it.",
        ),
    ] = Limits.seconds,
    max_waiting: Annotated[
        int,
        typer.Option(
            "--max-waiting",
            min=0,
            rich_help_panel=LIMITS,
            help="Requests that wait while all threads work; more are refused (429).",
        ),
    ] = Limits.waiting,
    max_connections: Annotated[
        int,
        typer.Option(
            "--max-connections",
            min=1,
            rich_help_panel=LIMITS,
            help="Connections at the same time; beyond them the one that has waited longest for "
            "its client is ended.",
        ),
    ] = Limits.connections,
    max_in_flight: Annotated[
        int,
        typer.Option(
            "--max-in-flight",
            min=1,
            rich_help_panel=LIMITS,
            help="Bytes of all requests under way; large ones wait for room.",
        ),
    ] = Limits.in_flight,
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

    curl localhost:8000/v2/rerank -d '{"query": "…", "documents": ["…", "…"]}'
    """
    try:
        from didyma.serve.app import Service
        from didyma.serve.hosts import AllowedHosts
        from didyma.serve.indexes import ServedIndexes
        from didyma.serve.logs import log_to_stderr
        from didyma.serve.models import ServedModels
        from didyma.serve.served import NamedSource
        from didyma.serve.server import check_host
        from didyma.serve.server import serve as run
        from didyma.serve.tokens import BearerTokens
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("didyma"):
            raise
        raise MissingExtraError("a server", "serve") from None
    if not models and not indexes:
        raise typer.BadParameter("give one, or an --index", param_hint="MODEL")
    tokens = BearerTokens.read(token_file)
    hosts = AllowedHosts(host, allowed_hosts or [])
    check_host(host, has_tokens=bool(tokens), insecure=insecure)
    limits = Limits(
        body=max_body,
        documents=max_documents,
        characters=max_characters,
        text=max_text,
        seconds=max_seconds,
        waiting=max_waiting,
        connections=max_connections,
        in_flight=max_in_flight,
    )
    log_to_stderr()
    served = ServedModels([NamedSource.of(model) for model in models or []])
    searched = ServedIndexes([NamedSource.of(index) for index in indexes or []])
    service = Service(
        served, limits, tokens, indexes=searched, hosts=hosts, log_queries=log_queries
    )
    run(service, host, port)
