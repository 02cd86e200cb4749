"""llama.cpp's names for the ways to cut a text into words for byte-level BPE, as pre-tokenizers of `tokenizers`.

`tokenizer.ggml.pre` is a name only: the pattern behind it is in llama.cpp's source (src/llama-vocab.cpp).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ...errors import TokenizerError, nearest


class Split(NamedTuple):
    """ignore_merges: True if a word that is a token is not cut.  adds_bos: True if a text begins with the bos token,
    unless the file says otherwise."""

    pre_tokenizer: dict[str, Any]
    ignore_merges: bool = False
    adds_bos: bool = False


_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def _pattern(pattern: str) -> dict[str, Any]:
    """The words that a pattern finds, as bytes."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, {**_BYTES, "use_regex": False}]}


_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
_OTHER_PIECES = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _pattern(_CONTRACTIONS + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + _OTHER_PIECES)
_QWEN2 = _pattern(_CONTRACTIONS + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + _OTHER_PIECES)
_GPT2 = {**_BYTES, "use_regex": True}
_DIGITS = {"type": "Digits", "individual_digits": True}
_SMOLLM = {"type": "Sequence", "pretokenizers": [_DIGITS, _GPT2]}
_UPPER_CASE, _LOWER_CASE = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = _pattern(
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER_CASE}*{_LOWER_CASE}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER_CASE}+{_LOWER_CASE}*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_O200K = _pattern(
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER_CASE}*{_LOWER_CASE}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER_CASE}+{_LOWER_CASE}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{{N}}{{1,3}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# The first name of a kind is the one that an export writes.
SPLITS: dict[str, Split] = {
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"), Split(_LLAMA3, True, True)),
    **dict.fromkeys(("smaug-bpe", "dbrx", "chatglm-bpe", "glm4"), Split(_LLAMA3)),
    **dict.fromkeys(("gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat", "exaone4", "trillion"), Split(_GPT2)),
    **dict.fromkeys(
        ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"), Split(_SMOLLM)
    ),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "megrez", "hunyuan"), Split(_QWEN2)),
    "gpt-4o": Split(_O200K),
    "tekken": Split(_TEKKEN, True, True),
}


def split_of(name: str | None) -> Split:
    """TokenizerError where the name is unknown: another split gives other tokens, and nobody would notice."""
    if name is None or name not in SPLITS:
        found = "not stated, in a file of before May 2024" if name is None else repr(name[:100])
        known = ", ".join(SPLITS) + nearest(name or "", SPLITS)
        raise TokenizerError(f"tokenizer.ggml.pre is {found}: how texts are cut is not known; known are {known}")
    return SPLITS[name]


def name_of(pre_tokenizer: Any, ignore_merges: bool) -> str | None:
    """The name for a tokenizer.json's `pre_tokenizer`; None where none of them is the same."""
    wanted = _shape(pre_tokenizer)
    for name, split in SPLITS.items():
        if _shape(split.pre_tokenizer) == wanted and split.ignore_merges == ignore_merges:
            return name
    return None


def _shape(value: Any) -> str:
    """The settings of a component that change its cuts, not those that only move offsets."""
    if isinstance(value, dict) and value.get("type") == "Sequence" and len(value.get("pretokenizers", ())) == 1:
        value = value["pretokenizers"][0]
    text = json.dumps(value, sort_keys=True)
    return text.replace('"trim_offsets": false', '"trim_offsets": true')
