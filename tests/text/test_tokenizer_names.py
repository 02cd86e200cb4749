"""Which class reads a tokenizer.json, and where special tokens are stated, against AutoTokenizer on the same folder."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from tests.text.tokenizer_samples import TEXTS, byte_level, differences, write
from zoo.errors import TokenizerError
from zoo.text.tokenizer import Tokenizer

transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")

ANGLES = ("<s>", "</s>", "<unk>", "<pad>", "<mask>")
ROLES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
FLAGS = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
BPE = byte_level(*ANGLES)


def _byte_file(*, begins: bool = False) -> str:
    """A tokenizer.json of byte-level BPE, with a token that takes the space before it along."""
    backend = Backend(models.BPE(*BPE))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    backend.add_special_tokens(list(ANGLES))
    backend.add_tokens([AddedToken("<x>", lstrip=True)])
    if begins:
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)]
        )
    return backend.to_str()


def _differences(folder: Any) -> list[Any]:
    return differences(transformers.AutoTokenizer.from_pretrained(folder), Tokenizer.from_folder(folder), TEXTS[::3])


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "qwen2", "phi3", "modernbert", "xlm-roberta", "smollm3"])
def test_class_and_model_type(kind, tmp_path):
    """A named class counts, but where the model's own is right, or the file's model is of another kind."""
    names = (None, "PreTrainedTokenizerFast", "LlamaTokenizer", "GPT2TokenizerFast", "XLMRobertaTokenizer", "Own")
    write(tmp_path, {"tokenizer.json": _byte_file(begins=True), "config.json": {"model_type": kind}})
    found: dict[str | None, list[Any]] = {}
    for name in names:
        write(tmp_path, {"tokenizer_config.json": {**({"tokenizer_class": name} if name else {}), **ROLES}})
        try:
            found[name] = _differences(tmp_path)[:2]
        except TypeError:  # of transformers: the class needs another kind of model
            found[name] = []
    assert not any(found.values()), found


MASK = {"__type": "AddedToken", "content": "<mask>", **FLAGS, "lstrip": True}
STATED = {
    "map": ({}, {"special_tokens_map.json": {**ROLES, "mask_token": MASK}}),
    "map comes first": (
        {"pad_token": "<s>"},
        {"special_tokens_map.json": {"pad_token": MASK, "additional_special_tokens": ["<x>", "the"]}},
    ),
    "more in the map": (
        {"extra_special_tokens": ["a"]},
        {"special_tokens_map.json": {"extra_special_tokens": ["b", {**MASK, "content": "<y>"}]}},
    ),
    "object in the map": ({}, {"special_tokens_map.json": {"extra_special_tokens": {"image_token": "<img>"}}}),
    "added tokens": ({}, {"added_tokens.json": {"<x>": 400, "<new>": 401, "the": 402}}),
    "objects": ({"eos_token": {**MASK, "content": "</s>"}, "mask_token": MASK}, {}),
    "decoder and map": (
        {"added_tokens_decoder": {"0": {"content": "<s>", **FLAGS, "special": True}}},
        {"special_tokens_map.json": {"eos_token": "<mask>"}},
    ),
    "decoder": ({"added_tokens_decoder": {"500": {"content": "hello", **FLAGS, "normalized": True}}}, {}),
    "roles without an id": ({"eos_token": "<eos>", "pad_token": "<PAD>", "bos_token": "hello"}, {}),
}


@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", "RobertaTokenizer", "GPT2Tokenizer"])
@pytest.mark.parametrize("case", STATED)
def test_special_tokens_are_those_stated(case, name, tmp_path):
    config, files = STATED[case]
    write(tmp_path, {"tokenizer.json": _byte_file(), "tokenizer_config.json": {"tokenizer_class": name, **config}})
    assert not _differences(write(tmp_path, files))


def test_a_models_own_tokens_are_named(tmp_path):
    config = {"tokenizer_class": "GPT2Tokenizer", "extra_special_tokens": {"image_token": "<img>"}}
    write(tmp_path, {"tokenizer.json": _byte_file(), "tokenizer_config.json": config})
    ours, theirs = Tokenizer.from_folder(tmp_path), transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert ours.special_tokens_map["image_token"] == theirs.image_token == "<img>"
    assert ours.id_of("<img>") == theirs.image_token_id
    assert theirs.image_token_id in ours.all_special_ids


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"fast_tokenizer_files": ["tokenizer.4.0.json"]}, "fast_tokenizer_files names tokenizer.4.0.json"),
        ({"add_prefix_space": "yes"}, "add_prefix_space is 'yes'"),
        ({"tokenizer_class": 3}, "tokenizer_class is 3"),
        ({"extra_special_tokens": 3}, "extra_special_tokens"),
        ({"added_tokens_decoder": {"0": {"content": "<s>", "lstrip": "no"}}}, r"\[0\]: lstrip is 'no'"),
        ({"padding_side": "top"}, "padding_side is 'top'"),
    ],
)
def test_what_is_refused(config, says, tmp_path):
    config = {"tokenizer_class": "RobertaTokenizer", **config}
    write(tmp_path, {"tokenizer.json": _byte_file(), "tokenizer_config.json": config, "tokenizer.4.0.json": {}})
    with pytest.raises(TokenizerError, match=says):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    "step",
    [
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Split(Regex(r"\p{L}{1,2}"), "isolated"),
    ],
)
def test_words_are_split_as_in_the_file(step, tmp_path):
    """As version 4 of transformers did: GPT2Tokenizer of version 5 forgets it, the class of no name does not."""
    backend = Backend.from_str(_byte_file())
    backend.pre_tokenizer = pre_tokenizers.Sequence([step, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    names = {"tokenizer_class": "GPT2Tokenizer", **ROLES}
    write(tmp_path, {"tokenizer.json": backend.to_str(), "tokenizer_config.json": names})
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert not differences(theirs, Tokenizer.from_folder(tmp_path))


def test_mistrals_words_are_mended_where_asked(tmp_path):
    """In files of many tokens, as transformers does it."""
    raw = json.loads(_byte_file())
    size = len(raw["model"]["vocab"])
    raw["model"]["vocab"].update({f"filler{i}": size + 1 + i for i in range(100_001)})
    write(tmp_path, {"tokenizer.json": raw, "config.json": {"model_type": "mistral", "transformers_version": "4.50"}})
    text = ["don't HELLO Wörld 12345  hello\n\n the"]
    ids = []
    for mends in (True, False):
        write(tmp_path, {"tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "fix_mistral_regex": mends}})
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        ours = Tokenizer.from_folder(tmp_path)
        ids.append(ours(text).input_ids[0].tolist())
        assert ids[-1] == theirs(text[0])["input_ids"]
    assert ids[0] != ids[1]
