"""Pairs of which much is cut off: the library's row, without the rows that it makes of the rest."""

from __future__ import annotations

import random

import pytest

from zoo.errors import InputError
from zoo.text.tokenizer import Tokenizer

NAMES = ["bert-uncased", "roberta", "trocr-small", "xlm-roberta"]
WORDS = ["hello", "x", "naïve", "日本", "...", "unbelievable", "  ", "\n", "a'b", "[SEP]", "<mask>", "12,345"]


def _row(e):
    return e.ids, e.type_ids, e.tokens, e.offsets, e.special_tokens_mask, e.sequence_ids, e.word_ids, e.attention_mask


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", NAMES)
def test_the_row_is_the_librarys(load, name, side, monkeypatch):
    tokenizer, chosen, cut = Tokenizer.from_folder(load(name).folder), random.Random(0), 0
    monkeypatch.setattr("zoo.text.long_pairs.SHORT_RATIO", -1)  # no pair is left to the library
    monkeypatch.setattr(tokenizer, "truncation_side", side)
    for _ in range(60):
        first, second = (" ".join(chosen.choices(WORDS, k=chosen.randint(0, chosen.choice([2, 30])))) for _ in "ab")
        length = tokenizer.special_tokens_to_add(True) + chosen.randint(0, 20)
        strategy = chosen.choice([True, "only_first", "only_second"])
        backend = tokenizer._backend(strategy, length, 0, False, True)
        try:
            want = backend.encode(first, second)
        except Exception as e:
            with pytest.raises(InputError, match="too short" if "too short" in str(e) else "Truncation"):
                tokenizer.encode_batch([first], [second], truncation=strategy, max_length=length)
            continue
        (got,) = tokenizer.encode_batch([first], [second], truncation=strategy, max_length=length).rows
        assert _row(got) == _row(want), (first, second, length, strategy)
        assert bool(got.overflowing) == bool(want.overflowing)
        cut += bool(got.overflowing)
    assert cut > 8


def test_what_is_cut_off_takes_no_memory(load):
    """The library makes 5,000 rows of this pair, of which one is wanted."""
    tokenizer = load("bert-uncased")
    first, second = "a cat " * 200, "the dog sleeps " * 200
    assert len(tokenizer._backend(True, 16, 0, False, True).encode(first, second).overflowing) > 5_000
    (row,) = tokenizer.encode_batch([first], [second], max_length=16).rows
    assert len(row.overflowing) <= 2
    assert len(row) == 16


def test_a_query_is_read_once_for_its_documents(load, monkeypatch):
    tokenizer, read = load("bert-uncased"), []
    monkeypatch.setattr("zoo.text.long_pairs.LongPairs._read", _counted(read))
    tokenizer.encode_batch(["the query " * 300] * 3, [f"document {i} " * 300 for i in range(3)], max_length=32)
    assert [text[:9] for text in read] == ["the query", "document ", "document ", "document "]


def _counted(read):
    from zoo.text.long_pairs import LongPairs

    its = LongPairs._read
    return lambda self, text, *rest: read.append(text) or its(self, text, *rest)
