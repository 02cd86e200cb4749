"""Targets: what comes to the servers beside JSON (forms, headers, the demo's inputs), workbooks, keys, page data."""

from __future__ import annotations

import asyncio
import functools
import io
import json
import random
import shutil
from pathlib import Path
from typing import Any

import zoo
from zoo.errors import ZooError

from .. import mutate
from .gguf import gguf_file
from .strangers import has, small_bert
from .target import TARGETS, Target, as_json, tolerant, write
from .texts import tokenizers

# Forms and headers: b"name: value\nname: value\n\nbody".  The path, method and query are headers of their own.

KEY, ORIGIN = "right-key", "http://good.example"
_BASE_HEADERS = {"host": "127.0.0.1", "authorization": f"Bearer {KEY}", ":method": "POST", ":query": ""}
_FORM_HEADERS = {**_BASE_HEADERS, ":path": "/v1/read", "content-type": "multipart/form-data; boundary=x"}
_FORM_PART = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
_FIELDS = {"pages": "1", "model": "zoo-read", "whole": "true"}
_PPM = "P6 8 8 255 " + "a" * 192


def _lines(headers: dict[str, str], body: str = "") -> bytes:
    return "".join(f"{name}: {value}\n" for name, value in headers.items()).encode() + b"\n" + body.encode("latin-1")


def _forms() -> list[bytes]:
    file = _FORM_PART.format("file", '; filename="a.ppm"\r\nContent-Type: image/png', _PPM)
    fields = (
        _FORM_PART.format("pages", "", "1")
        + _FORM_PART.format("model", "", "zoo-read")
        + _FORM_PART.format("whole", "", "true")
    )
    encoded = _FORM_PART.format("file", '; filename="a"\r\nContent-Transfer-Encoding: base64', "UDYgOCA4")
    return [
        _lines(_FORM_HEADERS, f"{file}--x--\r\n"),
        _lines(_FORM_HEADERS, f"{fields}{file}--x--\r\n"),
        _lines(_FORM_HEADERS, f"{encoded}--x--\r\n"),
        _lines({**_FORM_HEADERS, "content-type": "application/x-www-form-urlencoded"}, "file=a&pages=1"),
        _lines({**_FORM_HEADERS, "content-type": "image/x-portable-pixmap", ":query": "pages=1&whole=true"}, _PPM),
    ]


def _heads() -> list[bytes]:
    asked = '{"model": "checkpoint", "input": "the a"}'
    classify = {**_BASE_HEADERS, ":path": "/v1/classify", "content-type": "application/json"}
    paths = ("/health", "/ready", "/v1/models", "/metrics", "/openapi.json", "/docs", "/docs/x", "/v2/rerank", "/none")
    preflight = {**classify, ":method": "OPTIONS", "origin": ORIGIN, "access-control-request-method": "POST"}
    return [
        _lines(classify, asked),
        _lines({**classify, "origin": ORIGIN, "cookie": "a=b", "x-request-id": "id-1"}, asked),
        _lines({**classify, "authorization": "Bearer wrong"}, asked),
        _lines({**preflight, "access-control-request-headers": "authorization, x-a"}),
        *(_lines({**_BASE_HEADERS, ":method": "GET", ":path": path}) for path in paths),
    ]


@functools.cache
def _app(folder: Path) -> Any:
    from zoo.apps.serve.app import application
    from zoo.apps.serve.logs import logger
    from zoo.apps.serve.models import Models

    logger.disabled = True
    models = Models(["zoo-read", str(folder / "checkpoint")], seconds=60)
    models.load()
    assert not models.unready_models, models.unready_models
    return application(models, keys={KEY: "a"}, origins=[ORIGIN])


def _serve(at: Path) -> None:
    small_bert(at / "checkpoint")
    _app(at)


