"""SentencePiece's models alone, without a tokenizer.json, against transformers and the sentencepiece package."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from tests.text.tokenizer_samples import TEXTS, differences, sentencepiece_model, write
from zoo.errors import TokenizerError
from zoo.text.sentencepiece_model import read_sentencepiece
from zoo.text.sentencepiece_normalizer import SentencePieceNormalizer
from zoo.text.tokenizer import Tokenizer

sentencepiece = pytest.importorskip("sentencepiece", reason="needs sentencepiece, which trains the models")

T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
BYTES = {"model_type": "bpe", "byte_fallback": True}
BRACKETS = {"bos_piece": "[CLS]", "eos_piece": "[SEP]", "user_defined_symbols": ["[MASK]"]}
NORMALIZERS = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")
LAYOUTS = {
    "t5 nmt_nfkc_cf, symbols": (
        "T5Tokenizer",
        "spiece.model",
        {**T5, "normalization_rule_name": "nmt_nfkc_cf", "user_defined_symbols": ["<x>"]},
    ),
    "t5 with its own sentinels": (
        "T5Tokenizer",
        "spiece.model",
        {**T5, "user_defined_symbols": ["<extra_id_1>", "<extra_id_0>"]},
    ),
    "xlm-r, symbols": (
        "XLMRobertaTokenizer",
        "sentencepiece.bpe.model",
        {"normalization_rule_name": "identity", "user_defined_symbols": ["<x>"], "control_symbols": ["<c>"]},
    ),
    "llama without bytes": ("LlamaTokenizer", "tokenizer.model", {"model_type": "bpe"}),
    "llama, symbols": ("LlamaTokenizer", "tokenizer.model", {**BYTES, "user_defined_symbols": ["<x>", "<mask>"]}),
    "llama, spaces": ("LlamaTokenizer", "tokenizer.model", {**BYTES, "remove_extra_whitespaces": False}),
    "albert": ("AlbertTokenizer", "spiece.model", {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, **BRACKETS}),
    "mbart-50, symbols": ("MBart50Tokenizer", "sentencepiece.bpe.model", {"user_defined_symbols": ["<x>"]}),
}
SETTINGS = (
    {},
    {"additional_special_tokens": None},
    {"legacy": True},
    {"legacy": False},
    {"add_bos_token": True, "add_eos_token": True},
    {"extra_ids": 2},
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    name, file, options = LAYOUTS[layout]
    write(tmp_path, {file: sentencepiece_model(**options)})
    for settings in SETTINGS:
        write(tmp_path, {"tokenizer_config.json": {"tokenizer_class": name, **settings}})
        if "own sentinels" in layout and settings.get("extra_ids") != 2:  # transformers refuses another number
            continue
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert not differences(theirs, Tokenizer.from_folder(tmp_path)), settings


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("config", [{}, {"additional_special_tokens": ["hello"]}])
def test_special_tokens_map(layout, config, tmp_path):
    """Its additional_special_tokens do not count beside those of the model, its roles do."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    name, file, options = LAYOUTS[layout]
    if "own sentinels" in layout:  # transformers refuses another number of them
        config = {**config, "extra_ids": 2}
    eos = {"content": "</s>", "lstrip": False, "rstrip": True, "normalized": True, "single_word": False}
    stated = {"additional_special_tokens": ["<x>"], "eos_token": eos, "unk_token": "<unk>"}
    files = {"tokenizer_config.json": {"tokenizer_class": name, **config}, "special_tokens_map.json": stated}
    write(tmp_path, {file: sentencepiece_model(**options), **files})
    assert not differences(transformers.AutoTokenizer.from_pretrained(tmp_path), Tokenizer.from_folder(tmp_path))


def test_a_model_that_no_class_reads(tmp_path):
    """Mistral's, in a folder that names Llama's class."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    config = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}
    files = {"tokenizer_config.json": config, "config.json": {"model_type": "mistral"}}
    write(tmp_path, {"tokenizer.model": sentencepiece_model(**BYTES), **files})
    assert not differences(transformers.AutoTokenizer.from_pretrained(tmp_path), Tokenizer.from_folder(tmp_path))


@pytest.mark.parametrize("rules", NORMALIZERS)
@pytest.mark.parametrize("spaces", [True, False])
def test_normalizer_is_sentencepieces(rules, spaces):
    data = sentencepiece_model(
        normalization_rule_name=rules,
        remove_extra_whitespaces=spaces,
        add_dummy_prefix=spaces,
        user_defined_symbols=["<x>", "ﬁ", "a b"],
    )
    ours = SentencePieceNormalizer(read_sentencepiece(data, "a model"))
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    random.seed(rules)
    letters = [*"ab Aﬁ①²ａ№ß\u0301\u0308é\u3099か\u200b\u00a0\t\n▁한ᄒ☃Ⅳ㍿ﬃİ", "  ", "<x>", "a b"]
    texts = ["".join(random.choices(letters, k=random.randint(1, 20))) for _ in range(300)]
    for text in (*TEXTS, *texts):
        assert ours(text) == theirs.normalize(text), text


@pytest.mark.parametrize(
    ("name", "file", "options", "says"),
    [
        ("T5Tokenizer", "spiece.model", {"model_type": "bpe"}, "type BPE, and this tokenizer needs Unigram"),
        ("LlamaTokenizer", "tokenizer.model", {}, "type unigram, and this tokenizer needs BPE"),
        (None, "spiece.model", {}, "spiece.model without a tokenizer_class"),
        (
            "BertTokenizer",
            "spiece.model",
            {},
            "no tokenizer: expected tokenizer.json, or the vocab.txt of a BertTokenizer",
        ),
        ("PegasusTokenizer", "spiece.model", T5, "pad_token is null, and a tokenizer of this class needs it"),
    ],
)
def test_what_is_refused(name, file, options, says, tmp_path):
    config = {} if name is None else {"tokenizer_class": name}
    if "null" in says:
        config["pad_token"] = None
    write(tmp_path, {file: sentencepiece_model(**options), "tokenizer_config.json": config})
    with pytest.raises(TokenizerError, match=says):
        Tokenizer.from_folder(tmp_path)


def test_the_package_is_not_needed(tmp_path):
    write(tmp_path, {"spiece.model": sentencepiece_model(**T5), "config.json": {"model_type": "mt5"}})
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('sentencepiece', 'google', 'google.protobuf', 'transformers')));"
        f"from zoo.text.tokenizer import Tokenizer; print(Tokenizer.from_folder({str(tmp_path)!r})('hello').input_ids)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(Tokenizer.from_folder(tmp_path)("hello").input_ids)


def test_siglip_reads_its_pieces(tmp_path):
    """As transformers does, also where there is a tokenizer.json: without punctuation, in small letters."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    for settings in ({}, {"do_lower_case": False, "model_max_length": 16}):
        config = {"tokenizer_class": "SiglipTokenizer", **settings}
        data = sentencepiece_model(**T5, normalization_rule_name="identity" if settings else "nmt_nfkc_cf")
        write(tmp_path, {"spiece.model": data, "tokenizer_config.json": config})
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert not differences(theirs, Tokenizer.from_folder(tmp_path), decodes=False)
