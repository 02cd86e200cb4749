"""The parts of a tokenizer file that are taken, and the bounds within which the `tokenizers` library gets them.

The library checks the types of what it reads.  Here is what it does not bound, or panics at: time that grows with a
pattern's shape, text that grows with each replacement, memory for each piece, rules that point out of their arrays.
"""

from __future__ import annotations

import base64
import math
from array import array
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from ..errors import TokenizerError, nearest
from .patterns import check_pattern

MAX_VOCABULARY = 2_000_000  # tokens; the largest on the hub have near a million
MAX_ID = 1 << 24
MAX_ADDED = 1 << 17  # added tokens
MAX_ADDED_TEXT = 1_000  # characters of one added token
MAX_ADDED_TOTAL = 1 << 21  # characters of all added tokens, whose search is slow to make
MAX_PIECE = 128  # characters of a token of Unigram, whose search looks so far ahead at every character
# Bytes of all of Unigram's tokens: each may be a node of a tree, which takes 330.  XLM-R has 10 for a piece.
MAX_PIECES_TEXT = 16 << 20
MAX_PARTS = 32  # parts of one kind, sequences within sequences counted
MAX_TEXT = 256  # characters of a replacement, a prefix, a token of a template
MAX_ITEMS = 64  # items of a list or an object in a part, say special tokens around a text
MAX_GROWTH = 8  # times that all replacements together may make a text longer
MAX_RULES = 8 << 20  # bytes of normalisation rules; XLM-R's have 0.24 MB
MAX_REPLACEMENT = 64  # bytes that a normalisation rule may make of one character; XLM-R's make 33

# kind of part: the key of its sequences
SEQUENCES = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
TYPES = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend Replace Strip "
    "StripAccents",
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits Metaspace Punctuation Split UnicodeScripts "
    "Whitespace WhitespaceSplit",
    "post_processor": "BertProcessing ByteLevel RobertaProcessing TemplateProcessing",
    "decoder": "BPEDecoder ByteFallback ByteLevel CTC Fuse Metaspace Replace Strip WordPiece",
}


def quote(value: Any) -> str:
    """Any value, briefly, for a message."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = repr(value[:80]) if isinstance(value, str) else repr(value)
    return text if len(text) <= 90 else text[:90] + "..."


def check_part(kind: str, value: Any, where: str) -> None:
    """TokenizerError unless a tokenizer.json's normalizer, pre_tokenizer, ... is null, or of parts that are taken."""
    if value is None:
        return
    parts = _flat_parts(kind, value, f"{where}: {kind}")
    growth = 1.0
    for part in parts:
        if part["type"] == "Replace":
            ((way, pattern),) = part["pattern"].items()
            growth *= max(1.0, len(part["content"]) / (len(pattern) if way == "String" else 1))
        elif part["type"] == "Prepend":
            growth *= 1 + len(part["prepend"]) / MAX_TEXT
    if growth > MAX_GROWTH:
        raise TokenizerError(
            f"{where}: {kind}: its replacements make a text {growth:.3g} times as long, at most {MAX_GROWTH}"
        )
    for name in ("Precompiled", "ByteLevel") if kind == "normalizer" else ():  # each lengthens a text by a constant
        if sum(part["type"] == name for part in parts) > 1:
            raise TokenizerError(f"{where}: {kind}: more than one {name}")