def _scope_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    head, _, body = data.partition(b"\n\n")
    found = [
        (name.strip().lower(), value.strip()) for name, _, value in (x.partition(b": ") for x in head.split(b"\n"))
    ]
    given = {name.decode("latin-1"): value.decode("latin-1") for name, value in found}
    path = given.get(":path", "/")
    scope: dict[str, Any] = {"type": "http", "method": given.get(":method", "GET"), "path": path}
    scope |= {"raw_path": path.encode("latin-1", "replace"), "query_string": given.get(":query", "").encode("latin-1")}
    scope |= {"headers": [one for one in found if one[0][:1] != b":"], "http_version": "1.1", "scheme": "http"}
    return scope | {"root_path": "", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}, body


async def _answer(app: Any, scope: dict[str, Any], body: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    sent, status, headers, answer = [body], 0, dict[bytes, bytes](), b""

    async def receive() -> dict[str, Any]:
        if not sent:
            await asyncio.sleep(3600)
        return {"type": "http.request", "body": sent.pop(), "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        headers.update(message.get("headers", ()))
        answer += message.get("body", b"")

    await app(scope, receive, send)
    return status, headers, answer


def _ask(data: bytes, at: Path) -> None:
    """No answer of 500; nothing for who has no key; no page of another origin may read an answer."""
    scope, body = _scope_of(data)
    status, headers, answer = asyncio.run(_answer(_app(at), scope, body))
    given = dict(scope["headers"])
    is_public = scope["method"] == "OPTIONS" or scope["path"] in ("/health", "/ready") or "docs" in scope["path"]
    if status < 400 and not is_public and "openapi" not in scope["path"]:
        assert given.get(b"authorization", b"").partition(b" ")[2].strip() == KEY.encode(), "answered without the key"
    allowed = headers.get(b"access-control-allow-origin", ORIGIN.encode())
    assert allowed in (ORIGIN.encode(), b"*"), allowed
    if status in (500, 504):
        raise RuntimeError(f"{status}: {answer[:200]!r}")
    if status >= 400:
        raise ZooError(f"{status}: {answer[:200]!r}")


_HEAD_WORDS = [b"--x", b"--x--", b"\r\n\r\n", b'filename="', b"boundary=", b"Bearer ", b"null", ORIGIN.encode(), b"*"]
_HEAD_WORDS += [
    b"Content-Disposition: form-data; ",
    b"\r\n",
    b": ",
    b"\n",
    b"localhost",
    b"[::1]",
    b"%00",
    b"\xff",
    b";",
]
if has("starlette", "msgspec", "prometheus_client", "python_multipart"):
    _changes = mutate.of_bytes(_HEAD_WORDS)
    TARGETS["forms"] = Target(_forms, _changes, _ask, prepare=_serve, seconds=15, megabytes=3000, starts=True)
    TARGETS["headers"] = Target(_heads, _changes, _ask, prepare=_serve, seconds=15, megabytes=3000, starts=True)


# The demo: its guard, with an application that notes what passes, and what its tabs compute.


def _demo_requests() -> list[bytes]:
    files = [{"data": [{"path": "uploads/a.png", "meta": {}}, "1-2", 0.5]}, {"data": [{"path": "/etc/passwd"}]}]
    head = {"host": "127.0.0.1", ":method": "POST", ":path": "/gradio_api/queue/join", ":query": "token=T"}
    page = {**head, ":method": "GET", ":path": "/"}
    cookie = {**head, "cookie": "zoo-demo-80=T", ":query": "", "origin": "http://127.0.0.1"}
    return [
        *(_lines(head, json.dumps(body)) for body in files),
        _lines(cookie, "{}"),
        _lines(page),
        _lines({**page, ":path": "/gradio_api/proxy=http://x/"}),
    ]


def _pass_guard(data: bytes, at: Path) -> None:
    from zoo.apps.demo.guard import Guard

    seen: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            seen.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guard = Guard(app, at / "uploads", "127.0.0.1")
    guard.token = "T"
    scope, body = _scope_of(data)
    status, _, answer = asyncio.run(_answer(guard, scope, body))
    if status >= 400:
        raise ZooError(f"{status}: {answer[:200]!r}")
    if seen and scope["path"] != "/gradio_api/upload":
        assert not _is_json(seen[0]) or '"path": "/etc' not in json.dumps(json.loads(seen[0])), seen[0]


def _is_json(text: str | bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


TARGETS["demo-guard"] = Target(
    _demo_requests, mutate.of_bytes([*_HEAD_WORDS, b"token=T", b'"path": "/etc/'], 0), _pass_guard
)


@functools.cache
def _demo(folder: Path) -> Any:
    from zoo.apps.demo.models import Models
    from zoo.apps.tables.batch import ExtractorConfig

    names = {"classify": str(folder / "checkpoint"), "embed": str(folder / "embed")}
    return Models(ExtractorConfig(), {**names, "read": "zoo-read", "chat": "stories260k"}, local_files_only=True)


def _prepare_demo(at: Path) -> None:
    small_bert(at / "checkpoint")
    small_bert(at / "embed", "Model", 2)
    (at / "x.png").write_bytes(_PPM.encode())


def _demo_inputs() -> list[bytes]:
    return [
        as_json(["classify", "the a"]),
        as_json(["embed", "the", "a\nthe a\n\nb"]),
        as_json(["say", "Once", [{"role": "user", "content": "a"}], 4, 0.5]),
        as_json(["tables", "1-2", 0.5, True]),
        as_json(["read", True]),
    ]


def _use_demo(data: bytes, at: Path) -> None:
    """What the page sends: texts, numbers of its sliders, earlier messages; Gradio has checked their types."""
    from zoo.apps.demo import answers

    given, models = json.loads(data), _demo(at)
    match given:
        case ["classify", str(text)]:
            answers.classify(models, None, text)
        case ["embed", str(text), str(lines)]:
            answers.neighbours(models, text, lines)
        case ["say", str(text), list(before), int(most), int() | float() as heat] if 0 <= heat <= 2 and 0 < most < 9:
            if all(isinstance(one, dict) and {*map(type, one.values())} <= {str} for one in before):
                list(answers.Talk(models).say(text, before, most, heat))
        case ["tables", str(pages), int() | float() as threshold, bool(whole)] if 0 <= threshold <= 1:
            answers.find_tables(models, str(at / "x.png"), pages, threshold, whole)
        case ["read", bool(lines)]:
            answers.read(models, str(at / "x.png"), lines)


_of_demo = mutate.of_json(
    ["the a", "1-", "-", "9" * 30, "\n" * 600, "a" * 30_000, 0.5, {"role": "system", "content": ""}]
)
TARGETS["demo"] = Target(_demo_inputs, _of_demo, tolerant(_use_demo), prepare=_prepare_demo, seconds=20, starts=True)


# GGUF files in two parts: b"1\n..." is the first, b"2\n..." the second.


def _parts() -> dict[bytes, bytes]:
    pieces = {"model": "llama", "tokens": ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a"], "bos_token_id": 1}
    pieces |= {"scores": [0.0, 0.0, 0.0, -3.0, -4.0, -5.0, -1.0, -2.0], "token_type": [2, 3, 3, 1, 1, 1, 1, 1]}
    sizes = {"context_length": 16, "embedding_length": 32, "block_count": 1, "feed_forward_length": 32}
    pairs: dict[str, object] = {"general.architecture": "llama", "llama.attention.layer_norm_rms_epsilon": 1e-5}
    pairs |= {f"llama.{key}": value for key, value in {**sizes, "attention.head_count": 2}.items()}
    pairs |= {f"tokenizer.ggml.{key}": value for key, value in pieces.items()}
    row, square = ((32,), 0, 128), ((32, 32), 0, 4096)
    first = {"token_embd.weight": ((32, 8), 0, 1024), "output_norm.weight": row, "blk.0.attn_norm.weight": row}
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    second = {"blk.0.ffn_norm.weight": row} | {f"blk.0.{name}.weight": square for name in names}
    split: dict[str, object] = {"split.count": 2, "split.tensors.count": len(first) + len(second)}
    return {
        b"1": gguf_file({**pairs, **split, "split.no": 0}, first),
        b"2": gguf_file({"general.architecture": "llama", **split, "split.no": 1}, second),
    }


def _load_parts(data: bytes, at: Path) -> None:
    which, _, body = data.partition(b"\n")
    parts = {**_parts(), which: body}
    for number in (b"1", b"2"):
        write(at, f"m-0000{number.decode()}-of-00002.gguf", parts[number])
    zoo.load(at / "m-00001-of-00002.gguf")("a", max_new_tokens=1)


def _change_part(rng: random.Random, data: bytes) -> bytes:
    which, _, body = data.partition(b"\n")
    words = [
        b"split.no",
        b"split.count",
        b"split.tensors.count",
        b"\xff" * 8,
        b"\x00" * 4,
        b"\x01\x00\x00\x00",
        b"blk.0.",
    ]
    return which + b"\n" + mutate.of_bytes(words, head=2600)(rng, body)


TARGETS["gguf-parts"] = Target(
    lambda: [n + b"\n" + x for n, x in _parts().items()], _change_part, _load_parts, seconds=15
)


# Workbooks, keys, and the data of a page for browsers.


def _workbooks() -> list[bytes]:
    from openpyxl import Workbook

    file, book = io.BytesIO(), Workbook()
    for row in (["text", "n", "=1+1"], ["a b", 1, None], ["the", 2.5, True]):
        book.active.append(row)  # type: ignore[union-attr]
    book.save(file)
    return [file.getvalue()]


def _map_workbook(data: bytes, at: Path) -> None:
    from zoo.apps.batch.mapping import map_files

    try:
        (at / "out").mkdir()
        table = write(at / "out", "rows.xlsx", data)
        map_files(at / "checkpoint", table, at / "out" / "out.jsonl", progress=False)
    finally:
        shutil.rmtree(at / "out", ignore_errors=True)


if has("openpyxl"):
    TARGETS["workbook"] = Target(
        _workbooks, mutate.of_zip, _map_workbook, prepare=lambda at: small_bert(at / "checkpoint"), megabytes=3000
    )


def _read_keys(data: bytes, at: Path) -> None:
    from zoo.apps.serve.keys import Keys, read_keys

    found = read_keys(write(at, "keys", data))
    keys = Keys(found)
    assert all(keys.client_of(key) == name for key, name in found.items())
    assert keys.client_of("none") is None or "none" in found


TARGETS["keys"] = Target(
    lambda: [b"# keys\nsk-1 search\nsk-2 # until June\n\nsk-3 billing"],
    mutate.of_bytes([b"#", b" ", b"\n", b"\r", b"\t", b"\xc2\x85", b"\xe2\x80\xa8", b"sk-1", b"\0", b"a" * 600]),
    _read_keys,
    weight=0.3,
)


def _page_seeds() -> list[bytes]:
    labels = {"0": "</script><b>", "1": "\u2028", "2": "c"}
    return [b"config\n" + as_json({"id2label": labels}), b"tokenizer.json\n" + tokenizers()[-3]]


def _describe_page(data: bytes, at: Path) -> None:
    """A checkpoint's labels and tokenizer as the page of `zoo export --web` gets them."""
    from zoo.apps.onnx_export.web.page import describe

    kind, _, body = data.partition(b"\n")
    try:
        shutil.copytree(at / "checkpoint", at / "now")
        if kind == b"config" and _is_json(body.decode("utf-8", "replace")):
            own = json.loads((at / "now" / "config.json").read_text(encoding="utf-8"))
            changed = json.loads(body.decode("utf-8", "replace"))
            body = as_json({**own, **changed} if isinstance(changed, dict) else changed)
        write(at / "now", "config.json" if kind == b"config" else "tokenizer.json", body)
        json.dumps(describe(zoo.load(at / "now")), ensure_ascii=False, allow_nan=False).encode()
    finally:
        shutil.rmtree(at / "now", ignore_errors=True)


def _change_page(rng: random.Random, data: bytes) -> bytes:
    kind, _, body = data.partition(b"\n")
    return kind + b"\n" + mutate.of_json(["</script>", "LABEL_0", {"0": "a"}, -1, "[CLS]", 1e400])(rng, body)


TARGETS["web-page"] = Target(
    _page_seeds, _change_page, _describe_page, prepare=lambda at: small_bert(at / "checkpoint")
)
