"""The parts of a tokenizer.json that are taken, with the bounds of each: all that the checkpoints of the hub use.

The library that runs them trusts its file: it panics at numbers out of range, follows rules out of their arrays and
doubles a text as often as it is told.  Nothing reaches it that is not listed here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import nearest
from .charsmap import check_charsmap
from .patterns import check_pattern

MAX_PARTS = 32  # of one kind, sequences within sequences counted
MAX_TEXT = 256  # characters of a pattern, a replacement, a prefix
MAX_GROWTH = 8  # how many times longer all replacements together may make a text
MAX_ID = 1 << 24
MAX_SPECIAL = 64  # special tokens around a text

Check = Callable[[Any], None]


class ComponentError(ValueError):
    """Which part of a tokenizer.json is not taken, and why."""


def _need(holds: bool, value: Any, wanted: str) -> None:
    if not holds:
        raise ComponentError(f"is {shown(value)}, expected {wanted}")


def shown(value: Any) -> str:
    """A value in a message: whatever it is, briefly."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = repr(value[:80]) if isinstance(value, str) else repr(value)
    return text if len(text) <= 90 else text[:90] + "..."


def flag(value: Any) -> None:
    _need(isinstance(value, bool), value, "true or false")


def _flag_or_null(value: Any) -> None:
    _need(value is None or isinstance(value, bool), value, "true, false or null")


def text(value: Any) -> None:
    _need(isinstance(value, str) and len(value) <= MAX_TEXT, value, f"a text of at most {MAX_TEXT} characters")


def _sign(value: Any) -> None:
    _need(isinstance(value, str) and len(value) == 1, value, "one character")


def index(value: Any) -> None:
    _need(type(value) is int and 0 <= value < MAX_ID, value, f"a whole number from 0 to {MAX_ID - 1}")


def one_of(*names: str) -> Check:
    return lambda value: _need(value in names if isinstance(value, str) else False, value, f"one of {', '.join(names)}")


def _count(most: int) -> Check:
    return lambda value: _need(type(value) is int and 0 <= value <= most, value, f"a whole number from 0 to {most}")


def _pattern(value: Any) -> None:
    _need(isinstance(value, dict) and len(value) == 1 and set(value) <= {"String", "Regex"}, value, "a String or Regex")
    ((kind, pattern),) = value.items()
    _need(isinstance(pattern, str) and pattern != "", pattern, "a pattern that is not empty")
    if kind == "String":
        text(pattern)
        return
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise ComponentError(f"{shown(pattern)} is not taken: {error}") from None


