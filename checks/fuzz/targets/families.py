"""Targets: each family's config.json, and the files and requests that came with later families.

Every input names what it is for: b"bert\n..." is a config.json of the family's small random checkpoint.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import zoo
from zoo.errors import ZooError

from .. import mutate
from .gguf import gguf_file
from .strangers import has, small_bert
from .target import TARGETS, Target, as_json, write


@functools.cache
def _families() -> dict[str, dict[str, Any]]:
    """Each family and the config of its small checkpoint."""
    from checks.golden import spec_of
    from parity.specs import SPECS, config_of

    names = sorted({spec.model_type for spec in SPECS.values()})
    return {name: config_of(SPECS[spec_of(name)], "tiny") for name in names}


def _split(data: bytes) -> tuple[str, bytes]:
    name, _, body = data.partition(b"\n")
    return name.decode("utf-8", "replace"), body


# A checkpoint of a family is loaded and called with another config.json.


def _configs() -> list[bytes]:
    found = [name.encode() + b"\n" + as_json(config) for name, config in _families().items()]
    random.Random(0).shuffle(found)  # all of them have a turn among the first
    return found


def _checkpoint_of(name: str, at: Path) -> Path:
    """The family's checkpoint, made at its first use."""
    from checks.golden import spec_of
    from parity.checkpoints import build

    folder = at / "made" / name
    return folder if folder.is_dir() else build(spec_of(name), folder)


def _arguments(name: str) -> dict[str, np.ndarray]:
    from checks.golden import FOLDER, inputs_of, random_floats

    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        return {"pixel_values": random_floats((1, 64, 64, 3))}
    with np.load(path) as file:
        return inputs_of(dict(file))


def _load(data: bytes, at: Path) -> None:
    from zoo.loading import load_model

    name, body = _split(data)
    if name not in _families():
        raise ZooError("not an input")
    folder = _checkpoint_of(name, at)
    try:
        write(folder, "config.json", body)
        model: Any = load_model(folder)
        model(**_arguments(name))
    finally:
        write(folder, "config.json", as_json(_families()[name]))


_SIZES = [1, 3, 7, 10_000, 10**6, 2**31 - 1, -8, [2, 2], ["full_attention"] * 2, ["sliding_attention", "x"], 1e-45]
_SIZES += [{"rope_type": "yarn", "factor": 1e9}, {"rope_type": "linear", "factor": 0}, {"rope_type": "llama3"}]
_SIZES += ["gelu", "silu", "relu", "quick_gelu", "tanh", "default", {"0": "a"}, [[1] * 40] * 3, 1e38, True]


def _of_family(rng: random.Random, data: bytes) -> bytes:
    name, body = _split(data)
    return name.encode() + b"\n" + mutate.of_json(_SIZES)(rng, body)


TARGETS["families"] = Target(_configs, _of_family, _load, weight=6, seconds=15, megabytes=2500)


# `zoo info` of such a config, and of headers of weights.


def _heads() -> list[bytes]:
    at = Path("made").absolute()
    data = (_checkpoint_of("bert", at) / "model.safetensors").read_bytes()
    shutil.rmtree(at)
    return [b"header\n" + data[8 : 8 + int.from_bytes(data[:8], "little")], *_configs()]


def _change_info(rng: random.Random, data: bytes) -> bytes:
    name, body = _split(data)
    change = mutate.of_json(["F32", "BF16", "F4", "I64", 2**40]) if name == "header" else mutate.of_json(_SIZES)
    return name.encode() + b"\n" + change(rng, body)


