"""GGUF files: headers whose counts, types and offsets are changed, of files as llama.cpp's converter writes them."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from .. import mutate
from .target import TARGETS, Target, write

_WORDS = [b"llama", b"bert", b"llama.block_count", b"general.alignment", b"tokenizer.ggml.merges", b"GGUF"]
_WORDS += [struct.pack("<I", kind) for kind in range(14)] + [struct.pack("<Q", 2**n) for n in (20, 31, 32, 60, 63)]
_WORDS += [b"\xff" * 8, b"\x00\x7e", struct.pack("<IQ", 9, 1), struct.pack("<IQ", 8, 3)]


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _pair(key: str, value: object) -> bytes:
    if isinstance(value, str):
        return _text(key) + struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return _text(key) + struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return _text(key) + struct.pack("<II", 4, value)
    if isinstance(value, float):
        return _text(key) + struct.pack("<If", 6, value)
    assert isinstance(value, list)
    if isinstance(value[0], str):
        return _text(key) + struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
    kind, form = (6, "f") if isinstance(value[0], float) else (5, "i")
    return _text(key) + struct.pack(f"<IIQ{len(value)}{form}", 9, kind, len(value), *value)


def gguf_file(
    pairs: dict[str, object], tensors: dict[str, tuple[tuple[int, ...], int, int]], version: int = 3
) -> bytes:
    """tensors: name -> shape, the innermost first; type; bytes."""
    out = struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(pairs))
    out += b"".join(_pair(key, value) for key, value in pairs.items())
    offset = 0
    for name, (shape, kind, size) in tensors.items():
        out += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += -(-size // 32) * 32
    return out + bytes(-len(out) % 32) + b"\x01\x20" * (offset // 2)


_SIZES = {"context_length": 16, "embedding_length": 32, "block_count": 1, "feed_forward_length": 32}
_SIZES["attention.head_count"] = 2


def _llama(tokenizer: dict[str, object], kind: int, block: int) -> bytes:
    pairs: dict[str, object] = {"general.architecture": "llama", "llama.attention.layer_norm_rms_epsilon": 1e-5}
    pairs |= {f"llama.{key}": value for key, value in _SIZES.items()}
    pairs |= {f"tokenizer.ggml.{key}": value for key, value in tokenizer.items()}
    matrix, row = ((32, 32), kind, 32 * block), ((32,), 0, 128)
    tensors = {"token_embd.weight": ((32, 8), kind, 8 * block), "output_norm.weight": row}
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        tensors[f"blk.0.{name}.weight"] = matrix
    tensors |= {"blk.0.attn_norm.weight": row, "blk.0.ffn_norm.weight": row}
    return gguf_file(pairs | {"tokenizer.chat_template": "{{ messages }}"}, tensors)


def _seeds() -> list[bytes]:
    pieces = {"model": "llama", "tokens": ["<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁a"], "bos_token_id": 1}
    pieces |= {"scores": [0.0, 0.0, 0.0, -3.0, -4.0, -5.0, -1.0, -2.0], "token_type": [2, 3, 3, 1, 1, 1, 1, 1]}
    letters = {"model": "gpt2", "pre": "llama-bpe", "tokens": ["<s>", "</s>", "Ġ", "a", "b", "ab", "Ġa", "c"]}
    letters |= {"merges": ["a b", "Ġ a"], "token_type": [3, 3, 1, 1, 1, 1, 1, 1], "bos_token_id": 0, "eos_token_id": 1}
    words = {
        "model": "bert",
        "tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁a", "b"],
        "token_type": [3, 3, 3, 3, 1, 1],
    }
    pairs: dict[str, object] = {"general.architecture": "bert", "bert.attention.layer_norm_epsilon": 1e-12}
    pairs |= {f"bert.{key}": value for key, value in _SIZES.items()} | {"bert.pooling_type": 1}
    pairs |= {f"tokenizer.ggml.{key}": value for key, value in words.items()}
    bert = gguf_file(pairs, {"token_embd.weight": ((32, 6), 0, 768), "position_embd.weight": ((32, 16), 0, 2048)}, 2)
    return [_llama(pieces, 0, 128), _llama(letters, 8, 34), _llama(pieces, 2, 18), bert]


def _change(rng: random.Random, data: bytes) -> bytes:
    return mutate.of_bytes(_WORDS, head=1800)(rng, data)


def _run(data: bytes, at: Path) -> None:
    from zoo.errors import ZooError
    from zoo.text.tokenizer import Tokenizer
    from zoo.weights.gguf.folder import GGUFFolder
    from zoo.weights.gguf.source import GGUFFile

    path = write(at, "model.gguf", data)
    source = GGUFFile(path)
    for name in list(source.names())[:30]:
        stored = source.read(name)
        if hasattr(stored, "check"):
            stored.check(name).dequantise()  # type: ignore[union-attr]
    try:
        Tokenizer.from_folder(GGUFFolder(path, source.header)).backend.encode("a ab")
    except ZooError as e:
        if "model.gguf" not in str(e):
            raise RuntimeError(f"no name of the file in {e}") from e
        raise


TARGETS["gguf"] = Target(_seeds, _change, _run)
