"""tokenizer.json: read here, and built by the `tokenizers` library.

The vocabulary goes to the library as Python values, and the small rest as new JSON.  That is faster than to let it read
the whole file, and where a key occurs twice, the library gets the value that was checked here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TokenizerError, ZooError, nearest
from ..guards.tokenizer import SEQUENCES, check_added, check_part, check_pieces, check_vocabulary, quote

if TYPE_CHECKING:
    import tokenizers

MAX_MERGES = 4_000_000
MAX_WORD = 256  # characters of a word that WordPiece cuts up, in time that grows with their square
MAX_NODES = 4_000_000  # values in the file; Gemma's, the largest, has half as many
MAX_REMEMBERED = 1 << 19  # characters of the parts beside the vocabulary, whose check is not done twice
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
# type of model: the options of its class in the library
_TYPE_NAMES = {str: "a text", int: "a whole number", bool: "true or false"}
_TEXTS = {"unk_token": str, "continuing_subword_prefix": str}
_OPTIONS = {
    "WordPiece": {**_TEXTS, "max_input_chars_per_word": int},
    "WordLevel": {"unk_token": str},
    "BPE": {**_TEXTS, "end_of_word_suffix": str, "fuse_unk": bool, "byte_fallback": bool, "ignore_merges": bool},
    "Unigram": {"unk_id": int, "byte_fallback": bool},
}


class TokenizerFile(NamedTuple):
    """The contents of a tokenizer.json."""

    backend: tokenizers.Tokenizer  # without truncation and padding
    padding: dict[str, Any]  # direction and pad_token; empty where there is none
    truncation: dict[str, Any]  # direction


@contextmanager
def translate_rust_errors(what: object) -> Iterator[None]:
    """Turn exceptions of Rust, and its panics (which are no `Exception`), into TokenizerError."""
    try:
        yield
    except ZooError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"{what}: {str(error)[:300]}") from None


def tokenizer_of(raw: dict[str, Any], path: object) -> TokenizerFile:
    """The tokenizer of a tokenizer.json's object; TokenizerError names the part that is damaged or not implemented.

    path: the file that the message names.
    """
    from tokenizers import AddedToken

    if raw.get("version") != "1.0":
        raise TokenizerError(f"{path}: version {quote(raw.get('version'))}, expected '1.0'")
    added = _added_tokens(raw.get("added_tokens"), path)
    padding, truncation = (_settings(name, raw.get(name), path) for name in ("padding", "truncation"))
    model, backend = _model(raw.get("model"), path), _without_model(raw, path)
    with translate_rust_errors(path):
        backend.model = model
    with translate_rust_errors(f"{path}: added_tokens"):
        backend.add_tokens([AddedToken(**token) for token in added])
    return TokenizerFile(backend, padding, truncation)


def _without_model(raw: dict[str, Any], path: object) -> tokenizers.Tokenizer:
    """The normalizer, pre_tokenizer, post_processor and decoder of a file, on an empty model."""
    from tokenizers import Tokenizer

    empty = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], **dict.fromkeys(SEQUENCES)}
    empty["model"] = {"type": "WordLevel", "vocab": {}, "unk_token": ""}
    parts = {kind: raw.get(kind) for kind in SEQUENCES}
    with translate_rust_errors(path):
        text = json.dumps({**empty, **parts})
        (_remembered if len(text) <= MAX_REMEMBERED else _check_parts)(text, str(path))
        try:
            return Tokenizer.from_str(text)
        except Exception:
            for kind, part in parts.items():  # one by one, for the message
                with translate_rust_errors(f"{path}: {kind} is not one that the tokenizers library reads"):
                    Tokenizer.from_str(json.dumps({**empty, kind: part}))
            raise


def _check_parts(text: str, path: str) -> None:
    for kind, part in json.loads(text).items():
        if kind in SEQUENCES:
            check_part(kind, part, path)


_remembered = lru_cache(8)(_check_parts)


def _settings(name: str, value: Any, path: object) -> dict[str, Any]:
    """The direction of padding or truncation, and the token of padding."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TokenizerError(f"{path}: {name} is {quote(value)}, expected an object or null")
    side, token = value.get("direction", "Right"), value.get("pad_token")
    if side not in ("Left", "Right"):
        raise TokenizerError(f"{path}: {name}: direction is {quote(side)}, expected Left or Right")
    if name == "padding" and not isinstance(token, str):
        raise TokenizerError(f"{path}: padding: pad_token is {quote(token)}, expected a text")
    return {"direction": side.lower(), "pad_token": token}


