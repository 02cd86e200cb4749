"""The ASGI application: routes, behind checks of keys and origins, limits of size and time, errors and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import prometheus_client as prometheus
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ...errors import nearest
from . import chats, pages, responses, speech, texts, writing
from .docs import docs_routes
from .errors import ApiError, as_api_error
from .frames import ModelRequest
from .keys import Keys, client
from .listening import (
    CHUNK_SECONDS,
    Bodies,
    CancelScope,
    RefusedError,
    headers_of,
    is_here,
    is_loopback,
    is_own_page,
    replay,
)
from .logs import log_request, request_id_of
from .metrics import Metrics
from .models import TABLES, TEXTS, Models, Served
from .peer_paths import PEER_PATHS
from .requests import (
    ChatRequest,
    ClassifyRequest,
    CompletionRequest,
    EmbeddingsRequest,
    FileRequest,
    ModelField,
    PagesRequest,
    RerankRequest,
    ResponsesRequest,
    RunRequest,
    Strict,
    TablesRequest,
    TokenizeRequest,
    TranscriptionRequest,
    TranslationRequest,
)
from .run import run
from .wording import field_error

MAX_JSON = 8 << 20  # bytes of a request
MAX_VALUES = 500_000  # values of a request: numbers of its lists, texts, fields
MAX_FILE = 64 << 20  # bytes of a request with a file
FILES = ("application/pdf", "application/octet-stream")  # types of a body that is a file, beside those of MEDIA
MEDIA = ("image/", "audio/", "video/")
PROBLEM = "zoo.problem"  # the key of a scope for why a request was refused, which the log says
OPEN = ("/health", "/ready")  # answered without a key
DOCS = ("/docs", "/openapi.json")  # too: a browser has no key yet; they name the models, as /ready does


class Endpoint(NamedTuple):
    """kinds: of the models that answer; none: all.  model: the one without a name in a request."""

    takes: type[Strict]
    answer: Callable[[Models, Served, Any], Awaitable[dict[str, Any] | writing.Chunks | Response]]
    kinds: tuple[str, ...]
    summary: str
    limit: int = MAX_JSON
    model: str | None = None


SPEECH = ("automatic-speech-recognition",)
CHATS = ("generate", "image-text-to-text")
LAST_EVENT = b"data: [DONE]\n\n"  # streams without names end with it
RESPONSES = "/v1/responses"  # the path whose streams are of named events
ENDPOINTS = {
    "/v1/embeddings": Endpoint(EmbeddingsRequest, texts.embeddings, ("embed",), "Vectors of texts (OpenAI's form)"),
    "/v1/rerank": Endpoint(
        RerankRequest, texts.rerank, ("rerank",), "Documents by relevance (Cohere's and Jina's form)"
    ),
    "/v1/classify": Endpoint(ClassifyRequest, texts.classify, ("classify",), "Labels of texts"),
    "/v1/completions": Endpoint(
        CompletionRequest, writing.completions, ("generate",), "The text that follows a prompt"
    ),
    "/v1/chat/completions": Endpoint(ChatRequest, chats.chat, CHATS, "The answer to messages", MAX_FILE),
    RESPONSES: Endpoint(
        ResponsesRequest, responses.respond, CHATS, "The answer to items (OpenAI's newer form)", MAX_FILE
    ),
    "/v1/tables": Endpoint(
        TablesRequest, pages.tables, (TABLES,), "The tables of a picture or a PDF", 2 * MAX_FILE, TABLES
    ),
    "/v1/read": Endpoint(PagesRequest, pages.read, ("read",), "The text of a picture or a PDF", 2 * MAX_FILE),
    "/v1/ocr": Endpoint(
        PagesRequest, pages.ocr, ("ocr",), "The lines of a picture or a PDF, with places", 2 * MAX_FILE
    ),
    "/v1/audio/transcriptions": Endpoint(
        TranscriptionRequest, speech.transcribe, SPEECH, "The words of a recording (OpenAI's form)", 2 * MAX_FILE
    ),
    "/v1/audio/translations": Endpoint(
        TranslationRequest, speech.translate, SPEECH, "A recording in English words (OpenAI's form)", 2 * MAX_FILE
    ),
    "/v1/run": Endpoint(RunRequest, run, (), "The task of any model, by its name (the Hub's form)", 2 * MAX_FILE),
    "/tokenize": Endpoint(TokenizeRequest, texts.tokenize, (*TEXTS, "generate"), "The tokens of a text or of messages"),
}
ALIASES = {"/v2/rerank": "/v1/rerank", "/rerank": "/v1/rerank"}


class Gate:
    """An ASGI application around another: it refuses requests that are not allowed, and reads bodies within limits.

    host: where the server listens; at a loopback address a request must name this machine, since another name may be
    a stranger's page whose name was made to point here.  A page of another origin needs to be in `origins`.
    """

    def __init__(self, app: Any, metrics: Metrics, host: str, keys: Keys | None, origins: list[str], seconds: float):
        self.app, self.metrics, self.keys, self.origins, self.seconds = app, metrics, keys, origins, seconds
        names = {"localhost", "testserver", socket.gethostname().lower()}
        self.names = frozenset(names) if is_loopback(host) else None
        self.bodies = Bodies()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status, name = time.monotonic(), 500, ""
        request_id = request_id_of(headers_of(scope).get("x-request-id", ""))
        path: str = ALIASES.get(scope["path"]) or scope["path"]
        known = path in ENDPOINTS or path in ("/v1/models", *OPEN, *DOCS, "/metrics")

        async def send_and_watch(message: Any) -> None:
            nonlocal status, is_read
            if message["type"] == "http.response.start":
                status = message["status"]
                added = (b"x-content-type-options", b"nosniff"), (b"x-request-id", request_id.encode())
                message["headers"] = [*message["headers"], *added]
            with CancelScope() as ending:
                ending.cancel_after(min(self.seconds, CHUNK_SECONDS), "unread")
                await send(message)
            if ending.reason is not None:
                is_read = False
                raise ConnectionResetError("the client does not read its answer")

        is_read = True
        self.metrics.running.inc()
        try:
            async with contextlib.AsyncExitStack() as held:
                try:
                    client.set(name := self._check(scope, path))
                    if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
                        limit = ENDPOINTS[path].limit if path in ENDPOINTS else MAX_JSON
                        values = MAX_VALUES if limit <= MAX_FILE else None  # a file's fields become no lists
                        body = await held.enter_async_context(self.bodies.read(receive, limit, values))
                        receive = replay(body, receive)
                except (ApiError, RefusedError) as e:
                    error = e if isinstance(e, ApiError) else ApiError(e.status, str(e))
                    scope[PROBLEM] = str(error)
                    return await answer_of(error)(scope, receive, send_and_watch)
                await self.app(scope, receive, send_and_watch)
        except Exception:
            if is_read:
                raise
        finally:
            self.metrics.running.dec()
            label = path if known else "other"  # a client cannot add series
            seconds = time.monotonic() - began
            self.metrics.count(label, status, seconds)
            log_request(
                {
                    "id": request_id,
                    "client": (scope.get("client") or ("-",))[0],
                    "key": name,
                    "method": scope["method"],
                    "path": scope["path"],
                    "status": status,
                    "ms": round(1000 * seconds, 1),
                    "error": scope.get(PROBLEM),
                }
            )

    async def answer_when_full(self, scope: Any, receive: Any, send: Any) -> None:
        """The application of connections beyond the most: of it only the routes of health answer."""
        if scope["path"] in OPEN:
            return await self(scope, receive, send)
        error = ApiError(503, "too many connections", code="too_many_connections", wait=1)
        await as_json(error.body, error.status, {**error.headers, "connection": "close"})(scope, receive, send)

    def _check(self, scope: Any, path: str) -> str:
        """The name of the client; ApiError where the request is not allowed."""
        headers = headers_of(scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.names is not None and not is_here(host, self.names):
            raise ApiError(403, f"the host {host!r:.100} is not this machine's name")
        allowed = origin is None or is_own_page(origin, host)
        if not allowed and not {origin, "*"} & {*self.origins}:
            raise ApiError(403, f"pages of {origin!r:.100} may not ask this server (--cors)")
        is_open = path in (*OPEN, *DOCS) or path.startswith("/docs/") or scope["method"] == "OPTIONS"
        if self.keys is None or is_open:
            return ""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or (name := self.keys.client_of(given.strip())) is None:
            raise ApiError(401, "a valid API key is missing: Authorization: Bearer KEY", code="invalid_api_key")
        return name


def application(
    models: Models,
    *,
    host: str = "127.0.0.1",
    keys: Mapping[str, str] | None = None,
    origins: list[str] | None = None,
    failed: Callable[[], None] = lambda: None,
) -> Gate:
    """The application.  keys: API keys, and the names of the clients that have them.
    origins: pages that may send requests ("*": all).  failed: called where no model could be loaded.
    """
    metrics = Metrics(models)

    async def health(_: Request) -> Response:
        return as_json({"status": "ok"})

    async def get_readiness(_: Request) -> Response:
        unready = models.unready_models
        return as_json({"status": "not ready" if unready else "ready", "models": unready}, 503 if unready else 200)

    async def list_models(_: Request) -> Response:
        data = [
            {"id": one.id, "object": "model", "created": one.created, "owned_by": "zoo"}
            | ({"task": one.kind} if one.kind is not None else {"error": one.error or "is being loaded"})
            for one in models.all.values()
        ]
        return as_json({"object": "list", "data": data})

    async def get_metrics(_: Request) -> Response:
        return Response(prometheus.generate_latest(metrics.registry), media_type=prometheus.CONTENT_TYPE_LATEST)

    fixed = {"/health": health, "/ready": get_readiness, "/v1/models": list_models, "/metrics": get_metrics}
    routes = [Route(path, do) for path, do in fixed.items()]
    described = {path: (e.takes, e.summary, e.kinds) for path, e in ENDPOINTS.items()}
    routes += docs_routes(described, models.all, bool(keys))
    endpoints = request_handlers(models)
    routes += [Route(path, do, methods=["POST"]) for path, do in endpoints.items()]

    async def answer_error(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        problem = str(getattr(error, "detail", "internal error"))
        path = request.scope["path"]  # and not request.url, which a query that is not UTF-8 cannot make
        if status == 404:
            paths = [route.path for route in routes]
            other = PEER_PATHS.get(path, f"/v1{path}")
            guess = f": use {other}" if other in paths else nearest(path, paths)
            problem = f"there is no {path!r:.100} here{guess} (GET /docs lists all)"
        elif status == 405:
            other = "POST" if request.method == "GET" else "GET"
            problem = f"{request.method} is not for {path}, expected {other}"
        return answer_of(ApiError(status, problem))

    routed = Starlette(
        routes=routes, lifespan=lambda _: models.serving(failed), exception_handlers={HTTPException: answer_error}
    )

    async def direct(scope: Any, receive: Any, send: Any) -> None:
        """Call an endpoint without Starlette's search for its route and handling of exceptions."""
        do = endpoints.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        await (routed if do is None else await do(Request(scope, receive)))(scope, receive, send)

    app: Any = direct
    if origins:
        app = CORSMiddleware(app, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"])
    return Gate(app, metrics, host, Keys(keys) if keys else None, origins or [], models.seconds)


def request_handlers(models: Models) -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """The functions that answer requests, by their paths."""
    found = {path: _request_handler(models, path) for path in ENDPOINTS}
    return found | {path: found[of] for path, of in ALIASES.items()}


def _request_handler(models: Models, path: str) -> Callable[[Request], Awaitable[Response]]:
    endpoint = ENDPOINTS[path]

    async def compute(request: Request) -> dict[str, Any] | writing.Chunks | Response:
        takes, body = endpoint.takes, await request.body()
        if issubclass(takes, FileRequest) and _media(request) == "multipart/form-data":
            asked = await pages.read_file_request(request, takes)
        elif models.is_isolated and not _is_file(takes, request):
            asked = _decode(ModelField, body, request)  # the model's process reads the rest
        else:
            asked = _decode(takes, body, request)
        one = models.find(asked.model or endpoint.model, *endpoint.kinds)
        if not models.is_isolated:
            return await endpoint.answer(models, one, asked)
        if isinstance(asked, takes):
            body = msgspec.json.encode(asked)
        return await one.worker.answer(ModelRequest(path, client.get(), body), request.scope)

    async def do(request: Request) -> Response:
        try:
            found = None
            with CancelScope() as ending:
                ending.cancel_after(models.seconds, "late")
                gone = asyncio.ensure_future(_watch_disconnect(request, ending))
                try:
                    found = await compute(request)
                finally:
                    gone.cancel()
            if ending.reason == "gone":
                raise ApiError(499, "the client has gone", code="client_gone")
            if found is None:
                raise ApiError(504, f"no answer within {models.seconds:g} s", code="timeout")
        except Exception as e:
            error = as_api_error(e)
            request.scope[PROBLEM] = str(error)
            return answer_of(error)
        if isinstance(found, dict):
            return as_json(found)
        if isinstance(found, Response):
            return found
        headers = {"cache-control": "no-cache", "x-accel-buffering": "no"}
        return StreamingResponse(_events(found, request.scope), media_type="text/event-stream", headers=headers)

    return do


async def _watch_disconnect(request: Request, ending: CancelScope) -> None:
    """End a request once its client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    ending.cancel("gone")


async def _events(chunks: writing.Chunks, scope: Any) -> AsyncIterator[bytes]:
    """Server-sent events; an error is one of them."""
    named, count = scope["path"] == RESPONSES, 0

    def encode(chunk: dict[str, Any]) -> bytes:
        name = f"event: {chunk['type']}\n".encode() if named else b""
        return name + b"data: " + msgspec.json.encode(chunk) + b"\n\n"

    async with contextlib.aclosing(chunks) as source:
        try:
            async for some in source:
                count += len(some)
                if some:
                    yield b"".join(map(encode, some))
        except Exception as e:
            error = as_api_error(e)
            scope[PROBLEM] = str(error)
            yield error_event(error, scope["path"], count)
        if not named:
            yield LAST_EVENT


def error_event(error: ApiError, path: str, count: int) -> bytes:
    """An error as the event of a stream that had so many before."""
    if path != RESPONSES:
        return b"data: " + msgspec.json.encode(error.body) + b"\n\n"
    about = {"type": "error", **{k: error.body["error"][k] for k in ("code", "message", "param")}}
    return b"event: error\ndata: " + msgspec.json.encode({**about, "sequence_number": count}) + b"\n\n"


def _media(request: Request) -> str:
    """The type of the body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_file(kind: type[Strict], request: Request) -> bool:
    """True if the body is a file, and the fields are in the query."""
    media = _media(request)
    return issubclass(kind, FileRequest) and (media.startswith(MEDIA) or media in FILES)


def _decode(kind: type[Any], body: bytes, request: Request) -> Any:
    """The request's fields; a file may also be the body itself, with the other fields in the query."""
    try:
        if _is_file(kind, request):
            return pages.parse_file_request(body, request.query_params, kind)
        return _decode_json(kind, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise ApiError(400, f"the body is not JSON: {e}", code="invalid_json") from None


def _decode_json(kind: type[Any], body: bytes) -> Any:
    """The fields of a request in JSON; one that is null, which some clients send for what is absent, is left out."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as e:  # comes before what is not JSON further on
        error, given = e, msgspec.json.decode(body)
    if isinstance(given, dict) and None in given.values():
        given = {name: value for name, value in given.items() if value is not None}
        try:
            return msgspec.json.decode(msgspec.json.encode(given), type=kind)
        except msgspec.ValidationError as e:
            error = e
    raise field_error(error, given, kind) from None


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, "application/json")


def answer_of(error: ApiError) -> Response:
    return as_json(error.body, error.status, error.headers)
