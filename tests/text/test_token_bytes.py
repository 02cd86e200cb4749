"""The bytes of single tokens join to what the tokenizer decodes, in every kind of vocabulary."""

from __future__ import annotations

import lzma
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import zoo
from zoo.text.token_bytes import TokenBytes

DATA = Path(__file__).parents[1] / "data" / "tokenizers"
TEXTS = (
    "Once upon a time there was, naïve “quotes” — 機械学習 😀👍🏽 e\u0301!",
    "  two  spaces\n\nlines\t",
    "日本語",
    "a",
    " ",
)


def from_json(name: str) -> Tokenizer:
    return Tokenizer.from_str(lzma.decompress((DATA / f"{name}.tokenizer.json.xz").read_bytes()).decode())


def byte_level() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_tokens([AddedToken("<think>"), AddedToken("naïve ☃")])
    made.add_special_tokens([AddedToken("<|end|>")])
    return made


def word_pieces() -> Tokenizer:
    made = Tokenizer(models.WordPiece({"a": 0, "##b": 1, "b": 2, "[UNK]": 3, "'": 4}, unk_token="[UNK]"))
    made.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return made


BACKENDS = {
    "stories": lambda: zoo.load("stories260k").tokenizer.backend,
    "roberta": lambda: from_json("roberta"),
    "xlm-roberta": lambda: from_json("xlm_roberta"),
    "bytes": byte_level,
    "word pieces": word_pieces,
}


@pytest.fixture(params=BACKENDS)
def backend(request) -> Tokenizer:
    return BACKENDS[request.param]()


def bytes_of(backend: Any) -> TokenBytes:
    return TokenBytes(SimpleNamespace(backend=backend))  # type: ignore[arg-type]


def joined(find: TokenBytes, ids: list[int]) -> bytes:
    out, is_first = b"", True
    for token in ids:
        data = find(token, is_first)
        is_first = is_first and data is None
        out += data or b""
    return out


def test_bytes_join_to_the_text(backend):
    find = bytes_of(backend)
    for text in TEXTS:
        ids = backend.encode(text).ids
        assert joined(find, ids).decode() == backend.decode(ids), text


def test_bytes_of_any_tokens_join_to_the_text(backend, rng):
    """But for tokens of single bytes, of which a decoder takes a whole row for broken if one is."""
    find = bytes_of(backend)
    whole = [i for i in range(backend.get_vocab_size()) if not str(backend.id_to_token(i)).startswith("<0x")]
    for _ in range(200):
        ids = rng.choice(whole, rng.integers(1, 9)).tolist()
        assert joined(find, ids).decode(errors="replace") == backend.decode(ids), [backend.id_to_token(i) for i in ids]


def test_names(rng):
    backend = byte_level()
    find = bytes_of(backend)
    names = [find.name(i) for i in range(backend.get_vocab_size())]
    assert len(set(names)) == len(names)
    smile = backend.encode("😀").ids
    assert [find.name(i) for i in smile] == ["bytes:\\xf0", "bytes:\\x9f", "bytes:\\x98", "bytes:\\x80"]
    assert b"".join(find(i) or b"" for i in smile) == "😀".encode()
    end, think, space = backend.token_to_id("<|end|>"), backend.token_to_id("<think>"), backend.encode(" ").ids[0]
    assert (find(end), find.name(end)) == (None, "<|end|>")
    assert (find(think), find.name(think), find.name(space)) == (b"<think>", "<think>", " ")
    assert (find(70000), find.name(70000)) == (None, "token_id:70000")


def test_spaces_of_sentencepiece():
    backend = zoo.load("stories260k").tokenizer.backend
    find = bytes_of(backend)
    there = backend.encode("Is there").ids[-1]
    assert (find.name(there), find.name(there, is_first=True)) == (" there", "there")
    names: dict[str, list[int]] = {}
    for i in range(backend.get_vocab_size()):
        names.setdefault(find.name(i), []).append(i)
    shared = [ids for ids in names.values() if len(ids) > 1]
    assert all(len(ids) == 2 and str(backend.id_to_token(ids[0])).startswith("<0x") for ids in shared)  # "<0x41>", "A"


def test_what_is_asked_for_twice_is_decoded_once(monkeypatch):
    find = bytes_of(BACKENDS["stories"]())
    found = [find(300), find(300, is_first=True)]
    find._backend = None
    assert [find(300), find(300, is_first=True)] == found
    assert np.array(found).shape == (2,)
