"""/openapi.json, made from the types of requests, and /docs, where Swagger UI shows it and sends requests."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ... import __version__
from ...errors import InputError
from ...optional import import_optional
from ...task_kinds import TASKS
from .errors import ApiError
from .models import Served
from .requests import FileRequest, PagesRequest, Strict

BINARY = {"type": "string", "format": "binary"}
PICTURE = (  # white, 32 x 32
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAFklEQVR42mP4TwAwjCoYVTCqYKQqAAA/aPwuqUTQyAAAAA"
    "BJRU5ErkJggg=="
)
SOUND = (  # silence, 16 samples
    "data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA"
)
# Path -> a request that any model of its kind takes.
EXAMPLES: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"input": ["A cat.", "A dog."]},
    "/v1/rerank": {"query": "What purrs?", "documents": ["A cat.", "A train."]},
    "/v1/classify": {"input": ["What a fine day!"]},
    "/v1/completions": {"prompt": "Once upon a time", "max_tokens": 32},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hello!"}], "max_completion_tokens": 64},
    "/v1/responses": {"input": "Hello!", "max_output_tokens": 64},
    "/v1/tables": {"file": PICTURE},
    "/v1/read": {"file": PICTURE},
    "/v1/ocr": {"file": PICTURE},
    "/v1/audio/transcriptions": {"file": SOUND, "response_format": "verbose_json"},
    "/v1/audio/translations": {"file": SOUND},
    "/tokenize": {"prompt": "A cat."},
}
# Path -> the type of its requests, a summary, and the kinds of models that answer; none: all.
Endpoints = Mapping[str, tuple[type[Strict], str, tuple[str, ...]]]
# The page needs nothing from elsewhere; Swagger UI writes styles into elements and has pictures in its style sheet.
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
PAGE = """\
<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">
<title>zoo serve</title><link rel=icon href=docs/favicon-32x32.png><link rel=stylesheet href=docs/swagger-ui.css>
<body><div id=swagger-ui></div><script src=docs/swagger-ui-bundle.js></script><script src=docs/start.js></script>"""
START = """\
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, tryItOutEnabled: true,
  displayRequestDuration: true, defaultModelsExpandDepth: 0, validatorUrl: null,
});
"""
FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript", "favicon-32x32.png": "image/png"}
STYLE = "body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"


def docs_routes(endpoints: Endpoints, models: Mapping[str, Served], has_keys: bool) -> list[Route]:
    """The routes of /docs and /openapi.json."""

    async def send_description(_: Request) -> Response:
        data = msgspec.json.encode(openapi(endpoints, models, has_keys))
        return Response(data, media_type="application/json")

    async def send_page(_: Request) -> Response:
        try:
            find_swagger_ui()
        except InputError as e:
            text = (
                f"<p>{html.escape(str(e))}</p><p>The fields of all requests: <a href=openapi.json>openapi.json</a></p>"
            )
            return _page(f"<!doctype html><title>zoo serve</title><style>{STYLE}</style><h1>zoo serve</h1>{text}")
        return _page(PAGE)

    def send_file(name: str, kind: str) -> Callable[[Request], Any]:
        async def send(_: Request) -> Response:
            try:
                data = START.encode() if name == "start.js" else (find_swagger_ui() / name).read_bytes()
            except (InputError, OSError) as e:
                error = ApiError(404, str(e))
                return Response(msgspec.json.encode(error.body), error.status, media_type="application/json")
            return Response(data, media_type=kind, headers={"cache-control": "max-age=3600"})

        return send

    files = {**FILES, "start.js": "text/javascript"}
    return [
        Route("/openapi.json", send_description),
        Route("/docs", send_page),
        *(Route(f"/docs/{name}", send_file(name, kind)) for name, kind in files.items()),
    ]


def find_swagger_ui() -> Any:
    """The folder of Swagger UI in its package.  InputError: it is missing, or older than OpenAPI 3.1."""
    import_optional("swagger_ui_bundle", "this page", "serve")
    folders = (resources.files("swagger_ui_bundle") / "vendor").iterdir()
    for folder in folders:
        name, _, version = folder.name.rpartition("-")
        if name == "swagger-ui" and int(version.partition(".")[0]) >= 5:
            return folder
    raise InputError(
        "this page requires Swagger UI 5: pip uninstall swagger-ui-bundle; pip install swagger-ui-bundle-v2"
    )


def openapi(endpoints: Endpoints, models: Mapping[str, Served], has_keys: bool = False) -> dict[str, Any]:
    """The description in the form of OpenAPI 3.1; where several models are served, examples name one that fits."""
    types = [takes for takes, _, _ in endpoints.values()]
    found, schemas = msgspec.json.schema_components(dict.fromkeys(types), ref_template="#/components/schemas/{name}")
    of = dict(zip(dict.fromkeys(types), found, strict=True))
    for takes in of:
        _accept_null(schemas[_name_of(of[takes])])
    schemas["Error"] = _error_schema()
    paths: dict[str, Any] = {}
    for path, (takes, summary, kinds) in endpoints.items():
        json: dict[str, Any] = {"schema": of[takes]}
        if (example := _example(path, kinds, models)) is not None:
            json["example"] = example
        answers = {"200": {"description": "The answer"}, "default": _answer("An error", "Error")}
        about = {
            "summary": summary,
            "description": inspect.getdoc(takes) or "",
            "responses": answers,
            "tags": ["models"],
        }
        content, fields = {"application/json": json}, schemas[_name_of(of[takes])]["properties"]
        if issubclass(takes, FileRequest):
            form = {"type": "object", "properties": {**fields, "file": BINARY}, "required": ["file"]}
            content = {"multipart/form-data": {"schema": form}, **content}
            media = ("image/*", "application/pdf") if issubclass(takes, PagesRequest) else ("audio/*", "video/*")
            content |= {kind: {"schema": BINARY} for kind in media}
            about["parameters"] = [
                {
                    "name": name,
                    "in": "query",
                    "schema": schema,
                    "description": "beside a body that is the file, or a form",
                }
                for name, schema in fields.items()
                if name != "file"
            ]
        if has_keys:
            about["security"] = [{"key": []}]
        paths[path] = {"post": {**about, "requestBody": {"required": True, "content": content}}}
    for path, summary in {
        "/v1/models": "The models that are served",
        "/health": "200 while the server runs",
        "/ready": "200 once every model is loaded, else 503",
        "/metrics": "Numbers for Prometheus",
    }.items():
        answers = {"200": {"description": "The answer"}}
        paths[path] = {"get": {"summary": summary, "responses": answers, "tags": ["server"]}}
        if has_keys and path in ("/v1/models", "/metrics"):
            paths[path]["get"]["security"] = [{"key": []}]
    components: dict[str, Any] = {"schemas": schemas}
    if has_keys:
        components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    about = {
        "title": "zoo serve",
        "version": __version__,
        "description": "Fields of OpenAI's, Cohere's and Jina's forms.",
    }
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": components}


def _example(path: str, kinds: tuple[str, ...], models: Mapping[str, Served]) -> dict[str, Any] | None:
    """A request that a served model takes; one without a model where none fits yet."""
    loaded = [one for one in models.values() if one.kind is not None and (not kinds or one.kind in kinds)]
    if path in EXAMPLES:
        return {"model": loaded[0].id, **EXAMPLES[path]} if loaded else EXAMPLES[path]
    for one in loaded:  # of any task, by its row
        row = next((row for row in TASKS if one.kind in (row.name, f"{row.name} of {row.reads}s")), None)
        if row is not None and not row.streams:
            given: Any = {"text": "Angela Merkel was born in Hamburg.", "image": PICTURE}.get(row.reads, "")
            return {"model": one.id, "inputs": dict.fromkeys(row.arguments, given) if len(row.arguments) > 1 else given}
    return None


def _accept_null(schema: dict[str, Any]) -> None:
    """Let a request's optional fields be null, which counts as absent."""
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        if name in required or {"type": "null"} in field.get("anyOf", ()):
            continue
        if isinstance(field.get("type"), str):
            field["type"] = [field["type"], "null"]


def _name_of(reference: dict[str, str]) -> str:
    return reference["$ref"].rpartition("/")[2]


def _answer(description: str, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content}


def _error_schema() -> dict[str, Any]:
    text, optional = {"type": "string"}, {"type": ["string", "null"]}
    fields = {"message": text, "type": text, "param": optional, "code": optional}
    error = {"type": "object", "properties": fields, "required": [*fields]}
    return {"type": "object", "properties": {"error": error}, "required": ["error"]}


def _page(text: str) -> Response:
    return HTMLResponse(text, headers={"content-security-policy": POLICY})