def _flat_parts(kind: str, value: Any, where: str, depth: int = 0) -> list[dict[str, Any]]:
    """The parts that a part is made of, each checked."""
    sequence, types = SEQUENCES[kind], TYPES[kind].split()
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise TokenizerError(f"{where} is {quote(value)}, expected an object with its type")
    name = value["type"]
    if name == "Sequence":
        inner = value.get(sequence)
        if not isinstance(inner, list) or len(inner) > MAX_PARTS or depth > 3:
            raise TokenizerError(f"{where}: {sequence} is {quote(inner)}, expected a list of at most {MAX_PARTS} parts")
        found = [p for i, part in enumerate(inner) for p in _flat_parts(kind, part, f"{where}[{i}]", depth + 1)]
        if len(found) > MAX_PARTS:
            raise TokenizerError(f"{where}: more than {MAX_PARTS} parts")
        return found
    if name not in types:
        raise TokenizerError(f"{where}: the type {quote(name)} is not taken{nearest(name, (*types, 'Sequence'))}")
    where = f"{where} ({name})"
    for field, content in value.items():
        if field == "pattern":
            _check_pattern(content, f"{where}: pattern")
        elif field == "precompiled_charsmap":
            check_charsmap(content, where)
        else:
            _check_size(content, where, field)
    needed = {"Replace": ("pattern", "content"), "Prepend": ("prepend",)}.get(name, ())
    for field in needed:
        if not isinstance(value.get(field), dict if field == "pattern" else str):
            raise TokenizerError(f"{where}: {field} is {quote(value.get(field))}, expected a text or pattern")
    if name == "TemplateProcessing":
        _check_template(value, where)
    if kind == "decoder" and name == "Strip" and value.get("stop"):
        raise TokenizerError(f"{where}: stop is {quote(value['stop'])}, only 0 is taken: the library fails at others")
    return [value]


def _check_template(value: dict[str, Any], where: str) -> None:
    """TokenizerError unless a template has each text once, and ids for each special token."""
    try:
        pieces = [piece for name in ("single", "pair") for piece in value[name]]
        texts = sorted(piece["Sequence"]["id"] for piece in pieces if "Sequence" in piece)
        used = {piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece}
        known = {name for name, token in value["special_tokens"].items() if len(token["ids"]) == len(token["tokens"])}
    except (AttributeError, KeyError, TypeError):
        raise TokenizerError(f"{where}: expected single and pair, lists of pieces, and special_tokens") from None
    if texts != ["A", "A", "B"]:
        raise TokenizerError(f"{where}: the texts {texts!r:.80}, expected A in single, A and B in pair, once each")
    for name in used - known:
        raise TokenizerError(f"{where}: special_tokens lacks {quote(name)}, or has not a token for each of its ids")


def _check_size(value: Any, where: str, field: str = "") -> None:
    """TokenizerError for a long text, a number out of range, a long list or a deep one."""
    if wrong := _wrong_size(value):
        raise TokenizerError(f"{where}: {quote(field)[1:-1]} is {wrong}" if field else f"{where} is {wrong}")


def _wrong_size(value: Any, depth: int = 0) -> str:
    if isinstance(value, str):
        return "" if len(value) <= MAX_TEXT else f"{quote(value)}, expected a text of at most {MAX_TEXT} characters"
    if isinstance(value, (int, float)):
        return "" if 0 <= value < MAX_ID else f"{quote(value)}, expected a whole number from 0 to {MAX_ID - 1}"
    if not isinstance(value, (dict, list)):
        return ""
    if len(value) > MAX_ITEMS or depth > 4:
        return f"{quote(value)}, at most {MAX_ITEMS} are taken"
    for inner in [*value, *value.values()] if isinstance(value, dict) else value:
        if wrong := _wrong_size(inner, depth + 1):
            return wrong
    return ""


def _check_pattern(value: Any, where: str) -> None:
    if not isinstance(value, dict) or len(value) != 1 or not set(value) <= {"String", "Regex"}:
        raise TokenizerError(f"{where} is {quote(value)}, expected a String or Regex")
    ((kind, pattern),) = value.items()
    if not isinstance(pattern, str) or not pattern:
        raise TokenizerError(f"{where} is {quote(pattern)}, expected a pattern that is not empty")
    if kind == "String":
        return _check_size(pattern, where)
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise TokenizerError(f"{where} {quote(pattern)} is not taken: {error}") from None
    return None