def _info(data: bytes, at: Path) -> None:
    from zoo.apps.cli.info import describe
    from zoo.apps.cli.terminal import json_text

    name, body = _split(data)
    is_header = name == "header"
    if not is_header and name not in _families():
        raise ZooError("not an input")
    folder, file = (
        _checkpoint_of("bert" if is_header else name, at),
        "model.safetensors" if is_header else "config.json",
    )
    kept = (folder / file).read_bytes()
    if is_header:
        body += b" " * (-len(body) % 8)
        body = len(body).to_bytes(8, "little") + body + kept[8 + int.from_bytes(kept[:8], "little") :]
    try:
        write(folder, file, body)
        tp = 2 if name in ("llama", "mistral", "qwen2", "qwen3") and len(body) % 2 else None
        found = describe(str(folder), length=len(body) % 99 + 1, tp=tp)
        json.loads(json_text(found))
    finally:
        write(folder, file, kept)


TARGETS["info"] = Target(_heads, _change_info, _info, weight=2, seconds=15, megabytes=2500)


# Saved caches of prompts.


@functools.cache
def _stories() -> Any:
    return zoo.load("stories260k")


def _caches() -> list[bytes]:
    cache = _stories().prompt_cache()
    "".join(_stories().stream("Once upon", cache=cache, max_new_tokens=3))
    path = Path("cache.safetensors").absolute()
    cache.save_cache(path, {"a": "b"})
    data = path.read_bytes()
    path.unlink()
    return [data]


def _load_cache(data: bytes, at: Path) -> None:
    cache = _stories().prompt_cache()
    cache.load_cache(write(at, "x.safetensors", data))
    "".join(_stories().stream("Once upon a time", cache=cache, max_new_tokens=2))


TARGETS["prompt-cache"] = Target(_caches, mutate.of_safetensors, _load_cache)


# The spm.model of DeBERTa's checkpoints.


def _pieces() -> list[bytes]:
    import struct

    def field(number: int, body: bytes) -> bytes:
        return bytes([number << 3 | 2, len(body)]) + body

    pieces = [("[PAD]", 3), ("[CLS]", 3), ("[SEP]", 3), ("[UNK]", 2), ("▁a", 1), ("b", 1), ("▁", 1), ("c", 4)]
    scores = [struct.pack("<f", -float(i)) for i in range(len(pieces))]
    out = b"".join(
        field(1, field(1, text.encode()) + b"\x15" + score + b"\x18" + bytes([kind]))
        for (text, kind), score in zip(pieces, scores, strict=True)
    )
    return [out, out + field(2, b"\x18\x01"), out + field(3, b"\x0a\x04nmt_" + field(2, bytes(16)))]


def _deberta(data: bytes, at: Path) -> None:
    from zoo.text.tokenizer import Tokenizer

    write(at, "spm.model", data)
    write(at, "tokenizer_config.json", b'{"tokenizer_class": "DebertaV2Tokenizer", "split_by_punct": true}')
    Tokenizer.from_folder(at)(["a b, c", ""], truncation=True, max_length=8)


_PIECE_WORDS = [b"\x0a\xff\xff\xff\xff\x0f", b"\x80" * 11, b"\x18\x02", b"\x18\x04", b"\x15\x00\x00\x80\x7f", b"[MASK]"]
TARGETS["spm"] = Target(_pieces, mutate.of_bytes(_PIECE_WORDS), _deberta)


# Requests to the server, with grammars among them.


