"""Reads a SentencePiece `.model` file: the few protobuf fields that a tokenizer needs, without protobuf.

Field numbers from sentencepiece_model.proto (https://github.com/google/sentencepiece).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from ..errors import TokenizerError
from ..files.protobuf import fields, message

UNIGRAM, BPE = 1, 2  # types of models; 3 word, 4 char
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MAX_BYTES = 16 << 20  # a model's file
MAX_PIECES = 2_000_000  # the largest models on the hub have near a million


class Piece(NamedTuple):
    text: str
    score: float
    kind: int  # NORMAL, ...


class SentencePieceModel(NamedTuple):
    """What a model's file says, with SentencePiece's own defaults."""

    pieces: list[Piece]
    model_type: int = UNIGRAM
    byte_fallback: bool = False
    ids: dict[str, int] = {}  # noqa: RUF012  "unk", "bos", "eos" -> the id of its piece; -1: there is none
    names: dict[str, str] = {}  # noqa: RUF012  "unk", "bos", "eos" -> its piece
    charsmap: bytes = b""  # precompiled normalisation rules; empty where the model does not normalise
    add_dummy_prefix: bool = True  # a space before a text
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True


def read_sentencepiece(data: bytes, where: object) -> SentencePieceModel:
    """The pieces and rules of a model; TokenizerError for anything else.  where: the file that the message names."""
    try:
        return _model(memoryview(data))
    except (ValueError, IndexError, struct.error) as error:  # UnicodeDecodeError is a ValueError
        raise TokenizerError(f"{where}: not a SentencePiece model, or a damaged one ({error})") from None


# Number of a field -> its name and how it is read; of the trainer's specification, and of the normaliser's.
_ROLES = {40: "unk", 41: "bos", 42: "eos"}, {45: "unk", 46: "bos", 47: "eos"}
_SPACES = {3: "add_dummy_prefix", 4: "remove_extra_whitespaces", 5: "escape_whitespaces"}


def _model(data: memoryview) -> SentencePieceModel:
    pieces: list[Piece] = []
    ids, names = {"unk": 0, "bos": 1, "eos": 2}, {"unk": "<unk>", "bos": "<s>", "eos": "</s>"}
    said: dict[str, Any] = {}
    for field, value in fields(data):
        if field == 1:
            pieces.append(_piece(message(value)))
            if len(pieces) > MAX_PIECES:
                raise ValueError(f"more than {MAX_PIECES} pieces")
        elif field == 2:
            for key, inner in fields(message(value)):
                if key == 3 and isinstance(inner, int):
                    said["model_type"] = inner
                elif key == 35 and isinstance(inner, int):
                    said["byte_fallback"] = bool(inner)
                elif key in _ROLES[0] and isinstance(inner, int):
                    ids[_ROLES[0][key]] = inner - (1 << 64) if inner >> 63 else inner
                elif key in _ROLES[1]:
                    names[_ROLES[1][key]] = bytes(message(inner)).decode()
        elif field == 3:
            for key, inner in fields(message(value)):
                if key == 2:
                    said["charsmap"] = bytes(message(inner))
                elif key in _SPACES and isinstance(inner, int):
                    said[_SPACES[key]] = bool(inner)
    if not pieces:
        raise ValueError("it holds no pieces")
    return SentencePieceModel(pieces, ids=ids, names=names, **said)


def _piece(data: memoryview) -> Piece:
    text, score, kind = "", 0.0, NORMAL
    for field, value in fields(data):
        if field == 1:
            text = bytes(message(value)).decode()
        elif field == 2:
            (score,) = struct.unpack("<f", message(value))
        elif field == 3 and isinstance(value, int):
            kind = value
    if score != score or score in (float("inf"), float("-inf")):
        raise ValueError(f"piece {text!r} has the score {score}")
    return Piece(text, score, kind)
