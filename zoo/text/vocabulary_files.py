"""Vocabularies without a tokenizer.json: vocab.txt, vocab.json with merges.txt, and SentencePiece's models.

Each becomes the `model` of a tokenizer.json, without the options that a tokenizer's class decides.
"""

from __future__ import annotations

import base64
import io
from typing import Any, NamedTuple

from ..errors import TokenizerError, nearest
from ..files.folder import CheckpointFolder
from ..guards.tokenizer import check_charsmap, check_pieces, check_vocabulary
from .sentencepiece_model import (
    BPE,
    CONTROL,
    MAX_BYTES,
    UNIGRAM,
    USER_DEFINED,
    SentencePieceModel,
    read_sentencepiece,
)
from .tokenizer_json import MAX_MERGES, MAX_NODES

LIMIT = 64 << 20  # bytes of one tokenizer file; the largest on the hub are near 35 MB


class Vocabulary(NamedTuple):
    """Where a vocabulary is, and what it says."""

    path: str  # the file's, for messages
    model: dict[str, Any]  # type, vocab, and the merges of BPE
    charsmap: str | None = None  # SentencePiece's normalisation rules, in base64
    source: SentencePieceModel | None = None
    symbols: tuple[tuple[str, bool], ...] = ()  # the tokens that SentencePiece never cuts, and True for control tokens


def wordpiece(folder: CheckpointFolder, name: str = "vocab.txt") -> Vocabulary:
    """The tokens of a vocab.txt, one in each line."""
    vocab = {token: i for i, token in enumerate(_lines(folder, name))}
    return Vocabulary(folder.where(name), {"type": "WordPiece", "vocab": vocab})


def byte_level_bpe(
    folder: CheckpointFolder, name: str = "vocab.json", merges: str = "merges.txt", required: list[str] | None = None
) -> Vocabulary:
    """The tokens of a vocab.json, the `required` ones among them, and the merges of a merges.txt."""
    path = folder.where(name)
    if not folder.has(merges):
        raise TokenizerError(f"{folder}: {name} without {merges}, expected both (or a tokenizer.json)")
    vocab = folder.json(name, LIMIT, TokenizerError, MAX_NODES)
    check_vocabulary(vocab, path)
    if len(set(vocab.values())) != len(vocab):
        raise TokenizerError(f"{path}: {len(vocab) - len(set(vocab.values()))} tokens share an id with another")
    require(path, vocab, required or [])
    return Vocabulary(path, {"type": "BPE", "vocab": vocab, "merges": _merges(folder, merges, vocab)})


def sentencepiece(folder: CheckpointFolder, name: str, kind: str | None = None) -> Vocabulary:
    """The pieces of a SentencePiece model, in its own order.

    kind: "Unigram" or "BPE", what the tokenizer computes with; None: what the model was trained for.
    """
    path = folder.where(name)
    source = read_sentencepiece(folder.read(name, MAX_BYTES, TokenizerError), path)
    if (kind, source.model_type) in (("Unigram", BPE), ("BPE", UNIGRAM)):
        trained = "BPE" if source.model_type == BPE else "unigram"
        raise TokenizerError(f"{path}: a SentencePiece model of type {trained}, and this tokenizer needs {kind}")
    pieces = [(piece.text, piece.score) for piece in source.pieces]
    check_pieces(pieces, path)
    if kind == "Unigram" or (kind is None and source.model_type == UNIGRAM):
        model: dict[str, Any] = {"type": "Unigram", "vocab": pieces, "unk_id": source.ids["unk"]}
    else:
        vocab = {text: i for i, (text, _) in enumerate(pieces)}
        model = {"type": "BPE", "vocab": vocab, "merges": merges_of(vocab)}
    if source.charsmap:
        check_charsmap(source.charsmap, path)
    charsmap = base64.b64encode(source.charsmap).decode() if source.charsmap else None
    symbols = tuple((p.text, p.kind == CONTROL) for p in source.pieces if p.kind in (CONTROL, USER_DEFINED))
    return Vocabulary(path, model, charsmap, source, symbols)


def merges_of(vocab: dict[str, int]) -> list[tuple[str, str]]:
    """The merges that make the pieces of a SentencePiece model of type BPE, whose ids go by their rank."""
    found = []
    for text, rank in vocab.items():
        for at in range(1, len(text)):
            left, right = text[:at], text[at:]
            if left in vocab and right in vocab:
                found.append((rank, len(left), len(right), left, right))
        if len(found) > MAX_MERGES:
            raise TokenizerError(f"a SentencePiece model whose pieces have more than {MAX_MERGES} merges")
    found.sort(key=lambda merge: merge[:3])
    return [merge[3:] for merge in found]


def require(path: str, vocab: dict[str, int], tokens: list[str]) -> None:
    """TokenizerError names the first token that is not in the vocabulary of a file, and the nearest to it."""
    for token in tokens:
        if token not in vocab:
            guess = nearest(token, (other for other in vocab if other[:1] == token[:1]))
            raise TokenizerError(f"{path}: no {token!r} among its {len(vocab)} tokens{guess}")


def _lines(folder: CheckpointFolder, name: str) -> list[str]:
    path, data = folder.where(name), folder.read(name, LIMIT, TokenizerError)
    if not data:
        raise TokenizerError(f"{path}: empty")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{path}: not UTF-8 at byte {error.start}") from None
    if max(text.count("\n"), text.count("\r")) > MAX_MERGES:
        raise TokenizerError(f"{path}: more than {MAX_MERGES} lines")
    # Not splitlines: U+2028 and its kind are tokens of the multilingual vocabularies, only \n, \r\n and \r end a line.
    return [line.rstrip("\n") for line in io.StringIO(text, newline=None)]


def _merges(folder: CheckpointFolder, name: str, vocab: dict[str, int]) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    path = folder.where(name)
    for number, line in enumerate(_lines(folder, name), 1):
        if not line or line.startswith("#version"):
            continue
        parts = line.split(" ")
        if len(parts) != 2:
            raise TokenizerError(f"{path}, line {number}: {line[:80]!r}, expected two tokens and a space between")
        left, right = parts
        for token in (left, right, left + right):
            if token not in vocab:
                raise TokenizerError(f"{path}, line {number}: the token {token[:80]!r} is not in vocab.json")
        merges.append((left, right))
    return merges
