"""/openapi.json, made from the types of requests, and /docs, a page that shows it without scripts."""

from __future__ import annotations

import html
import inspect
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from ... import __version__

STYLE = (
    "body{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto;background:#8882}"
)


def openapi(endpoints: Mapping[str, tuple[type, str]]) -> dict[str, Any]:
    """The description in the form of OpenAPI 3.1."""
    types = [takes for takes, _ in endpoints.values()]
    found, schemas = msgspec.json.schema_components(dict.fromkeys(types), ref_template="#/components/schemas/{name}")
    of = dict(zip(dict.fromkeys(types), found, strict=True))
    paths: dict[str, Any] = {}
    for path, (takes, summary) in endpoints.items():
        content: dict[str, Any] = {"application/json": {"schema": of[takes]}}
        fields = schemas[of[takes]["$ref"].rpartition("/")[2]]["properties"]
        if "file" in fields:
            form = {**fields, "file": {"type": "string", "format": "binary"}}
            content["multipart/form-data"] = {"schema": {"type": "object", "properties": form, "required": ["file"]}}
        body = {"required": True, "content": content}
        answers = {"200": {"description": "The answer"}, "default": {"description": "An error: {error: {message}}"}}
        about = {"summary": summary, "description": inspect.getdoc(takes) or "", "responses": answers}
        paths[path] = {"post": {**about, "requestBody": body}}
    for path, summary in {
        "/v1/models": "The models that are served",
        "/health": "200 while the server runs",
        "/ready": "200 once every model is loaded, else 503",
        "/metrics": "Numbers for Prometheus",
    }.items():
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "The answer"}}}}
    about = {"title": "zoo", "version": __version__}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": {"schemas": schemas}}


def page_of(described: dict[str, Any]) -> str:
    """The description as a page."""
    parts = []
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            text = html.escape(about["summary"])
            part = f"<h2><code>{method.upper()} {html.escape(path)}</code></h2><p>{text}</p>"
            if body := about.get("requestBody"):
                name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
                fields = json.dumps(described["components"]["schemas"][name]["properties"], indent=1)
                part += f"<details><summary>Fields</summary><pre>{html.escape(fields)}</pre></details>"
            parts.append(part)
    head = f"<!doctype html><meta charset=utf-8><title>zoo serve</title><style>{STYLE}</style><h1>zoo serve</h1>"
    return f"{head}<p><a href=/openapi.json>openapi.json</a></p>{''.join(parts)}"
