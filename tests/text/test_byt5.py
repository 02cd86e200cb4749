"""ByT5's tokenizer, which has no vocabulary: bytes after three special tokens, beside transformers' and by hand."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from zoo.errors import TokenizerError
from zoo.text.tokenizer import Tokenizer

TEXTS = ("", "Hello, wörld 🙂", " a </s> b", "a</s>", "</s>", "a </s></s> ", "x <extra_id_0>  y<extra_id_2>", "\0\x7f")
TEXTS += ("  <pad> q", "日本\n\tü", "<unk>x", "a<extra_id_124>", "</s")
WHOLE = {"content": "</s>", "lstrip": False, "rstrip": False, "single_word": False, "normalized": True}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"extra_ids": 3},
    {"extra_ids": 0},
    {"eos_token": {"__type": "AddedToken", **WHOLE}, "model_max_length": 512},
]
IDS = ([100, 3 + 0xE2, 3 + 0x82, 101], [3 + 0xC3, 3 + 0xBC, 1, 0, 2], [198, 0, 200, 100])


def folder_of(folder: Path, settings: dict[str, Any]) -> Path:
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "ByT5Tokenizer", **settings}))
    (folder / "config.json").write_text(json.dumps({"model_type": "t5"}))
    return folder


def test_ids_are_bytes_after_three_tokens(tmp_path):
    tokenizer = Tokenizer.from_folder(folder_of(tmp_path, {}))
    assert tokenizer("aü", "b").input_ids.tolist() == [[100, 3 + 0xC3, 3 + 0xBC, 1, 101, 1]]
    assert tokenizer("<extra_id_0>").input_ids.tolist() == [[259, 1]]
    assert (tokenizer.vocab_size, tokenizer.pad_token_id, tokenizer.eos_token_id) == (384, 0, 1)
    assert tokenizer.decode([100, 3 + 0xE2, 3 + 0x82, 101, 1]) == "ab"  # two bytes of three
    assert tokenizer.decode([259, 100, 1], skip_special_tokens=False) == "<extra_id_0>a</s>"
    assert pickle.loads(pickle.dumps(tokenizer))("a</s> ").input_ids.tolist() == [[100, 1]]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_as_transformers(settings, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    theirs = transformers.AutoTokenizer.from_pretrained(folder_of(tmp_path, settings))
    ours = Tokenizer.from_folder(tmp_path)
    assert (ours.vocab_size, ours.model_max_length or int(1e30)) == (len(theirs), theirs.model_max_length)
    for text in TEXTS:
        ids = theirs(text)["input_ids"]
        assert ours(text).input_ids[0].tolist() == ids
        assert ours(text, "b").input_ids[0].tolist() == theirs(text, "b")["input_ids"]
        for skip in (True, False):
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
    for ids in IDS:
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("count", [-1, 10**6, "many"])
def test_a_number_of_sentinels_that_is_none(count, tmp_path):
    with pytest.raises(TokenizerError, match="extra_ids"):
        Tokenizer.from_folder(folder_of(tmp_path, {"extra_ids": count}))
