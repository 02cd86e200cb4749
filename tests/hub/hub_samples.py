"""Checkpoints to be served or found, and what the tests look at afterwards."""

from __future__ import annotations

import json
from pathlib import Path

from fake_hub import Request

WEIGHTS = bytes(range(256)) * 1024  # 256 KiB: several reads at either end of a socket
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 133466304\n"

NEEDED = {
    "config.json": b'{"model_type": "bert"}',
    "generation_config.json": b"{}",
    "tokenizer.json": b'{"version": "1.0"}',
    "tokenizer_config.json": b'{"do_lower_case": true}',
    "special_tokens_map.json": b'{"pad_token": "[PAD]"}',
    "vocab.txt": b"[PAD]\n[UNK]\n",
    "sentencepiece.bpe.model": b"\x0a\x0d",
    "modules.json": b"[]",
    "config_sentence_transformers.json": b'{"prompts": {}}',
    "sentence_bert_config.json": b'{"max_seq_length": 256}',
    "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
    "2_Normalize/config.json": b'{"module": "normalize"}',
    "3_Dense/config.json": b'{"in_features": 8}',
    "3_Dense/model.safetensors": b"dense",
    "model.safetensors": WEIGHTS,
}
UNNEEDED = {
    ".gitattributes": b"*.bin filter=lfs",
    "README.md": b"# card",
    "pytorch_model.bin": b"pickle",
    "tf_model.h5": b"tf",
    "flax_model.msgpack": b"flax",
    "model.fp16.safetensors": b"variant",
    "onnx/config.json": b"{}",
    "onnx/model.onnx": b"onnx",
    "original/consolidated.00.pth": b"original",
    "original/tokenizer.model": b"original",
    "openvino/openvino_model.bin": b"openvino",
    "ggml-model-q4_0.gguf": b"gguf",
    "optimizer.pt": b"optimizer",
    "1_Pooling/notes.txt": b"notes",
    "3_Dense/pytorch_model.bin": b"dense",
    "modeling_custom.py": b"raise SystemExit",
}
SMALL = {name: NEEDED[name] for name in ("config.json", "tokenizer.json", "vocab.txt")}
BERT = {**SMALL, "model.safetensors": WEIGHTS}
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
SHARDED = {
    **SMALL,
    "model.safetensors.index.json": json.dumps(
        {"metadata": {"total_size": 8}, "weight_map": {"a": SHARDS[0], "b": SHARDS[1], "c": SHARDS[0]}}
    ).encode(),
    SHARDS[0]: b"first" * 100,
    SHARDS[1]: b"second" * 100,
}


def fetched(requests: list[Request], name: str) -> list[str]:
    """The files of a repository whose content was asked for; each counts once, at its first address."""
    return sorted(r.path.split("/", 5)[5] for r in requests if r.method == "GET" and r.path.startswith(f"/{name}/"))


def header(request: Request, name: str) -> str | None:
    return {key.lower(): value for key, value in request.headers.items()}.get(name.lower())


def blobs(cache: Path, name: str) -> list[Path]:
    """The files that the cache holds of a repository; older releases of huggingface_hub keep halves to resume from."""
    folder = cache / f"models--{name.replace('/', '--')}" / "blobs"
    return sorted(path for path in folder.glob("*") if path.suffix != ".incomplete")


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
