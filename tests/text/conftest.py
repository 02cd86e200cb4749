"""Checkpoint folders with real vocabularies, unpacked once per run."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "tokenizers"

MASK = {"content": "<mask>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": True}
ANGLE = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>", "unk_token": "<unk>"}
SPECIAL_TOKENS = {**ANGLE, "pad_token": "<pad>", "mask_token": MASK}
BERT = {"tokenizer_class": "BertTokenizer", "model_max_length": 512, "clean_up_tokenization_spaces": True}

# name: (packed files, JSON files written beside them, model_type of config.json for transformers' AutoTokenizer)
FOLDERS: dict[str, tuple[dict[str, str], dict[str, dict], str]] = {
    "bert-uncased": (
        {"vocab.txt": "bert-base-uncased.vocab.txt"},
        {"tokenizer_config.json": {**BERT, "do_lower_case": True}},
        "bert",
    ),
    "bert-cased": (
        {"vocab.txt": "bert-base-cased.vocab.txt"},
        {"tokenizer_config.json": {**BERT, "do_lower_case": False}},
        "bert",
    ),
    "bert-multilingual": (
        {"vocab.txt": "bert-base-multilingual-cased.vocab.txt"},
        {"tokenizer_config.json": {**BERT, "do_lower_case": False}},
        "bert",
    ),
    "roberta": (
        {"vocab.json": "roberta.vocab.json", "merges.txt": "roberta.merges.txt"},
        {"tokenizer_config.json": {"model_max_length": 512}, "special_tokens_map.json": SPECIAL_TOKENS},
        "roberta",
    ),
    "roberta-json": (
        {"tokenizer.json": "roberta.tokenizer.json"},
        {"tokenizer_config.json": {"model_max_length": 512}},
        "roberta",
    ),
    "trocr-small": (
        {"sentencepiece.bpe.model": "unilm3-cased.model"},
        {
            "tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": 512},
            "special_tokens_map.json": SPECIAL_TOKENS,
        },
        "xlm-roberta",
    ),
    "xlm-roberta": (
        {"tokenizer.json": "xlm_roberta.tokenizer.json"},
        {"tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer", "clean_up_tokenization_spaces": True}},
        "xlm-roberta",
    ),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    root = tmp_path_factory.mktemp("tokenizers")

    def make(name: str) -> Path:
        path = root / name
        if not path.exists():
            path.mkdir()
            packed, written, model_type = FOLDERS[name]
            for target, source in packed.items():
                (path / target).write_bytes(lzma.decompress((DATA / f"{source}.xz").read_bytes()))
            for target, content in {**written, "config.json": {"model_type": model_type}}.items():
                (path / target).write_text(json.dumps(content), encoding="utf-8")
        return path

    return make


@pytest.fixture(scope="session")
def load(folder):
    """`load(name)`: the tokenizer of one of FOLDERS, loaded once."""
    from zoo.text.tokenizer import Tokenizer

    loaded: dict[str, Tokenizer] = {}

    def get(name: str) -> Tokenizer:
        if name not in loaded:
            loaded[name] = Tokenizer.from_folder(folder(name))
        return loaded[name]

    return get
