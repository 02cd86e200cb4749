"""Reads a SentencePiece `.model` file: the few protobuf fields that a tokenizer needs, without protobuf.

Field numbers from sentencepiece_model.proto (https://github.com/google/sentencepiece).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import TokenizerError

UNIGRAM = 1
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
MAX_BYTES = 16 << 20  # of a model's file
MAX_PIECES = 2_000_000  # the largest models on the hub have near a million


class Piece(NamedTuple):
    text: str
    score: float
    kind: int  # NORMAL, UNKNOWN, CONTROL, USER_DEFINED, 5 unused, 6 byte


class SentencePieceModel(NamedTuple):
    pieces: list[Piece]
    charsmap: bytes  # precompiled normalisation rules; empty where the model does not normalise


def read_sentencepiece(data: bytes, where: object) -> SentencePieceModel:
    """The pieces and normalisation rules of a unigram model; anything else ends in TokenizerError.

    where: the file that the message names.
    """
    try:
        return _model(memoryview(data))
    except (ValueError, IndexError, struct.error) as error:  # UnicodeDecodeError is a ValueError
        raise TokenizerError(f"{where}: not a SentencePiece model, or a damaged one ({error})") from None


def _model(data: memoryview) -> SentencePieceModel:
    pieces: list[Piece] = []
    charsmap = b""
    model_type = UNIGRAM
    for field, value in _fields(data):
        if field == 1:
            pieces.append(_piece(_message(value)))
            if len(pieces) > MAX_PIECES:
                raise ValueError(f"more than {MAX_PIECES} pieces")
        elif field == 2:
            for key, inner in _fields(_message(value)):
                if key == 3 and isinstance(inner, int):
                    model_type = inner
        elif field == 3:
            for key, inner in _fields(_message(value)):
                if key == 2:
                    charsmap = bytes(_message(inner))
    if model_type != UNIGRAM:
        raise ValueError(f"model type {MODEL_TYPES.get(model_type, model_type)}, expected unigram")
    if not pieces:
        raise ValueError("it holds no pieces")
    return SentencePieceModel(pieces, charsmap)


def _piece(data: memoryview) -> Piece:
    text, score, kind = "", 0.0, NORMAL
    for field, value in _fields(data):
        if field == 1:
            text = bytes(_message(value)).decode()
        elif field == 2:
            (score,) = struct.unpack("<f", _message(value))
        elif field == 3 and isinstance(value, int):
            kind = value
    if score != score or score in (float("inf"), float("-inf")):
        raise ValueError(f"piece {text!r} has the score {score}")
    return Piece(text, score, kind)


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where a message or string belongs")
    return value


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, value) of one protobuf message; a view for every wire type but varint."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield field, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if field == 0 or at + size > len(data):
            raise ValueError(f"field {field} at byte {at} needs {size} bytes, and {len(data) - at} are left")
        yield field, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError(f"number cut short or too long at byte {at}")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
