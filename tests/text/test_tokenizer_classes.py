"""Every setting of tokenizer_config.json that transformers' classes read, against AutoTokenizer on the same folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.text.tokenizer_samples import byte_level, differences, sentencepiece_model, words, write
from zoo.registry import FAMILIES
from zoo.text.tokenizer import Tokenizer
from zoo.text.tokenizer_classes import CLASS_OF_MODEL, MISNAMED_MODELS

transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

SPM = "sentencepiece.bpe.model"
END = ("<|endoftext|>", "<|padding|>", "<|startoftext|>", "<|im_end|>")
SPEECH = ("<|startoftranscript|>", "<|en|>", "<|fr|>", "<|translate|>", "<|transcribe|>", "<|notimestamps|>")
T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
BRACKETS = {"bos_piece": "[CLS]", "eos_piece": "[SEP]"}
XLNET = {"control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"], "user_defined_symbols": ["<eop>"]}
BPE = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity"}
GEMMA = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "bos_piece": "<bos>", "eos_piece": "<eos>"}
DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "unk_piece": "[UNK]", **BRACKETS}
# class -> its SentencePiece file, and how a model is trained for it
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "XLMRobertaTokenizer": (SPM, {}),
    "CamembertTokenizer": (SPM, {}),
    "MBartTokenizer": (SPM, {}),
    "MBart50Tokenizer": (SPM, {}),
    "NllbTokenizer": (SPM, {"model_type": "bpe", "user_defined_symbols": ["eng_Latn", "deu_Latn", "fr_XX"]}),
    "T5Tokenizer": ("spiece.model", T5),
    "PegasusTokenizer": ("spiece.model", T5),
    "AlbertTokenizer": (
        "spiece.model",
        {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "user_defined_symbols": ["[MASK]"], **BRACKETS},
    ),
    "BigBirdTokenizer": (
        "spiece.model",
        {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "user_defined_symbols": ["[CLS]", "[SEP]", "[MASK]"]},
    ),
    "XLNetTokenizer": ("spiece.model", {"unk_id": 0, "bos_id": 1, "eos_id": 2, **XLNET}),
    "LlamaTokenizer": ("tokenizer.model", BPE),
    "GemmaTokenizer": ("tokenizer.model", {**BPE, **GEMMA}),
    "DebertaV2Tokenizer": ("spm.model", {"normalization_rule_name": "identity", **DEBERTA}),
}
ROBERTA = ("RobertaTokenizer", "LayoutLMv3Tokenizer")
BYTES = (
    *(*ROBERTA, "DebertaTokenizer", "GPT2Tokenizer", "GPTNeoXTokenizer", "CohereTokenizer"),
    *("Qwen2Tokenizer", "WhisperTokenizer", "CLIPTokenizer"),
)
PROTEINS = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]
CLASSES = ("BertTokenizer", "DistilBertTokenizer", "MPNetTokenizer", *BYTES, *MODELS)

FLAGS = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized", "special"), False)
EVEN_SO = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"
SETTINGS: list[dict[str, Any]] = [
    *({name: value} for name in ("add_prefix_space", "do_lower_case", "strip_accents") for value in (True, False)),
    *({name: value} for name in ("legacy", "add_bos_token", "keep_accents") for value in (True, False)),
    {"clean_up_tokenization_spaces": True},
    {"clean_up_tokenization_spaces": True, EVEN_SO: True},
    {"padding_side": "left", "truncation_side": "left", "model_max_length": 77},
    {"add_bos_token": True, "add_eos_token": True},
    {"add_eos_token": True},
    {"split_special_tokens": True},
    {"tokenize_chinese_chars": False},
    {"trim_offsets": False},
    {"split_by_punct": True},
    {"extra_ids": 3},
    {"predict_timestamps": True},
    {"language": "french", "task": "translate"},
    {"src_lang": "fr_XX"},
    {"model_input_names": ["input_ids", "attention_mask"]},
    {"extra_special_tokens": ["<x>"]},
    {"extra_special_tokens": {"image_token": "<x>"}},
    {"additional_special_tokens": ["<x>", {"content": "b", **FLAGS, "lstrip": True, "special": True}]},
    {"image_token": "<x>", "mask_token": "<mask>"},
    {"pad_token": None},
    {"mask_token": {"__type": "AddedToken", "content": "<mask>", **FLAGS, "rstrip": True}},
    {
        "added_tokens_decoder": {
            "99999": {"content": "<x>", **FLAGS, "lstrip": True, "rstrip": True, "special": True},
            "99998": {"content": "other", **FLAGS, "single_word": True, "normalized": True},
        }
    },
]


def _files(name: str) -> dict[str, Any]:
    """The vocabulary files of a class."""
    if name in MODELS:
        pytest.importorskip("sentencepiece", reason="needs sentencepiece, which trains the model")
        file, options = MODELS[name]
        return {file: sentencepiece_model(**options)}
    if name in BYTES:
        special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>") if name in ROBERTA else END
        if name == "DebertaTokenizer":
            special = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
        tokens, merges = byte_level(*special)
        more = SPEECH if name == "WhisperTokenizer" else ()
        if name == "CLIPTokenizer":  # ends of words, of which none is merged
            letters = [token for token in tokens if len(token) == 1]
            tokens, merges = {t: i for i, t in enumerate([*letters, *(f"{t}</w>" for t in letters), *END])}, []
        tokens = {**tokens, **{token: len(tokens) + i for i, token in enumerate(more)}}
        return {"vocab.json": tokens, "merges.txt": "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges)}
    tokens = words()
    if name == "MPNetTokenizer":
        tokens = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *tokens[5:], "<mask>"]
    return {"vocab.txt": "".join(f"{token}\n" for token in tokens)}


def _both(folder: Path) -> tuple[Any, Tokenizer]:
    return _reference(folder), Tokenizer.from_folder(folder)


def _reference(folder: Path) -> Any:
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    if type(theirs).__name__ == "LayoutLMv3Tokenizer":  # whose own call takes words and their boxes
        theirs.__class__ = transformers.TokenizersBackend
    return theirs


@pytest.mark.parametrize("name", CLASSES)
def test_vocabulary_files(name, tmp_path):
    config = {"tokenizer_class": name}
    if name in ROBERTA:  # whose mask else takes the space before it along, as docs/loading.md says
        config["added_tokens_decoder"] = {"4": {"content": "<mask>", **FLAGS, "special": True}}
    assert not differences(*_both(write(tmp_path, {**_files(name), "tokenizer_config.json": config})))


def test_proteins(tmp_path):
    """ESM's, which is not one of the tokenizers library in transformers."""
    config = {"tokenizer_class": "EsmTokenizer", "model_max_length": 9}
    write(tmp_path, {"vocab.txt": "\n".join(PROTEINS), "tokenizer_config.json": config})
    theirs, ours = transformers.EsmTokenizer.from_pretrained(tmp_path), Tokenizer.from_folder(tmp_path)
    for text in ("MKTAYIAK", "M K\tT", "mk LA<mask>G JJ J<mask> J", "", "<cls>A", "B.-<null_1>Z é"):
        assert ours.encode_batch(text, truncation=False).rows[0].ids == theirs(text)["input_ids"], text
        assert ours(text).input_ids[0].tolist() == theirs(text, truncation=True)["input_ids"], text
    assert ours.encode_batch(["MK"], ["LA"]).rows[0].ids == theirs("MK", "LA")["input_ids"]
    assert (ours.pad_token_id, ours.mask_token_id, ours.eos_token_id) == (1, 32, 2)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", CLASSES)
