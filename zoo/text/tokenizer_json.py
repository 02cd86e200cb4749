"""tokenizer.json: read here, checked part by part, and only then built by the `tokenizers` library.

The vocabulary goes over as Python's values, the small rest as JSON that is written anew: the library sees nothing that
was not looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TokenizerError, ZooError
from ..files.json_file import parse_json
from .components import MAX_ID, PARTS, ComponentError, check_component, flag, index, one_of, shown, text

if TYPE_CHECKING:
    import tokenizers

MAX_VOCABULARY = 2_000_000  # tokens; the largest on the hub have near a million
MAX_MERGES = 4_000_000
MAX_ADDED = 1 << 17
MAX_ADDED_TEXT = 1_000  # characters of one added token
MAX_PIECE = 128  # characters of a token of Unigram, whose search looks so far ahead at every character
# Bytes of all of them: each may be a node of a tree, which takes 330.  XLM-R has 10 for a piece.
MAX_PIECES_TEXT = 16 << 20
PIECES_TEXT = 1 << 20, 16  # beside that: so many, and so many for each piece
MAX_ADDED_TOTAL = 1 << 21  # characters of all added tokens, whose search is slow to make
MAX_WORD = 256  # characters of a word that WordPiece cuts up, in time that grows with their square
MAX_NODES = 4_000_000  # values in the file; Gemma's, the largest, has half as many


class Found(NamedTuple):
    """What a tokenizer.json says."""

    backend: tokenizers.Tokenizer  # without truncation and padding
    padding: dict[str, Any]  # empty where there is none
    truncation: dict[str, Any]


@contextmanager
def guarded(what: object) -> Iterator[None]:
    """Around calls of Rust: its exceptions, and its panics (which are no `Exception`), become TokenizerError."""
    try:
        yield
    except ZooError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"{what}: {str(error)[:300]}") from None


def tokenizer_of(data: bytes, path: Path) -> Found:
    """The tokenizer in the bytes of a tokenizer.json; TokenizerError names the part that is damaged or not taken."""
    from tokenizers import AddedToken, Tokenizer

    raw = parse_json(data, path, TokenizerError, max_values=MAX_NODES, exact=False)
    try:
        if raw.get("version") != "1.0":
            raise ComponentError(f"version {shown(raw.get('version'))}, expected '1.0'")
        for kind in PARTS:
            check_component(kind, raw.get(kind))
        added = _added(raw.get("added_tokens"))
        make = _model(raw.get("model"))
        padding, truncation = (_settings(name, raw.get(name)) for name in ("padding", "truncation"))
    except ComponentError as error:
        raise TokenizerError(f"{path}: {error}") from None
    with guarded(f"{path}: not a tokenizer file"):
        parts = {kind: raw.get(kind) for kind in PARTS}
        empty = {"type": "WordLevel", "vocab": {}, "unk_token": ""}
        rest = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], **parts, "model": empty}
        backend = Tokenizer.from_str(json.dumps(rest))
        backend.model = make()
        backend.add_tokens([AddedToken(**token) for token in added])
    return Found(backend, padding, truncation)


def _settings(name: str, value: Any) -> dict[str, Any]:
    """What padding or truncation says of its direction, and of its token."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ComponentError(f"{name} is {shown(value)}, expected an object or null")
    side, token = value.get("direction", "Right"), value.get("pad_token")
    with _named(f"{name}: direction"):
        one_of("Left", "Right")(side)
    if name == "padding":
        with _named("padding: pad_token"):
            text(token)
    return {"direction": side.lower(), "pad_token": token}


@contextmanager
def _named(where: str) -> Iterator[None]:
    try:
        yield
    except ComponentError as error:
        raise ComponentError(f"{where} {error}") from None


def _added(value: Any) -> list[dict[str, Any]]:
    """The keyword arguments of each added token."""
    value = [] if value is None else value
    if not isinstance(value, list) or len(value) > MAX_ADDED:
        raise ComponentError(f"added_tokens is {shown(value)}, expected a list of at most {MAX_ADDED}")
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    out: list[dict[str, Any]] = []
    for i, token in enumerate(value):
        content = token.get("content") if isinstance(token, dict) else None
        if not isinstance(content, str) or not 0 < len(content) <= MAX_ADDED_TEXT:
            raise ComponentError(f"added_tokens[{i}] is {shown(token)} with the content {shown(content)}")
        with _named(f"added_tokens[{i}]:"):
            index(token.get("id"))
            for name in flags:
                flag(token.get(name, False))
        out.append({"content": content, **{name: token.get(name, False) for name in flags}})
    check_added(token["content"] for token in out)
    return out


def check_added(texts: Iterable[str]) -> None:
    """ComponentError where the search for so many added tokens would be long in the making."""
    if (total := sum(map(len, texts))) > MAX_ADDED_TOTAL:
        raise ComponentError(f"added tokens of {total} characters, at most {MAX_ADDED_TOTAL} are taken")


def check_vocabulary(vocab: Any) -> None:
    """ComponentError unless `vocab` is an object of tokens and ids."""
    if not isinstance(vocab, dict) or len(vocab) > MAX_VOCABULARY:
        raise ComponentError(f"vocab is {shown(vocab)}, expected an object of at most {MAX_VOCABULARY} tokens")
    ids = vocab.values()
    if vocab and (set(map(type, ids)) != {int} or min(ids) < 0 or max(ids) >= MAX_ID):
        token = next(t for t, i in vocab.items() if type(i) is not int or not 0 <= i < MAX_ID)
        raise ComponentError(
            f"vocab: {shown(token)} has the id {shown(vocab[token])}, not a whole number below {MAX_ID}"
        )