def check_charsmap(data: Any, where: str) -> None:
    """TokenizerError for SentencePiece's normalisation rules (bytes, or in base64) that the library cannot follow.

    Their format: the size in bytes of a trie, the trie in words of 32 bits (a double array), and the texts that its
    leaves point into, which end with a zero.
    (https://github.com/google/sentencepiece/blob/master/src/normalizer.cc)
    """
    try:
        data = base64.b64decode(data, validate=True) if isinstance(data, str) else bytes(data or b"")
        size = int.from_bytes(data[:4], "little")
        if not 8 <= len(data) <= MAX_RULES or size % 4 or not 4 <= size <= len(data) - 4:
            raise ValueError(f"{len(data)} bytes with a trie of {size}")
        units, texts = np.frombuffer(data, "<u4", size // 4, 4), data[4 + size :]
        texts.decode()
        if max(map(len, texts.split(b"\0"))) > MAX_REPLACEMENT:
            raise ValueError(f"one of them makes more than {MAX_REPLACEMENT} bytes of one character")
        # A unit is reached by its label, a byte that is not zero; from its base any byte may follow.
        bases = np.arange(len(units)) ^ (units.astype(np.int64) >> 10 << ((units & 1 << 9) >> 6))
        reached = (units & 1 << 31 == 0) & (units & 0xFF != 0)
        reached[0] = True
        if (bases[reached] | 0xFF).max() >= len(units):
            raise ValueError("they point out of their trie")
        reached[0] = False
        starts = units[bases[reached & (units & 1 << 8 != 0)]] & 0x7FFFFFFF
        if starts.max(initial=0) >= max(len(texts), 1) or (np.frombuffer(texts, "u1")[starts] & 0xC0 == 0x80).any():
            raise ValueError("they point out of their texts, or into the middle of a character")
    except (TypeError, ValueError) as error:
        raise TokenizerError(f"{where}: the normalisation rules cannot be used: {error}") from None


def check_added(texts: Iterable[str], where: object) -> None:
    """TokenizerError for more added tokens, or longer ones, than their search can be made for."""
    lengths = [len(text) for text in texts]
    if len(lengths) > MAX_ADDED or sum(lengths) > MAX_ADDED_TOTAL or max(lengths, default=0) > MAX_ADDED_TEXT:
        raise TokenizerError(
            f"{where}: {len(lengths)} added tokens of up to {max(lengths, default=0)} characters, {sum(lengths)} in "
            f"all: at most {MAX_ADDED}, {MAX_ADDED_TEXT} and {MAX_ADDED_TOTAL} are taken"
        )


def check_vocabulary(vocab: Any, where: object) -> None:
    """TokenizerError unless `vocab` is an object of tokens and ids."""
    if not isinstance(vocab, dict) or len(vocab) > MAX_VOCABULARY:
        raise TokenizerError(f"{where}: vocab is {quote(vocab)}, expected an object of at most {MAX_VOCABULARY} tokens")
    if vocab and not _are_ids(vocab.values()):
        token = next(t for t, i in vocab.items() if type(i) is not int or not 0 <= i < MAX_ID)
        raise TokenizerError(
            f"{where}: vocab: {quote(token)} has the id {quote(vocab[token])}, not a whole number below {MAX_ID}"
        )


def _are_ids(values: Collection[Any]) -> bool:
    kept = list(values)
    try:
        ids = np.frombuffer(array("I", kept), np.uint32)
    except (OverflowError, TypeError):  # below 0, or no whole number
        return False
    few = (ids < 2).nonzero()[0].tolist()
    return bool(np.maximum.reduce(ids) < MAX_ID) and bool not in [type(kept[i]) for i in few]


def check_pieces(pieces: list[tuple[str, float]], where: object) -> None:
    """TokenizerError unless Unigram's search over these pieces and scores is bounded."""
    if len(pieces) > MAX_VOCABULARY:
        raise TokenizerError(f"{where}: {len(pieces)} pieces, expected at most {MAX_VOCABULARY}")
    if not all(math.isfinite(score) for _, score in pieces):
        raise TokenizerError(f"{where}: the scores of the pieces are not finite numbers")
    longest = max((len(piece) for piece, _ in pieces), default=0)
    total = len("".join(piece for piece, _ in pieces).encode(errors="replace"))
    most = min(MAX_PIECES_TEXT, (1 << 20) + 16 * len(pieces))
    if longest > MAX_PIECE or total > most:
        raise TokenizerError(
            f"{where}: pieces of up to {longest} characters, of {total} bytes in all: at most {MAX_PIECE} and {most} "
            "are taken"
        )
