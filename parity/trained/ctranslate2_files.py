"""Whisper's weights from CTranslate2's file of a model into transformers' names.

The format is CTranslate2's binary one, version 6: a name, then for each tensor its name, shape, type and bytes; strings
and counts are little-endian, and a string ends with a zero.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from zoo.errors import CheckpointError
from zoo.weights import RawTensor
from zoo.weights.safetensors import write_safetensors

FORMAT_VERSION = 6
ELEMENT_TYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}
FIRST_SPECIAL = 50257  # <|endoftext|>; <|startoftranscript|> is next
Tensors = dict[str, np.ndarray]


def whisper_checkpoint(model: bytes, settings: Mapping[str, bytes], folder: Path) -> None:
    """Write a checkpoint in transformers' layout.  model: model.bin.  settings: config.json and tokenizer.json."""
    tensors = dict(read_tensors(model))
    given = json.loads(settings["config.json"])
    words, width = tensors["decoder/embeddings/weight"].shape
    depth = 1 + max(
        int(name.split("/")[1][6:]) for name in tensors if name.startswith("encoder/layer_") and "/self" in name
    )
    mels = tensors["encoder/conv1/weight"].shape[1]
    special = {"bos_token_id": FIRST_SPECIAL, "eos_token_id": FIRST_SPECIAL, "pad_token_id": FIRST_SPECIAL}
    special["decoder_start_token_id"] = FIRST_SPECIAL + 1
    config = {"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "torch_dtype": "float32"}
    sides = {"layers": depth, "attention_heads": width // 64, "ffn_dim": 4 * width}
    config |= {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in sides.items()}
    config |= {"vocab_size": words, "d_model": width, "num_mel_bins": mels, **special}
    tokens = {token: i for i, token in _special_tokens(settings["tokenizer.json"])}
    generation = {"alignment_heads": given["alignment_heads"], "suppress_tokens": given["suppress_ids"]}
    generation |= {"begin_suppress_tokens": given["suppress_ids_begin"], "is_multilingual": True, "max_length": 448}
    generation |= {"lang_to_id": {token: i for token, i in tokens.items() if i in given["lang_ids"]}, **special}
    generation |= {"task_to_id": {name: tokens[f"<|{name}|>"] for name in ("transcribe", "translate")}}
    generation |= {"no_timestamps_token_id": tokens["<|notimestamps|>"], "prev_sot_token_id": tokens["<|startofprev|>"]}
    generation |= {"max_initial_timestamp_index": 50, "return_timestamps": False}
    features = {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": mels, "sampling_rate": 16000}
    features |= {"hop_length": 160, "n_fft": 400, "chunk_length": 30, "padding_value": 0.0, "padding_side": "right"}
    end = "<|endoftext|>"
    tokenizer = {"tokenizer_class": "WhisperTokenizer", "model_max_length": 448}
    tokenizer |= {f"{role}_token": end for role in ("bos", "eos", "unk", "pad")}
    files = {"config": config, "generation_config": generation, "preprocessor_config": features}
    for name, content in (files | {"tokenizer_config": tokenizer}).items():
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    (folder / "tokenizer.json").write_bytes(settings["tokenizer.json"])
    stored = {name: RawTensor(np.ascontiguousarray(a, np.float32), "F32") for name, a in _names_of(tensors, depth)}
    write_safetensors(folder / "model.safetensors", stored)


def read_tensors(data: bytes) -> Iterator[tuple[str, np.ndarray]]:
    """The tensors of a model.bin."""
    at = 0

    def number(kind: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{kind}", data, at)
        at += struct.calcsize(kind)
        return value

    def text() -> str:
        nonlocal at
        length = number("H")
        at += length
        return data[at - length : at - 1].decode()

    version = number("I")
    if version != FORMAT_VERSION:
        raise CheckpointError(f"model.bin has version {version} of CTranslate2's format, expected {FORMAT_VERSION}")
    _kind, _revision = text(), number("I")
    for _ in range(number("I")):
        name = text()
        shape = [number("I") for _ in range(number("B"))]
        kind, size = np.dtype(ELEMENT_TYPES[number("B")]), number("I")
        yield name, np.frombuffer(data, kind, size // kind.itemsize, at).reshape(shape)
        at += size


def _names_of(tensors: Tensors, depth: int) -> Iterator[tuple[str, np.ndarray]]:
    """Every tensor by transformers' name."""
    for i in (1, 2):
        for part in ("weight", "bias"):
            yield f"model.encoder.conv{i}.{part}", tensors[f"encoder/conv{i}/{part}"]
    yield "model.decoder.embed_tokens.weight", tensors["decoder/embeddings/weight"]
    for side in ("encoder", "decoder"):
        yield f"model.{side}.embed_positions.weight", tensors[f"{side}/position_encodings/encodings"]
        yield from _norm(tensors, f"{side}/layer_norm", f"model.{side}.layer_norm")
        for i in range(depth):
            source, target = f"{side}/layer_{i}", f"model.{side}.layers.{i}"
            yield from _attention(tensors, f"{source}/self_attention", f"{target}.self_attn", cross=False)
            if side == "decoder":
                yield from _attention(tensors, f"{source}/attention", f"{target}.encoder_attn", cross=True)
            for j in (0, 1):
                for part in ("weight", "bias"):
                    yield f"{target}.fc{j + 1}.{part}", tensors[f"{source}/ffn/linear_{j}/{part}"]
            yield from _norm(tensors, f"{source}/ffn/layer_norm", f"{target}.final_layer_norm")


def _norm(tensors: Tensors, source: str, target: str) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{target}.weight", tensors[f"{source}/gamma"]
    yield f"{target}.bias", tensors[f"{source}/beta"]


def _attention(tensors: Tensors, source: str, target: str, cross: bool) -> Iterator[tuple[str, np.ndarray]]:
    """The projections, which the file has as one matrix, or, of an encoder's states, as two."""
    inner = (0, 1) if cross else (0,)
    weight, bias = (
        np.concatenate([tensors[f"{source}/linear_{i}/{part}"] for i in inner]) for part in ("weight", "bias")
    )
    for name, w, b in zip("qkv", np.split(weight, 3), np.split(bias, 3), strict=True):
        yield f"{target}.{name}_proj.weight", w
        if name != "k":  # which has none in Whisper
            yield f"{target}.{name}_proj.bias", b
    for part in ("weight", "bias"):
        yield f"{target}.out_proj.{part}", tensors[f"{source}/linear_{len(inner)}/{part}"]
    yield from _norm(tensors, f"{source}/layer_norm", f"{target}_layer_norm")


def _special_tokens(tokenizer: bytes) -> Iterator[tuple[int, str]]:
    return ((one["id"], one["content"]) for one in json.loads(tokenizer)["added_tokens"])