def check_pieces(pieces: list[tuple[str, float]]) -> None:
    """ComponentError unless Unigram's search over these pieces is bounded."""
    if len(pieces) > MAX_VOCABULARY:
        raise ComponentError(f"{len(pieces)} pieces, at most {MAX_VOCABULARY} were expected")
    if not all(math.isfinite(score) for _, score in pieces):
        raise ComponentError("the scores of the pieces are not finite numbers")
    longest = max((len(piece) for piece, _ in pieces), default=0)
    total = len("".join(piece for piece, _ in pieces).encode(errors="replace"))
    most = min(MAX_PIECES_TEXT, PIECES_TEXT[0] + PIECES_TEXT[1] * len(pieces))
    if longest > MAX_PIECE or total > most:
        raise ComponentError(
            f"pieces of up to {longest} characters, of {total} bytes in all: at most {MAX_PIECE} and {most} are taken"
        )


def _model(raw: Any) -> Callable[[], tokenizers.models.Model]:
    """What makes the model, once everything else is checked."""
    if not isinstance(raw, dict):
        raise ComponentError(f"model is {shown(raw)}, expected an object")
    kind = raw.get("type", _kind(raw))
    with _named("model: type"):
        one_of(*_MODELS)(kind)
    with _named(f"model ({kind}):"):
        return _MODELS[kind](raw)


def _kind(raw: dict[str, Any]) -> str:
    """The type of a model in an old file, which does not say it."""
    if "merges" in raw:
        return "BPE"
    if "unk_id" in raw:
        return "Unigram"
    return "WordPiece" if "max_input_chars_per_word" in raw else "WordLevel"


def _option(raw: dict[str, Any], name: str, default: Any, check: Callable[[Any], None]) -> Any:
    value = raw.get(name)
    if value is None:
        return default
    with _named(name):
        check(value)
    return value


def _unknown(raw: dict[str, Any]) -> str:
    """unk_token, without which these models fail at the first word that they do not know."""
    token = _option(raw, "unk_token", "[UNK]", text)
    if token not in raw["vocab"]:
        raise ComponentError(f"unk_token {shown(token)} is not in the vocabulary of {len(raw['vocab'])} tokens")
    return token


def _word_piece(raw: dict[str, Any]) -> Callable[[], tokenizers.models.Model]:
    from tokenizers.models import WordPiece

    check_vocabulary(raw.get("vocab"))
    longest = _option(raw, "max_input_chars_per_word", 100, index)
    if not 0 < longest <= MAX_WORD:
        raise ComponentError(f"max_input_chars_per_word is {longest}, expected 1 to {MAX_WORD}")
    options = {"unk_token": _unknown(raw), "max_input_chars_per_word": longest}
    prefix = _option(raw, "continuing_subword_prefix", "##", text)
    return lambda: WordPiece(raw["vocab"], continuing_subword_prefix=prefix, **options)


def _word_level(raw: dict[str, Any]) -> Callable[[], tokenizers.models.Model]:
    from tokenizers.models import WordLevel

    check_vocabulary(raw.get("vocab"))
    unknown = _unknown(raw)
    return lambda: WordLevel(raw["vocab"], unk_token=unknown)


def _bpe(raw: dict[str, Any]) -> Callable[[], tokenizers.models.Model]:
    from tokenizers.models import BPE

    check_vocabulary(raw.get("vocab"))
    merges = raw.get("merges")
    if not isinstance(merges, list) or len(merges) > MAX_MERGES:
        raise ComponentError(f"merges is {shown(merges)}, expected a list of at most {MAX_MERGES} pairs")
    pairs: list[Any] = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(_listed(pair)) for pair in merges]
    for i, pair in enumerate(pairs):
        if len(pair) != 2 or not (isinstance(pair[0], str) and isinstance(pair[1], str)):
            raise ComponentError(f"merges[{i}] is {shown(merges[i])}, expected two tokens and a space between them")
    if raw.get("dropout") not in (None, 0):
        raise ComponentError(f"dropout is {shown(raw['dropout'])}: ids that differ from call to call are not taken")
    texts = ("unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    flags = ("fuse_unk", "byte_fallback", "ignore_merges")
    options: Any = {name: _option(raw, name, None, text) for name in texts if raw.get(name) is not None}
    options.update({name: _option(raw, name, False, flag) for name in flags})
    return lambda: BPE(raw["vocab"], pairs, **options)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unigram(raw: dict[str, Any]) -> Callable[[], tokenizers.models.Model]:
    from tokenizers.models import Unigram

    vocab = raw.get("vocab")
    if not isinstance(vocab, list):
        raise ComponentError(f"vocab is {shown(vocab)}, expected a list of pieces and scores")
    pieces: list[tuple[str, float]] = []
    for i, piece in enumerate(vocab):
        token = score = None
        try:
            token, score = piece
            pieces.append((token, float(score)))
        except (TypeError, ValueError, OverflowError):
            token = None
        if type(token) is not str or type(score) not in (int, float):
            raise ComponentError(f"vocab[{i}] is {shown(piece)}, expected a piece and its score")
    check_pieces(pieces)
    unknown = _option(raw, "unk_id", None, index)
    if unknown is not None and unknown >= len(pieces):
        raise ComponentError(f"unk_id is {unknown}, but there are {len(pieces)} pieces")
    fallback = _option(raw, "byte_fallback", False, flag)
    return lambda: Unigram(pieces, unk_id=unknown, byte_fallback=fallback)


_MODELS = {"WordPiece": _word_piece, "WordLevel": _word_level, "BPE": _bpe, "Unigram": _unigram}
