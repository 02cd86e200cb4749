"""Comparisons of folders without a tokenizer or image processor, or with a tokenizer that knows few words."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch", reason="needs torch, for the reference")
pytest.importorskip("transformers", reason="needs transformers, the reference")

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from parity.cases import Case
from parity.checkpoints import build
from parity.report import markdown
from parity.run import run

# One of each family, and heads whose inputs have another shape.
SPECS = (
    "bert-base-uncased",
    "bert-swag",
    "bert-cross-decoder",
    "roberta-base",
    "xlm-roberta-base",
    "vit-base-patch16-224",
    "vit-mim",
    "vit-oblong",
    "deit-mim",
    "beit-base-patch16-224-pt22k",
    "Llama-3.2-1B",
    "llama-squad2",
    "clip-text",
    "metaclip-2-worldwide-b32",
    "pp-ocrv6-small-rec",
    "table-transformer-detection",
    "trocr-base-handwritten",
    "trocr-decoder",
)


@pytest.mark.parametrize("name", SPECS)
def test_weights_and_config_are_enough(name, tmp_path):
    """As `save_pretrained` of a model alone leaves them."""
    folder = build(name, tmp_path)
    for path in folder.iterdir():
        if (
            path.is_file()
            and path.name not in ("config.json", "model.safetensors.index.json")
            and path.suffix not in (".safetensors", ".bin")
        ):
            path.unlink()
    result = run(Case(str(folder)))
    assert result.holds, result.first_divergence
    notes = {stage.name: stage.note for stage in result.stages}
    assert "random" in notes.get("processor", "") + notes.get("tokenizer", "")
    assert "random" in markdown({"versions": {}, "machine": {}, "command": ""}, [result])
    assert any(name.startswith("layer.") or ".layer." in name for name in notes)


def char_level():
    letters = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyz '."]
    made = Tokenizer(models.WordLevel({letter: i for i, letter in enumerate(letters)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    made.decoder = decoders.Fuse()
    return made


def all_unknown():
    made = Tokenizer(models.WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}, unk_token="<unk>"))
    made.decoder = decoders.Fuse()
    return made


def nothing_known():
    """Byte pairs of three letters and no unknown token: all else is left out."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "x", "z", "xz"]
    return Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [("x", "z")]))


def closed(made):
    """With a token before and after each text."""
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return made


VOCABULARIES = {
    "characters": char_level,
    "all unknown": all_unknown,
    "nothing": nothing_known,
    "characters, closed": lambda: closed(char_level()),
    "all unknown, closed": lambda: closed(all_unknown()),
    "nothing, closed": lambda: closed(nothing_known()),
}


# Of each vocabulary and of each kind of model some; the other pairs at night.
OFTEN = {
    "bert-swag": {"characters", "all unknown, closed"},
    "roberta-base": {"nothing", "characters, closed"},
    "trocr-base-handwritten": {"all unknown", "nothing, closed"},
    "trocr-decoder": {"all unknown, closed", "nothing"},
    "llama-linear": {"characters"},
}


@pytest.mark.parametrize(
    ("name", "vocabulary"),
    [
        pytest.param(name, vocabulary, marks=[pytest.mark.nightly] * (vocabulary not in often))
        for name, often in OFTEN.items()
        for vocabulary in VOCABULARIES
    ],
)
def test_any_vocabulary_will_do(name, vocabulary, tmp_path):
    folder = build(name, tmp_path)
    for file in ("vocab.json", "vocab.txt", "merges.txt", "special_tokens_map.json"):
        (folder / file).unlink(missing_ok=True)
    made = VOCABULARIES[vocabulary]()
    made.add_special_tokens([f"<{name}>" for name in ("s", "pad", "/s", "unk", "mask")])
    made.save(str(folder / "tokenizer.json"))
    roles = {f"{role}_token": f"<{role}>" for role in ("pad", "unk", "mask")}
    roles |= {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **roles}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    result = run(Case(str(folder)))
    assert result.holds, [stage for stage in result.stages if not stage.holds]
