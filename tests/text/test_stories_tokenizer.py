"""The tokenizer of the checkpoint that comes with zoo, against llama2.c's way of encoding and decoding."""

from __future__ import annotations

import lzma
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from zoo.hub import find
from zoo.text.tokenizer import Tokenizer

PACKED = Path(__file__).parent.parent / "data" / "tokenizers" / "tok512.bin.xz"
BOS = 1
TEXTS = [
    "",
    " ",
    "Once upon a time",
    "  two  spaces \n\tand a tab\n\n",
    "Lily's mom said, \"Let's go!\" She was (very) happy…",
    "“curly” – dashes — and ‘quotes’ ™ € â ñ é",
    "naïve Привет 你好 🐈‍⬛ \u00ad\u200b\ufeff",
    "lllllllll eeeee      ooooo aaaaaaa    ",
    "▁underscore_▁",
    "<0x41> <0xFF> \x00\x01\x7f",
    "a" * 300,
    "\ufffd",
]


class Llama2C:
    """tokenizer.bin as run.c reads it: for each piece a score and its bytes."""

    def __init__(self, data: bytes):
        at, self.pieces, self.scores = 4, [], []
        while at < len(data):
            score, size = struct.unpack_from("<fi", data, at)
            self.pieces.append(data[at + 8 : at + 8 + size])
            self.scores.append(score)
            at += 8 + size
        self.index = {piece: i for i, piece in reversed(list(enumerate(self.pieces)))}

    def encode(self, text: str) -> list[int]:
        """Characters, or their bytes; then again and again the pair whose piece scores best, the first of equals."""
        tokens = [self.index[b" "]] if text else []
        for character in text:
            found = self.index.get(character.encode())
            tokens += [byte + 3 for byte in character.encode()] if found is None else [found]
        while True:
            best = None
            for i, pair in enumerate(pairwise(tokens)):
                merged = self.index.get(self.pieces[pair[0]] + self.pieces[pair[1]])
                if merged is not None and (best is None or self.scores[merged] > self.scores[best[1]]):
                    best = i, merged
            if best is None:
                return [BOS, *tokens]
            tokens[best[0] : best[0] + 2] = [best[1]]

    def decode(self, ids: list[int]) -> bytes:
        out = b""
        for before, token in pairwise(ids):
            piece = self.pieces[token]
            if before == BOS and piece.startswith(b" "):
                piece = piece[1:]
            out += bytes([token - 3]) if 3 <= token < 259 else piece
        return out


@pytest.fixture(scope="module")
def theirs() -> Llama2C:
    return Llama2C(lzma.decompress(PACKED.read_bytes()))


@pytest.fixture(scope="module")
def ours() -> Tokenizer:
    return Tokenizer.from_folder(find("stories260k").folder)


def texts(rng: np.random.Generator) -> list[str]:
    letters = list("aaeehhll oottnnss  'T.,\"\né…▁ж🐈")
    return TEXTS + ["".join(rng.choice(letters, rng.integers(1, 60))) for _ in range(400)]


def test_encodes_as_llama2c(theirs, ours, rng):
    for text in texts(rng):
        assert ours.encode_batch([text]).rows[0].ids == theirs.encode(text), repr(text)


def test_decodes_what_it_encodes_as_llama2c(theirs, ours, rng):
    for text in texts(rng):
        ids = theirs.encode(text)
        assert ours.decode(ids) == theirs.decode(ids).decode() == text


def test_decodes_any_tokens_as_llama2c(theirs, ours, rng):
    snowman = [byte + 3 for byte in "☃".encode()]
    for _ in range(300):
        ids = [BOS, *rng.integers(259, 512, 6).tolist(), *snowman, *rng.integers(259, 512, 6).tolist()]
        assert ours.decode(ids) == theirs.decode(ids).decode()


def test_transformers_reads_the_same_file(ours, rng):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    reference = transformers.AutoTokenizer.from_pretrained(find("stories260k").folder)
    for text in texts(rng):
        assert reference(text)["input_ids"] == ours.encode_batch([text]).rows[0].ids