def _charsmap(value: Any) -> None:
    _need(isinstance(value, str), value, "a text in base64")
    try:
        check_charsmap(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ComponentError(f"{error}") from None


def _token(value: Any) -> None:
    """[token, id]"""
    _need(isinstance(value, list) and len(value) == 2 and isinstance(value[0], str), value, "[token, id]")
    index(value[1])


def _pieces(sequences: str) -> Check:
    def check(value: Any) -> None:
        _need(isinstance(value, list) and len(value) <= MAX_SPECIAL, value, f"a list of at most {MAX_SPECIAL}")
        seen = []
        for piece in value:
            _need(isinstance(piece, dict) and len(piece) == 1, piece, "a Sequence or SpecialToken")
            ((kind, inner),) = piece.items()
            _need(isinstance(inner, dict) and isinstance(inner.get("id"), str), inner, "an object with an id")
            _count(15)(inner.get("type_id"))
            one_of("Sequence", "SpecialToken")(kind)
            if kind == "Sequence":
                seen.append(inner["id"])
        _need(sorted(seen) == list(sequences), seen, f"the sequences {' and '.join(sequences)}, once each")

    return check


def _specials(value: Any) -> None:
    _need(isinstance(value, dict) and len(value) <= MAX_SPECIAL, value, f"an object of at most {MAX_SPECIAL}")
    for name, token in value.items():
        _need(isinstance(token, dict) and token.get("id") == name, token, f"the token {shown(name)}")
        ids, tokens = token.get("ids"), token.get("tokens")
        if not isinstance(ids, list) or not 0 < len(ids) <= MAX_SPECIAL:
            raise ComponentError(f"has the ids {shown(ids)} of {shown(name)}, expected a list of them")
        if not isinstance(tokens, list) or len(tokens) != len(ids):
            raise ComponentError(
                f"has the tokens {shown(tokens)} of {shown(name)}, expected a token for each of its ids"
            )
        for i in ids:
            index(i)
        for i in tokens:
            text(i)


_SPACES = {"add_prefix_space": flag, "trim_offsets": flag, "use_regex": flag}
_METASPACE = {
    "replacement": _sign,
    "str_rep": _sign,
    "add_prefix_space": flag,
    "split": flag,
    "prepend_scheme": one_of("always", "first", "never"),
}
_BEHAVIOR = one_of("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_REPLACE = {"pattern": _pattern, "content": text}
_ENDS = {"sep": _token, "cls": _token}

# kind of part -> the key of a Sequence's list, and type -> field -> check
PARTS: dict[str, tuple[str, Mapping[str, Mapping[str, Check]]]] = {
    "normalizer": (
        "normalizers",
        {
            "BertNormalizer": {
                "clean_text": flag,
                "handle_chinese_chars": flag,
                "lowercase": flag,
                "strip_accents": _flag_or_null,
            },
            **{name: {} for name in ("NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase", "StripAccents", "ByteLevel")},
            "Strip": {"strip_left": flag, "strip_right": flag},
            "Prepend": {"prepend": text},
            "Replace": _REPLACE,
            "Precompiled": {"precompiled_charsmap": _charsmap},
        },
    ),
    "pre_tokenizer": (
        "pretokenizers",
        {
            **{name: {} for name in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")},
            "ByteLevel": _SPACES,
            "Metaspace": _METASPACE,
            "Digits": {"individual_digits": flag},
            "Punctuation": {"behavior": _BEHAVIOR},
            "CharDelimiterSplit": {"delimiter": _sign},
            "Split": {"pattern": _pattern, "behavior": _BEHAVIOR, "invert": flag},
        },
    ),
    "post_processor": (
        "processors",
        {
            "TemplateProcessing": {"single": _pieces("A"), "pair": _pieces("AB"), "special_tokens": _specials},
            "BertProcessing": _ENDS,
            "RobertaProcessing": {**_ENDS, **_SPACES},
            "ByteLevel": _SPACES,
        },
    ),
    "decoder": (
        "decoders",
        {
            **{name: {} for name in ("ByteFallback", "Fuse")},
            "ByteLevel": _SPACES,
            "Metaspace": _METASPACE,
            "WordPiece": {"prefix": text, "cleanup": flag},
            "BPEDecoder": {"suffix": text},
            "CTC": {"pad_token": text, "word_delimiter_token": text, "cleanup": flag},
            "Strip": {"content": _sign, "start": _count(16), "stop": _count(0)},
            "Replace": _REPLACE,
        },
    ),
}
# They lengthen a text by a constant, and would again.
_ONCE = ("Precompiled", "ByteLevel")


def check_component(kind: str, value: Any) -> None:
    """ComponentError unless what a tokenizer.json has under `kind` is null, or made of parts that are taken."""
    if value is None:
        return
    parts = _flat(kind, value, kind, 0)
    growth = 1.0
    for part in parts:
        if part["type"] == "Replace":
            ((way, pattern),) = part["pattern"].items()
            growth *= max(1.0, len(part["content"]) / (len(pattern) if way == "String" else 1))
        elif part["type"] == "Prepend":
            growth *= 1 + len(part["prepend"]) / MAX_TEXT
    if growth > MAX_GROWTH:
        raise ComponentError(f"{kind}: its replacements make a text {growth:.3g} times as long, at most {MAX_GROWTH}")
    for name in _ONCE:
        if kind == "normalizer" and sum(part["type"] == name for part in parts) > 1:
            raise ComponentError(f"{kind}: more than one {name}")


def _flat(kind: str, value: Any, where: str, depth: int) -> list[dict[str, Any]]:
    """The parts of a component, each checked."""
    inner, types = PARTS[kind]
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ComponentError(f"{where} is {shown(value)}, expected an object with its type")
    name = value["type"]
    if name == "Sequence":
        many = value.get(inner)
        if not isinstance(many, list) or depth > 3:
            raise ComponentError(f"{where}: {inner} is {shown(many)}, expected a list of parts")
        found = [
            p for i, part in enumerate(many[: MAX_PARTS + 1]) for p in _flat(kind, part, f"{where}[{i}]", depth + 1)
        ]
        if len(found) > MAX_PARTS:
            raise ComponentError(f"{where}: more than {MAX_PARTS} parts")
        return found
    if name not in types:
        raise ComponentError(f"{where}: the type {shown(name)} is not taken{nearest(name, (*types, 'Sequence'))}")
    checks = types[name]
    for field, content in value.items():
        try:
            if field in checks:
                checks[field](content)
            elif field != "type":
                _need(not isinstance(content, (dict, list)), content, "no such field")
        except ComponentError as error:
            raise ComponentError(f"{where} ({name}): {shown(field)[1:-1]} {error}") from None
    if name == "Replace" and not _REPLACE.keys() <= value.keys():
        raise ComponentError(f"{where} (Replace): expected a pattern and its content")
    if name == "TemplateProcessing":
        _check_template(where, value)
    return [value]


def _check_template(where: str, value: dict[str, Any]) -> None:
    if not {"single", "pair", "special_tokens"} <= value.keys():
        raise ComponentError(f"{where} (TemplateProcessing): expected single, pair and special_tokens")
    used = [piece["SpecialToken"]["id"] for k in ("single", "pair") for piece in value[k] if "SpecialToken" in piece]
    missing = [name for name in used if name not in value["special_tokens"]]
    if missing:
        raise ComponentError(f"{where} (TemplateProcessing): special_tokens lacks {shown(missing[0])}")
