"""A long text that is cut before it is tokenized gives what it gives whole."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import zoo
import zoo.text.tokenizer
from zoo.errors import InputError
from zoo.text.long_texts import boundaries, ids_within
from zoo.text.tokenizer import Tokenizer

NAMES = ["bert-uncased", "bert-cased", "bert-multilingual", "roberta", "roberta-json", "trocr-small", "xlm-roberta"]
ALPHABET = [
    *"ab the hello world,.!? éß你\n\t'<>[]☃ÅİŻ۳ﬀ½ªжΣѣ文字가ﹰ가",
    "[MASK]",
    "<mask>",
    "</s>",
    "[SEP]",
    " running",
]
WORDS = [
    "lorem",
    "ipsum",
    "the",
    "tokenizer's",
    "word-pieces",
    "naïve",
    "ÅİŻ",
    "你好",
    "12,345",
    "x" * 120,
    "e\u0301e",
    "  ",
    "\n\n",
    "слово",
    "ΛΟΓΟΣ",
    "红楼梦",
    "ﹰ",
]


@pytest.fixture(scope="module", params=[*NAMES, "stories"])
def tokenizer(request, load):
    if request.param == "stories":
        return Tokenizer.from_folder(Path(zoo.__file__).parent / "data" / "stories260k", model_max_length=300)
    return load(request.param)


def _text(seed, size):
    random.seed(seed)
    words = [random.choice([random.choice(WORDS), "".join(random.choices(ALPHABET, k=9))]) for _ in range(size)]
    return " ".join(words)


def _same(got, want):
    for a, b in zip(got, want, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_cut_changes_nothing(tokenizer, seed, monkeypatch):
    text, other = _text(seed, 900), _text(seed + 9, 60)
    calls = [
        *(((text,), {"max_length": length}) for length in (2, 17, 100)),
        ((text, other), {"max_length": 65}),
        ((other, text), {"max_length": 66}),
        (("short", text), {"max_length": 64, "truncation": "only_second"}),
        ((text, "short"), {"max_length": 64, "truncation": "only_first"}),
    ]
    want = [tokenizer(*texts, **options) for texts, options in calls]
    monkeypatch.setattr(zoo.text.tokenizer, "LONG_TEXT", 1500)
    monkeypatch.setattr("zoo.text.long_texts.LONG_TEXT", 1500)
    for (texts, options), whole in zip(calls, want, strict=True):
        _same(tokenizer(*texts, **options), whole)


def test_a_cut_is_made(tokenizer, monkeypatch):
    """The library gets a small part of a text of two million characters."""
    assert boundaries(tokenizer.backend)
    seen = []
    encode = Tokenizer._encode
    monkeypatch.setattr(
        Tokenizer, "_encode", lambda self, b, i, text, *rest: seen.append(text) or encode(self, b, i, text, *rest)
    )
    assert tokenizer("lorem ipsum dolor " * 100_000, max_length=128).input_ids.shape == (1, 128)
    assert len(seen[0]) < 60_000


@pytest.mark.parametrize("name", ["bert-uncased", "roberta", "xlm-roberta"])
def test_letters_beyond_ascii_are_cut_too(load, name, monkeypatch):
    tokenizer, seen, encode = load(name), [], Tokenizer._encode
    monkeypatch.setattr(
        Tokenizer, "_encode", lambda self, b, i, text, *rest: seen.append(text) or encode(self, b, i, text, *rest)
    )
    texts = ["слово за слово " * 50_000, *(["红楼梦" * 100_000] if name == "bert-uncased" else [])]
    assert tokenizer(texts, max_length=128).input_ids.shape == (len(texts), 128)
    assert max(map(len, seen)) < 80_000


def test_a_text_that_cannot_be_cut_is_bounded(load):
    for texts in ("x" * 600_000, "!?" * 300_000, "word " + " " * 600_000):
        with pytest.raises(InputError, match="where it could be cut"):
            load("bert-uncased")(texts, max_length=128)
    with pytest.raises(InputError, match=r"pairs\[1\] has 600000 characters"):
        load("bert-uncased")(["a", "b"], ["c", "x" * 600_000], max_length=128)


def test_too_many_tokens_are_found_before_they_are_all_made(load):
    backend = load("bert-uncased").backend
    text = "a cat " * 40_000
    assert ids_within(backend, text, 80_000, True) == backend.encode(text).ids
    with pytest.raises(InputError, match="more than 20000 tokens in its first 65536 characters, and the most is 20000"):
        ids_within(backend, text, 20_000, True)


def test_tokens_that_reach_across_words_forbid_a_cut(load):
    from tokenizers import Tokenizer as Backend
    from tokenizers import models, normalizers, pre_tokenizers

    assert not boundaries(Backend(models.BPE({"a": 0, "▁": 1, "a▁": 2}, [("a", "▁")])))
    assert boundaries(Backend(models.BPE({"a": 0, "▁": 1, "▁a": 2}, [("▁", "a")])))
    backend = Backend(models.WordLevel({"a": 0}, "a"))
    assert not boundaries(backend)
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert boundaries(backend)
    backend.normalizer = normalizers.Replace("a b", "c")
    assert not boundaries(backend)
