"""Shapes and limits of a call, bad input, threads and forks."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from zoo.errors import InputError


@pytest.fixture(scope="module", params=["bert-uncased", "roberta", "trocr-small"])
def tokenizer(request, load):
    return load(request.param)


def test_arrays(tokenizer):
    batch = tokenizer(["one two three", "one"], ["four", "five"])
    rows, width = batch.input_ids.shape
    assert rows == 2
    assert [array.dtype.name for array in batch] == ["int64", "bool", "int64", "bool", "int64", "int64", "int64"]
    assert batch.offsets.shape == (2, width, 2)
    assert all(array.shape == (2, width) for array in batch[:4])
    assert (batch.input_ids[~batch.attention_mask] == tokenizer.pad_token_id).all()
    assert batch.overflow_to_sample.tolist() == [0, 1]
    text = "one two three"
    start, end = batch.offsets[0, 2]
    assert text[start:end].strip() == "two"


def test_rows_may_be_padded_in_any_order(tokenizer):
    texts = ["a much longer sentence than the others", "short", "of middle length, this"]
    encodings = tokenizer.encode_batch(texts)
    order = np.argsort(encodings.lengths)
    batch = tokenizer.pad(encodings, order[:2])
    assert batch.input_ids.shape[1] == encodings.lengths[order[1]]
    assert batch.overflow_to_sample.tolist() == [1, 2]
    assert batch.input_ids.tolist() == tokenizer([texts[1], texts[2]]).input_ids.tolist()


def test_no_truncation_leaves_the_length_to_the_model(tokenizer):
    text = "word " * 1000
    assert tokenizer(text).input_ids.shape == (1, 512)
    assert tokenizer(text, truncation=False).input_ids.shape[1] >= 1002


@pytest.mark.parametrize(
    ("texts", "pairs", "options", "says"),
    [
        (None, None, {}, "texts is None"),
        (b"bytes", None, {}, "texts is of type bytes .decode it first"),
        (7, None, {}, "texts is of type int"),
        ({"a": 1}, None, {}, "texts is of type dict"),
        ([], None, {}, "texts is empty"),
        (["a", None], None, {}, r"texts\[1\] is None"),
        (["a", b"b"], None, {}, r"texts\[1\] is of type bytes"),
        (["a", ["b"]], None, {}, r"texts\[1\] is of type list"),
        (["a", "b\ud83d"], None, {}, r"texts\[1\] has a lone surrogate, U\+D83D, at character 1"),
        ("\udfffa", None, {}, r"texts has a lone surrogate, U\+DFFF, at character 0"),
        (["a"], ["\ud800"], {}, r"pairs\[0\] has a lone surrogate"),
        (["a", "b"], ["c"], {}, "pairs: 1 text for 2"),
        (["a"], "c", {}, "pairs"),
        ("a", None, {"max_length": 1}, "max_length=1 leaves -1 tokens"),
        ("a", "b", {"max_length": 2}, "max_length=2 leaves -[12] tokens"),
        ("a", None, {"max_length": 0}, "max_length=0"),
        ("a", None, {"max_length": 8, "stride": 6, "overflow": True}, "more than the stride of 6"),
        ("a", None, {"max_length": 2, "overflow": True}, "more than the stride of 0"),
        ("a", None, {"stride": 3}, "stride=3"),
        ("a", None, {"stride": -1, "overflow": True}, "stride=-1"),
        ("a", None, {"overflow": True, "truncation": False}, "they need each other"),
        ("a", None, {"max_length": 9, "truncation": False}, "max_length=9 with truncation=False"),
        ("a", None, {"truncation": "only_third"}, "truncation='only_third'"),
        ("a", None, {"truncation": "only_second"}, "without a second text"),
        ("a", "b", {"stride": 2, "overflow": True, "max_length": 20}, "needs truncation="),
        (["a"], ["word " * 50], {"truncation": "only_first", "max_length": 20}, r"texts\[0\] cannot be encoded"),
        (["a", "b"], None, {"padding": 2}, "padding=2, but the longest row has 3"),
        (["a", "a a a"], None, {"padding": False}, "padding=False, but the rows have 3 to 5"),
    ],
)
def test_bad_input(tokenizer, texts, pairs, options, says):
    with pytest.raises(InputError, match=says):
        tokenizer(texts, pairs, **options)


@pytest.mark.parametrize("truncation", ["only_first", "only_second"])
def test_windows_that_cannot_advance_are_refused_before_rust_panics(tokenizer, truncation, capfd):
    texts = (["word " * 30], ["long " * 90])
    if truncation == "only_first":
        texts = texts[::-1]
    name = "texts" if truncation == "only_second" else "pairs"
    with pytest.raises(InputError, match=rf"{name}\[0\] has 30 tokens|{name}\[0\] has 31 tokens"):
        tokenizer(*texts, truncation=truncation, max_length=48, stride=15, overflow=True)
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "text",
    ["", "\0", "\ufeff", "a\0b", "\u202eabc", "👩‍👩‍👧‍👦", "\u200d" * 1000, "a" * 10_000, "\U0010ffff", "\r\n\u2028"],
)
def test_odd_text(tokenizer, text):
    batch = tokenizer([text, "plain"], truncation=False)
    assert batch.input_ids.min() >= 0
    assert batch.input_ids.max() < tokenizer.vocab_size
    assert (batch.offsets >= 0).all()
    assert (batch.offsets[0] <= len(text)).all()


def test_joiners_without_a_place_to_cut(tokenizer):
    assert tokenizer("\u200d" * 500_000).input_ids.shape[1] <= 512
    with pytest.raises(
        InputError,
        match=r"1000000 characters, and no space between two words among the first 524288, .* text\[:524288\]",
    ):
        tokenizer("\u200d" * 1_000_000)


@pytest.mark.slow
def test_ten_megabytes(load):
    assert load("bert-uncased")("lorem ipsum dolor " * 570_000).input_ids.shape == (1, 512)


@pytest.mark.parametrize(
    ("ids", "says"),
    [([-1], "ids from -1"), ([1.5], "type float64"), ([[1, 2]], "one row"), ([2**40], "ids from"), (["a"], "type <U1")],
)
def test_bad_ids(tokenizer, ids, says):
    with pytest.raises(InputError, match=says):
        tokenizer.decode(ids)


def test_tokens_and_ids(tokenizer):
    ids = tokenizer("hello world").input_ids[0]
    assert [tokenizer.id_of(token) for token in tokenizer.tokens(ids)] == ids.tolist()
    assert tokenizer.tokens([tokenizer.vocab_size + 5]) == [None]
    assert tokenizer.decode([]) == ""
    with pytest.raises(InputError, match="'notawordatall' is not one token"):
        tokenizer.id_of("notawordatall")


def test_many_threads_with_many_settings(tokenizer):
    text = "The quick brown fox jumps over the lazy dog, then sleeps. " * 4
    settings = [
        {"max_length": length, "stride": stride, "overflow": True} for length in (9, 17, 33) for stride in (0, 2)
    ]
    settings += [{"truncation": False}, {"max_length": 5}]
    alone = [tokenizer(text, **options).input_ids.tolist() for options in settings]

    def task(i: int) -> bool:
        options = settings[i % len(settings)]
        return tokenizer(text, **options).input_ids.tolist() == alone[i % len(settings)]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(task, range(400)))


def test_many_settings_keep_memory_bounded(tokenizer):
    for length in range(3, 103):
        assert tokenizer("word " * 200, max_length=length).input_ids.shape == (1, length)
    assert len(tokenizer._backends) <= 32


def test_fork_warns_of_nothing(folder):
    code = (
        "import os, sys; from zoo.text.tokenizer import Tokenizer; t = Tokenizer.from_folder(sys.argv[1]);"
        "t(['some text'] * 64); pid = os.fork(); t(['some text'] * 64); pid and os.waitpid(pid, 0)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder("bert-uncased"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_import_is_light():
    code = "import sys, zoo.text.tokenizer; sys.exit('tokenizers' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=300).returncode == 0
