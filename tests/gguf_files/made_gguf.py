"""GGUF files made by the `gguf` package's writer, as llama.cpp's converter makes them of transformers' checkpoints."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import zoo
from zoo.ops import on_numpy
from zoo.weights.files import open_weights
from zoo.weights.stacked_experts import ExpertsSource

gguf: Any = pytest.importorskip("gguf", reason="needs gguf, which makes the files")
OWN = Path(zoo.__file__).parent / "data" / "stories260k"
DATA = Path(__file__).parents[1] / "data"
KINDS = gguf.GGMLQuantizationType


def permuted(x: np.ndarray, heads: int) -> np.ndarray:
    """A llama's rows of queries or keys as llama.cpp has them."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def tensors_of(folder: Path) -> dict[str, np.ndarray]:
    source = ExpertsSource(open_weights(folder))
    return {
        n: np.asarray(on_numpy.to_parameter(cast(Any, source.read(n)), n, None, "cpu"))
        for n in source.names()
        if "position_ids" not in n
    }


def write_llama(folder: Path, path: Path, kind: str = "F32", tokens: str = "pieces", **more: Any) -> Path:
    """A Llama checkpoint's folder as a GGUF file.  more: metadata, with dots as __, beside or in place of the usual."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "llama")
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["hidden_size"] // heads)
    writer.add_rope_freq_base(config["rope_theta"])
    if tokens == "pieces":
        add_pieces(writer, folder)
    elif tokens == "bytes":
        add_bytes(writer, folder)
    add(writer, more)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, x in tensors_of(folder).items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            x = permuted(x, heads if "q_proj" in name else groups)
        put(writer, str(names.get_name(name, try_suffixes=(".weight", ".bias"))), x, kind)
    return finish(writer, path)


def stacked(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The matrices of experts as one tensor (E, F, D), under the name that the converter has for it."""
    out: dict[str, Any] = {}
    for name, x in tensors.items():
        before, experts, rest = name.partition(".experts.")
        if experts:
            number, _, kind = rest.partition(".")
            out.setdefault(before + experts + kind, {})[int(number)] = x
        else:
            out[name] = x
    return {n: np.stack([x[i] for i in sorted(x)]) if isinstance(x, dict) else x for n, x in out.items()}


def write_decoder(
    folder: Path, path: Path, architecture: str, kind: str = "F32", tokens: str = "pieces", **more: Any
) -> Path:
    """A checkpoint's folder of a decoder that descends from Llama as a GGUF file of this architecture."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, architecture)
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    if architecture in ("command-r", "stablelm", "phi2", "nemotron"):
        writer.add_layer_norm_eps(config["norm_eps" if architecture == "nemotron" else "layer_norm_eps"])
    else:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    if config.get("head_dim"):
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    if tokens == "pieces":
        add_pieces(writer, folder)
    else:
        add_bytes(writer, folder)
    add(writer, more)
    arch = gguf.MODEL_ARCH[architecture.upper().replace("-", "_")]
    names = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    for name, x in stacked(tensors_of(folder)).items():
        if architecture in ("smollm3", "llama", "arcee") and name.endswith(("q_proj.weight", "k_proj.weight")):
            x = permuted(x, heads if "q_proj" in name else groups)
        if architecture in ("gemma", "gemma2", "gemma3", "nemotron") and name.endswith("norm.weight"):
            x = x + 1
        found = str(names.get_name(name, try_suffixes=(".weight", ".bias")))
        put(writer, f"{found}.weight" if found.endswith("attn_sinks") else found, x, kind)
    return finish(writer, path)


def write_bert(folder: Path, path: Path, kind: str = "F32", **more: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    add_words(writer, folder)
    add(writer, more)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for name, x in tensors_of(folder).items():
        if "pooler" not in name and "position_ids" not in name:
            found = names.get_name(name, try_suffixes=(".weight", ".bias"))
            put(writer, str(found), x, kind)
    return finish(writer, path)


def put(writer: Any, name: str, x: np.ndarray, kind: str) -> None:
    """As llama.cpp: vectors, norms, positions and segments stay float32."""
    plain = x.ndim == 1 or name.startswith(("position_embd", "token_types")) or kind == "F32"
    if plain or x.shape[-1] % gguf.GGML_QUANT_SIZES[KINDS[kind]][0]:
        writer.add_tensor(name, np.ascontiguousarray(x, np.float32))
    else:
        packed = gguf.quants.quantize(np.ascontiguousarray(x, np.float32), KINDS[kind])
        writer.add_tensor(name, packed, raw_dtype=KINDS[kind])


def add(writer: Any, more: dict[str, Any]) -> None:
    for name, value in more.items():
        key = name.replace("__", ".")
        for shard in writer.kv_data:
            shard.pop(key, None)
        if value is not None:
            add_value(writer, key, value)


def add_value(writer: Any, key: str, value: Any) -> None:
    kinds = {bool: "add_bool", int: "add_uint32", float: "add_float32", str: "add_string", list: "add_array"}
    getattr(writer, kinds[type(value)])(key, value)


def finish(writer: Any, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def add_pieces(writer: Any, folder: Path) -> None:
    """The tokens of a tokenizer.json of SentencePiece's BPE: the earlier a merge, the higher its piece's score."""
    raw = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocab, special = raw["model"]["vocab"], {t["content"] for t in raw["added_tokens"]}
    ranks: dict[str, int] = {}
    for i, merge in enumerate(raw["model"]["merges"]):
        ranks.setdefault("".join(merge), i)
    tokens = sorted(vocab, key=lambda token: vocab[token])
    kinds, scores = [], []
    for token in tokens:
        control = token in special
        byte = len(token) == 6 and token.startswith("<0x")
        kinds.append(2 if token == "<unk>" else 3 if control else 6 if byte else 1)
        scores.append(-float(ranks.get(token, len(ranks))))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([t.replace(" ", "▁") if k == 1 else t for t, k in zip(tokens, kinds, strict=True)])
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)


def add_bytes(writer: Any, folder: Path, pre: str = "llama-bpe") -> None:
    """The tokens of a tokenizer.json of byte-level BPE."""
    raw = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokens = {i: (token, 1) for token, i in raw["model"]["vocab"].items()}
    tokens |= {t["id"]: (t["content"], 3 if t["special"] else 4) for t in raw["added_tokens"]}
    every = [tokens.get(i, (f"[PAD{i}]", 5)) for i in range(max(tokens) + 1)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([token for token, _ in every])
    writer.add_token_types([kind for _, kind in every])
    merges = raw["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])


def add_words(writer: Any, folder: Path) -> None:
    """The tokens of a vocab.txt."""
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    control = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    marked = [w if w in control else w[2:] if w.startswith("##") else "▁" + w for w in words]
    writer.add_tokenizer_model("bert")
    writer.add_token_list(marked)
    writer.add_token_types([3 if w in control else 1 for w in words])
    writer.add_token_type_count(2)
    for role, word in (("unk", "[UNK]"), ("sep", "[SEP]"), ("pad", "[PAD]"), ("bos", "[CLS]"), ("mask", "[MASK]")):
        getattr(writer, f"add_{role}_token_id")(words.index(word))


def unpacked(name: str) -> bytes:
    """One of the real vocabularies of tests/data."""
    return lzma.decompress((DATA / "tokenizers" / f"{name}.xz").read_bytes())