_CHAT: dict[str, Any] = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"type": "array", "items": {"$ref": "#/$defs/c"}}},
    "required": ["a"],
    "$defs": {"c": {"type": "string", "pattern": "^a+b?$", "maxLength": 5}},
}
_PROMPT: dict[str, Any] = {"model": "stories260k", "prompt": "Once", "max_tokens": 2}
_REQUESTS: dict[str, list[dict[str, Any]]] = {
    "/v1/completions": [
        {**_PROMPT, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "n": 2, "seed": 3, "stop": ["a"], "logprobs": 2},
        {**_PROMPT, "prompt": [[1, 2], [3]], "echo": True, "stream": True, "stream_options": {"include_usage": True}},
        {**_PROMPT, "structured_outputs": {"json": _SCHEMA}},
        {**_PROMPT, "structured_outputs": {"regex": "(a|b)*c{2,5}[^x]\\d"}},
        {**_PROMPT, "structured_outputs": {"choice": ["yes", "no"]}},
    ],
    "/v1/chat/completions": [_CHAT, {**_CHAT, "response_format": {"type": "json_object"}}],
    "/v1/classify": [
        {"model": "checkpoint", "input": ["a", "the a"], "pairs": ["b", "c"], "top_k": 2, "truncate": True}
    ],
    "/v1/embeddings": [{"input": ["a", "the"], "encoding_format": "base64", "dimensions": 4}, {"input": "a"}],
    "/v1/rerank": [{"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1, "return_documents": True}],
    "/tokenize": [{"model": "stories260k", "prompt": "a b"}],
}


def _requests() -> list[bytes]:
    return [path.encode() + b"\n" + as_json(body) for path, bodies in _REQUESTS.items() for body in bodies]


@functools.cache
def _app(folder: Path) -> Any:
    from zoo.apps.serve.app import application
    from zoo.apps.serve.models import Models

    names = [str(folder / name) for name in ("checkpoint", "embed", "rerank", "chat")]
    models = Models(["stories260k", *names], seconds=60, context=64)
    models.load()
    assert not models.unready_models, models.unready_models
    return application(models)


def _serving(at: Path) -> None:
    from tests.chat_checkpoint import write_chat_checkpoint

    write_chat_checkpoint(at / "chat")
    small_bert(at / "checkpoint")
    for name, head, labels in (("embed", "Model", 2), ("rerank", "ForSequenceClassification", 1)):
        small_bert(at / name, head, labels)
    _app(at)


def _ask(data: bytes, at: Path) -> None:
    path, body = _split(data)
    status, answer = asyncio.run(_answer(_app(at), path, body))
    if status in (500, 504):
        raise RuntimeError(f"{status}: {answer.decode(errors='replace')[:200]}")
    if status >= 400:
        assert json.loads(answer)["error"]["message"]
        raise ZooError(f"{status}: {answer.decode(errors='replace')[:200]}")


async def _answer(app: Any, path: str, body: bytes) -> tuple[int, bytes]:
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": headers, "http_version": "1.1", "scheme": "http", "root_path": "", "client": ("127.0.0.1", 1)}
    sent, status, answer = False, 0, b""

    async def receive() -> dict[str, Any]:
        nonlocal sent
        if sent:
            await asyncio.sleep(3600)
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        answer += message.get("body", b"")

    await app({**scope, "server": ("127.0.0.1", 80)}, receive, send)
    return status, answer


_OPTIONS = [
    _SCHEMA,
    {"type": "string", "pattern": "(a+)+$"},
    {"$ref": "#"},
    "(x{0,999}){0,999}",
    {"enum": [1, "a"]},
]
_OPTIONS += [
    {"anyOf": [{"type": "integer"}, {}]},
    "stories260k",
    "checkpoint",
    "\\p{L}*",
    "a{1000000}",
    100,
    "^$",
]


def _change_request(rng: random.Random, data: bytes) -> bytes:
    path, body = _split(data)
    return path.encode() + b"\n" + mutate.of_json(_OPTIONS)(rng, body)


if has("starlette", "msgspec", "prometheus_client"):
    TARGETS["requests"] = Target(
        _requests, _change_request, _ask, prepare=_serving, weight=4, seconds=15, megabytes=3000, starts=True
    )


# GGUF files of the decoders' architectures, loaded and called.


_SQUARE, _HALF_SQUARE, _ROW, _SHORT_ROW = ((32, 32), 0, 4096), ((32, 16), 0, 2048), ((32,), 0, 128), ((16,), 0, 64)
_WIDE_MATRIX, _EXPERTS = ((32, 64), 0, 8192), ((32, 8, 4), 0, 4096)
_LAYER_TENSORS = dict.fromkeys(("attn_q.weight", "attn_output.weight", "ffn_gate.weight", "ffn_up.weight"), _SQUARE)
_LAYER_TENSORS |= {"attn_k.weight": _HALF_SQUARE, "attn_v.weight": _HALF_SQUARE, "ffn_down.weight": _SQUARE}
_LAYER_TENSORS |= {"attn_norm.weight": _ROW, "ffn_norm.weight": _ROW}
_NORMS = {"attn_q_norm.weight": _SHORT_ROW, "attn_k_norm.weight": _SHORT_ROW}
# llama.cpp's name of an architecture -> its own metadata and tensors; None for a tensor that it has not.
_ARCHITECTURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "llama": ({}, {}),
    "qwen2": ({}, {"attn_q.bias": _ROW, "attn_k.bias": _SHORT_ROW, "attn_v.bias": _SHORT_ROW}),
    "qwen3": ({}, _NORMS),
    "qwen3moe": (
        {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 8},
        {**_NORMS, "ffn_gate_inp.weight": ((32, 4), 0, 512), "ffn_down_exps.weight": ((8, 32, 4), 0, 4096)}
        | {"ffn_gate_exps.weight": _EXPERTS, "ffn_up_exps.weight": _EXPERTS}
        | dict.fromkeys(("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight")),
    ),
    "gemma3": (
        {"attention.sliding_window": 4, "rope.scaling.factor": 2.0, "rope.scaling.type": "linear"},
        {**_NORMS, "post_attention_norm.weight": _ROW, "post_ffw_norm.weight": _ROW},
    ),
    "phi3": (
        {"attention.sliding_window": 4, "rope.dimension_count": 8},
        {"attn_qkv.weight": _WIDE_MATRIX, "ffn_up.weight": _WIDE_MATRIX}
        | dict.fromkeys(("attn_q.weight", "attn_k.weight", "attn_v.weight", "ffn_gate.weight")),
    ),
}


def _ggufs() -> list[bytes]:
    pieces = {"model": "llama", "tokens": ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a"], "bos_token_id": 1}
    pieces |= {"scores": [0.0, 0.0, 0.0, -3.0, -4.0, -5.0, -1.0, -2.0], "token_type": [2, 3, 3, 1, 1, 1, 1, 1]}
    common = {"context_length": 16, "embedding_length": 32, "block_count": 1, "feed_forward_length": 32}
    common |= {"attention.head_count": 2, "attention.head_count_kv": 1, "rope.freq_base": 1e4}
    found = []
    for name, (own, tensors) in _ARCHITECTURES.items():
        pairs: dict[str, object] = {"general.architecture": name, f"{name}.attention.layer_norm_rms_epsilon": 1e-5}
        pairs |= {f"{name}.{key}": value for key, value in (common | own).items()}
        pairs |= {f"tokenizer.ggml.{key}": value for key, value in pieces.items()}
        layer = {f"blk.0.{key}": value for key, value in (_LAYER_TENSORS | tensors).items() if value is not None}
        found.append(gguf_file(pairs, {"token_embd.weight": ((32, 8), 0, 1024), "output_norm.weight": _ROW, **layer}))
    return found


def _of_gguf(rng: random.Random, data: bytes) -> bytes:
    words = [b"qwen3moe", b"gemma3", b"phi3", b"expert_count", b"rope.scaling.type", b"yarn", b"rope_freqs.weight"]
    words += [b"\x00\x00\xc0\x7f", b"\xff" * 8, b"\x00" * 4, b"head_count", b"blk.1.", b"\x01\x00\x00\x00"]
    return mutate.of_bytes(words, head=2600)(rng, data)


def _generate(data: bytes, at: Path) -> None:
    task: Any = zoo.load(write(at, "m.gguf", data))
    task("a", max_new_tokens=2)


TARGETS["gguf-load"] = Target(_ggufs, _of_gguf, _generate, weight=2, seconds=15, megabytes=2500)