def _added_tokens(tokens: Any, path: object) -> list[dict[str, Any]]:
    """The keyword arguments of each added token."""
    tokens = [] if tokens is None else tokens
    if not isinstance(tokens, list):
        raise TokenizerError(f"{path}: added_tokens is {quote(tokens)}, expected a list")
    found: list[dict[str, Any]] = []
    for i, token in enumerate(tokens):
        content = token.get("content") if isinstance(token, dict) else None
        if not isinstance(content, str) or not content:
            raise TokenizerError(f"{path}: added_tokens[{i}] is {quote(token)} with the content {quote(content)}")
        found.append({"content": content, **{name: token.get(name, False) for name in _FLAGS}})
    check_added((token["content"] for token in found), path)
    return found


def _model(raw: Any, path: object) -> tokenizers.models.Model:
    from tokenizers import models

    if not isinstance(raw, dict):
        raise TokenizerError(f"{path}: model is {quote(raw)}, expected an object")
    kind = kind_of(raw)
    if not isinstance(kind, str) or kind not in _OPTIONS:
        guess = nearest(kind, _OPTIONS) if isinstance(kind, str) else ""
        raise TokenizerError(f"{path}: model: type is {quote(kind)}, expected one of {', '.join(_OPTIONS)}{guess}")
    where = f"{path}: model ({kind})"
    options = {name: raw[name] for name in _OPTIONS[kind] if raw.get(name) is not None}
    for name, value in options.items():
        if type(value) is not (wanted := _OPTIONS[kind][name]):
            raise TokenizerError(f"{where}: {name} is {quote(value)}, expected {_TYPE_NAMES[wanted]}")
    vocab: Any = raw.get("vocab")
    if kind == "Unigram":
        vocab = _pieces(vocab, where)
    else:
        check_vocabulary(vocab, where)
    if kind == "BPE":
        if raw.get("dropout") not in (None, 0):
            raise TokenizerError(
                f"{where}: dropout is {quote(raw['dropout'])}: ids that differ from call to call are not taken"
            )
        options["merges"] = _merges(raw.get("merges"), where)
    elif kind != "Unigram":
        unknown = options.setdefault("unk_token", "[UNK]")
        if unknown not in vocab:
            raise TokenizerError(f"{where}: unk_token {quote(unknown)} is not in the vocabulary of {len(vocab)} tokens")
    with translate_rust_errors(where):
        model = getattr(models, kind)(vocab, **options)
        if kind == "WordPiece" and not 0 < model.max_input_chars_per_word <= MAX_WORD:
            raise TokenizerError(
                f"{where}: max_input_chars_per_word is {model.max_input_chars_per_word}, expected 1 to {MAX_WORD}"
            )
        return model


def kind_of(raw: Mapping[str, Any]) -> Any:
    """The type of a model; an old file does not name it."""
    if "type" in raw:
        return raw["type"]
    if "merges" in raw:
        return "BPE"
    if "unk_id" in raw:
        return "Unigram"
    return "WordPiece" if "max_input_chars_per_word" in raw else "WordLevel"


def _merges(merges: Any, where: str) -> list[tuple[str, str]]:
    if not isinstance(merges, list) or len(merges) > MAX_MERGES:
        raise TokenizerError(f"{where}: merges is {quote(merges)}, expected a list of at most {MAX_MERGES} pairs")
    if merges and type(merges[0]) is tuple:  # which no JSON has: they were checked as merges.txt was read
        return merges
    pairs: list[Any] = [tuple(pair.split(" ")) if isinstance(pair, str) else pair for pair in merges]
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not (type(pair[0]) is type(pair[1]) is str):
            raise TokenizerError(
                f"{where}: merges[{i}] is {quote(merges[i])}, expected two tokens and a space between them"
            )
    return [tuple(pair) for pair in pairs]


def _pieces(vocab: Any, where: str) -> list[tuple[str, float]]:
    if not isinstance(vocab, list):
        raise TokenizerError(f"{where}: vocab is {quote(vocab)}, expected a list of pieces and scores")
    pieces: list[tuple[str, float]] = []
    for i, piece in enumerate(vocab):
        try:
            token, score = piece
            pieces.append((token, float(score)))
        except (TypeError, ValueError, OverflowError):
            token = None
        if type(token) is not str:
            raise TokenizerError(f"{where}: vocab[{i}] is {quote(piece)}, expected a piece and its score")
    check_pieces(pieces, where)
    return pieces


def sibling(backend: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A second backend on the same vocabulary: the model is shared, only settings and added tokens are its own."""
    from tokenizers import Tokenizer

    new = Tokenizer(backend.model)
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        if (value := getattr(backend, part)) is not None:
            setattr(new, part, value)
    new.add_tokens([token for _, token in sorted(backend.get_added_tokens_decoder().items())])
    new.encode_special_tokens = backend.encode_special_tokens
    return new
