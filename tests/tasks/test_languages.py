"""Translations between languages that are tokens, as of NLLB and mBART-50, against transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models

import zoo
from parity.checkpoints import build
from parity.vocabularies import ASCII
from zoo.errors import InputError
from zoo.text.languages import LANGUAGES_50

transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TEXTS = ["hello the world", "the cat"]
CODES = {"NllbTokenizer": ["eng_Latn", "deu_Latn", "fra_Latn"], "MBart50Tokenizer": list(LANGUAGES_50)}
SPECS = {"NllbTokenizer": "nllb-200-distilled-600M", "MBart50Tokenizer": "mbart-large-50-many-to-many-mmt"}


def _write(folder: Path, name: str, **settings: Any) -> Path:
    build(SPECS[name], folder)
    pieces = [*SPECIAL, *dict.fromkeys("▁" + ASCII), "▁t", "▁th", "▁the", *CODES[name], "<mask>"]
    if name == "NllbTokenizer":
        merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e")]
        vocab = {piece: i for i, piece in enumerate(pieces)}
        model: Any = models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True)
    else:
        model = models.Unigram([(piece, 0.0 if len(piece) > 1 else -2.0) for piece in pieces], unk_id=3)
    made = Tokenizer(model)
    made.add_special_tokens([*SPECIAL, *CODES[name], "<mask>"])
    made.save(str(folder / "tokenizer.json"))
    roles = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    declared = {"tokenizer_class": name, "extra_special_tokens": CODES[name], **roles, **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(declared), encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    (folder / "config.json").write_text(json.dumps({**config, **ids, "tokenizer_class": None}), encoding="utf-8")
    (folder / "generation_config.json").write_text(json.dumps(ids), encoding="utf-8")
    return folder


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "settings"),
    [("NllbTokenizer", {}), ("NllbTokenizer", {"legacy_behaviour": True}), ("MBart50Tokenizer", {})],
)
def test_a_source_and_a_target_are_those_of_transformers(name, settings, tmp_path):
    folder, codes = _write(tmp_path, name, **settings), CODES[name]
    task = zoo.load(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    for source, target in ((codes[0], codes[1]), (codes[2], codes[0])):
        tokenizer.src_lang = source
        given = tokenizer(TEXTS, return_tensors="pt", padding=True)
        own = task.tokenizer.with_language(source)(TEXTS)
        assert own.input_ids.tolist() == given["input_ids"].tolist()
        forced = tokenizer.convert_tokens_to_ids(target)
        rows = model.generate(**given, forced_bos_token_id=forced, max_new_tokens=10, num_beams=3)
        expected = [text.strip() for text in tokenizer.batch_decode(rows, skip_special_tokens=True)]
        assert task(TEXTS, source=source, target=target, max_new_tokens=10, num_beams=3) == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_unknown_language_is_refused_with_the_nearest(tmp_path):
    task = zoo.load(_write(tmp_path, "MBart50Tokenizer"))
    with pytest.raises(InputError, match=r"source is 'de', expected one of .*; did you mean 'de_DE'"):
        task("a", source="de", target="en_XX")
    with pytest.raises(InputError, match="target is None, expected the language to write"):
        task("a")
    assert not zoo.load("stories260k").tokenizer.languages
