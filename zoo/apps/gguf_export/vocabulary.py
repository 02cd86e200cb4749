"""A tokenizer as llama.cpp's tokens, scores, merges and flags; `zoo.weights.gguf.tokenizer` reads them back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...errors import UnsupportedError
from ...warning import warn
from ...weights.gguf.splits import name_of
from ...weights.gguf.tokenizer import (
    BYTE,
    BYTES,
    CONTROL,
    HUGGING_FACE,
    NORMAL,
    ROLES,
    SPACE,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
)

NFC = {"type": "NFC"}

if TYPE_CHECKING:
    from ...tasks.base import TextTask
    from ...text.tokenizer import Tokenizer


def add_tokenizer(writer: Any, task: TextTask) -> None:
    """Add a task's tokenizer and chat templates.  UnsupportedError: llama.cpp has no such tokenizer."""
    tokenizer = task.tokenizer
    raw = json.loads(tokenizer.backend.to_str())
    kind = raw["model"]["type"]
    if kind == "BPE" and raw["model"].get("byte_fallback"):
        _add_pieces(writer, raw, task)
    elif kind == "BPE":
        _add_bytes(writer, raw, task)
    elif kind == "WordPiece":
        _add_words(writer, raw, task)
    else:
        raise UnsupportedError(f"a tokenizer of the type {kind} cannot be written as GGUF, only BPE and WordPiece can")
    writer.add_string(HUGGING_FACE, json.dumps(raw, ensure_ascii=False))
    for role, name in ROLES.items():
        index = getattr(tokenizer, f"{role}_token_id")
        if index is not None and not (kind == "WordPiece" and role in ("bos", "eos", "cls")):
            writer.add_uint32(f"tokenizer.ggml.{name}_token_id", index)
    if kind == "WordPiece" and tokenizer.cls_token_id is not None:  # llama.cpp begins a text with it
        writer.add_uint32("tokenizer.ggml.bos_token_id", tokenizer.cls_token_id)
    if task.config.model_type != "bert":
        _add_ends(writer, task)
    template = getattr(task, "template", None)
    for name, source in template.sources.items() if template else ():
        writer.add_string("tokenizer.chat_template" if name == "default" else f"tokenizer.chat_template.{name}", source)
    if names := [name for name in (template.sources if template else ()) if name != "default"]:
        writer.add_array("tokenizer.chat_templates", names)


def _add_ends(writer: Any, task: TextTask) -> None:
    """Add the flags for the tokens around a text and the tokens that end an answer."""
    tokenizer: Tokenizer = task.tokenizer
    ids = tokenizer.backend.encode("a").ids
    writer.add_bool("tokenizer.ggml.add_bos_token", bool(ids) and ids[0] == tokenizer.bos_token_id)
    writer.add_bool("tokenizer.ggml.add_eos_token", bool(ids) and ids[-1] == tokenizer.eos_token_id)
    generation: Any = getattr(task, "generation", None)
    ends = [i for i in (generation.eos_token_id if generation else ()) if i != tokenizer.eos_token_id]
    for role, index in zip(("eot", "eom"), ends, strict=False):
        writer.add_uint32(f"tokenizer.ggml.{role}_token_id", index)


def _tokens(raw: dict[str, Any], task: TextTask) -> list[tuple[str, int]]:
    """(text, type) of each id, one for each row of the embedding table."""
    found = {i: (text, NORMAL) for text, i in raw["model"]["vocab"].items()}
    unknown = raw["model"].get("unk_token")
    for token in raw["added_tokens"]:
        found[token["id"]] = token["content"], CONTROL if token["special"] else USER_DEFINED
    rows = task.config.vocab_size
    if max(found) >= rows:
        raise UnsupportedError(f"the tokenizer has ids up to {max(found)}, the embedding table {rows} rows")
    every = [found.get(i, (f"[PAD{i}]", UNUSED)) for i in range(rows)]
    return [(text, UNKNOWN if text == unknown and kind != NORMAL else kind) for text, kind in every]


def _add(writer: Any, model: str, tokens: list[tuple[str, int]]) -> None:
    writer.add_tokenizer_model(model)
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_types([kind for _, kind in tokens])


def _add_bytes(writer: Any, raw: dict[str, Any], task: TextTask) -> None:
    model = raw["model"]
    pre = name_of(raw["pre_tokenizer"], bool(model.get("ignore_merges")))
    normalizer = raw["normalizer"]
    if normalizer == NFC:  # of Qwen, whose GGUF files have been without it from the first
        warn("GGUF has no place for the tokenizer's normalizer NFC: decomposed letters give other tokens there")
        normalizer = None
    if pre is None or normalizer is not None:
        raise UnsupportedError(
            "this tokenizer's normalizer and pre-tokenizer have no name in GGUF (tokenizer.ggml.pre)"
        )
    _add(writer, "gpt2", _tokens(raw, task))
    writer.add_tokenizer_pre(pre)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["merges"]])


def _add_pieces(writer: Any, raw: dict[str, Any], task: TextTask) -> None:
    """Add pieces with scores: the earlier the first merge that makes a piece, the higher its score."""
    ranks: dict[str, int] = {}
    for i, merge in enumerate(raw["model"]["merges"]):
        ranks.setdefault("".join(merge if isinstance(merge, list) else merge.split(" ")), i)
    tokens = _tokens(raw, task)
    scores = [-float(ranks.get(text, len(ranks))) for text, _ in tokens]
    known = set(BYTES)
    marked = [(text.replace(" ", SPACE), BYTE if text in known else kind) for text, kind in tokens]
    _add(writer, "llama", [new if new[1] in (NORMAL, BYTE) else old for new, old in zip(marked, tokens, strict=True)])
    writer.add_token_scores(scores)
    normalizer = json.dumps(raw["normalizer"])
    writer.add_bool("tokenizer.ggml.add_space_prefix", '"Prepend"' in normalizer)


def _add_words(writer: Any, raw: dict[str, Any], task: TextTask) -> None:
    normalizer = raw["normalizer"] or {}
    if normalizer.get("type") != "BertNormalizer" or raw["model"]["continuing_subword_prefix"] != "##":
        raise UnsupportedError("a WordPiece tokenizer whose normalizer is not BERT's cannot be written as GGUF")
    tokens = _tokens(raw, task)
    marked = [
        (text if kind != NORMAL else text[2:] if text.startswith("##") else SPACE + text, kind) for text, kind in tokens
    ]
    _add(writer, "bert", [(text, CONTROL if kind == UNKNOWN else kind) for text, kind in marked])
    writer.add_token_type_count(task.config.type_vocab_size)
    lower = bool(normalizer["lowercase"])
    writer.add_bool("tokenizer.ggml.normalizer.lowercase", lower)
    accents = normalizer["strip_accents"]
    writer.add_bool("tokenizer.ggml.normalizer.strip_accents", lower if accents is None else accents)