def test_settings_come_before_tokenizer_json(name, step, tmp_path):
    """By day each class has a third of the settings, another than the class before it."""
    files = write(tmp_path / "files", {**_files(name), "tokenizer_config.json": {"tokenizer_class": name}})
    transformers.AutoTokenizer.from_pretrained(files).save_pretrained(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text(encoding="utf-8"))
    failures, compared = {}, 0
    chosen = SETTINGS[[*CLASSES].index(name) % step :: step]
    for settings in ({}, *chosen):
        changed = {**config, **settings}
        write(tmp_path / "saved", {"tokenizer_config.json": changed})
        try:
            theirs = _reference(tmp_path / "saved")
        except Exception:  # a setting that makes no tokenizer of this class
            continue
        compared += 1
        if found := differences(theirs, Tokenizer.from_folder(tmp_path / "saved")):
            failures[json.dumps(settings)] = found[:2]
    assert not failures
    assert compared > len(chosen) - 4


def test_classes_of_models_are_those_of_transformers():
    from transformers.models.auto import tokenization_auto as auto

    texts = [kind for kind, family in FAMILIES.items() if family.has_tokenizer]
    assert {kind: CLASS_OF_MODEL.get(kind) for kind in texts} == {
        kind: name and name.removesuffix("Fast")  # of one class, by its older name
        for kind, name in ((kind, auto.TOKENIZER_MAPPING_NAMES.get(kind)) for kind in texts)
    }
    wrong = auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS
    assert set(MISNAMED_MODELS) == wrong & FAMILIES.keys()
