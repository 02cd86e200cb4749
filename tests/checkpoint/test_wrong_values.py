"""Every value of every JSON file that loading reads, replaced by wrong ones: it is read, or it is one ZooError."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from zoo.checkpoint.sentence_encoder import read_sentence_encoder
from zoo.errors import ZooError
from zoo.generate.config import GenerationConfig
from zoo.images.processor import ImageProcessor
from zoo.registry import FAMILIES, config_class
from zoo.text.tokenizer import Tokenizer
from zoo.typing import RawTensor
from zoo.weights.files import read_index
from zoo.weights.safetensors import write_safetensors

WRONG = [
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**62, -(2**63), int(1e30), 0.5, -1.5, 1e300, -1e300, 5e-324),
    *("", "x", "é\u200d", "\0", "9" * 5000, "nan", [], [1], [1, 2], [-1], ["x"], [[]], [{}], {}, {"a": 1}, {"0": "x"}),
    *({"type": []}, {"rope_type": []}, [None], {"": {"": []}}, "y" * 100_000),
]
VISION = {"model_type": "smolvlm_vision", "image_size": 512, "patch_size": 16}
SIGLIP = {"model_type": "siglip_vision_model", "image_size": 896, "patch_size": 14}
LOOKS = {"text_config": {"model_type": "llama", "vocab_size": 130_000}, "vision_config": VISION}
QWEN_VL = {
    "text_config": {"hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4},
    "vision_config": {"depth": 2},
}
PARTS = {  # without which there is no config
    "vision-encoder-decoder": {"encoder": {"model_type": "vit"}, "decoder": {"model_type": "trocr"}},
    "blip": {"vision_config": {"image_size": 384}, "text_config": {"vocab_size": 30524}},
    "florence2": {"vision_config": {"embed_dim": [128, 256, 512, 1024]}, "text_config": {"vocab_size": 51328}},
    "idefics3": LOOKS,
    "smolvlm": LOOKS,
    "got_ocr2": {"text_config": {"vocab_size": 151_860}, "vision_config": {}},
    "glm_ocr": {"text_config": {}, "vision_config": {"out_hidden_size": 1024}},
    "paddleocr_vl": {"text_config": {}, "vision_config": {}},
    "internvl": {"text_config": {"model_type": "qwen2"}, "vision_config": {}},
    "lighton_ocr": {"text_config": {}, "vision_config": {}},
    "llava": {**LOOKS, "vision_config": {"model_type": "clip_vision_model"}},
    "mistral3": {"text_config": {}, "vision_config": {}},
    "gemma3": {"text_config": {"model_type": "gemma3_text"}, "vision_config": SIGLIP},
    "paligemma": {
        "text_config": {"model_type": "gemma", "vocab_size": 257_216, "hidden_size": 2048},
        "vision_config": SIGLIP,
    },
    "pp_doclayout_v2": {"class_thresholds": [0.5, 0.4], "class_order": [0, 1]},
    "qwen2_5_vl": QWEN_VL,
    "qwen2_vl": QWEN_VL,
    "qwen3_vl": {"text_config": {"hidden_size": 3584, "num_hidden_layers": 2}, "vision_config": {}},
}
MORE = ("rope_scaling", "rope_parameters", "id2label", "num_labels", "label2id", "segmentation_indices", "head_dim")


def _paths(node, path=()):
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _changed(good, more, step=1):
    """Copies of `good`, each with one value, of those in it and of `more`, that is wrong.

    step: of the wrong values each place gets every step-th; others than the place before.
    """
    yield from copy.deepcopy(WRONG)
    for i, path in enumerate([*_paths(good), *((name,) for name in more)]):
        for value in WRONG[i % step :: step]:
            new = copy.deepcopy(good)
            node = new
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
            yield new


def _try(read, found):
    """Nothing but a ZooError may come of it, and none that quotes a whole file."""
    message = ""
    try:
        read(found)
    except ZooError as error:
        message = str(error)
    assert len(message) < 3000


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("model_type", FAMILIES)
def test_configs(model_type, step):
    cls = config_class(model_type)
    parts = copy.deepcopy(PARTS.get(model_type, {}))
    good = json.loads(json.dumps(cls.from_dict({"model_type": model_type, **parts}).to_dict()))
    for found in _changed(good, MORE, step):
        if isinstance(found, dict):  # of the rest the reader of files takes care
            _try(lambda raw: cls.from_dict(raw).sizes(), found)


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")

    write("config.json", {"model_type": "bert"})
    return write


def test_generation_config(write, tmp_path):
    def read(found):
        write("generation_config.json", found)
        config = GenerationConfig.from_folder(tmp_path)
        config.check()
        config.new_tokens(3, 100)

    names = [field.name for field in dataclasses.fields(GenerationConfig)]
    for found in _changed({"eos_token_id": [1, 2], "stop_strings": ["a"]}, [*names, "bad_words_ids"]):
        _try(read, found)


@pytest.mark.parametrize("family", ["ViT", "Detr", "CLIP"])
def test_preprocessor_config(write, tmp_path, family):
    def read(found):
        write("preprocessor_config.json", found)
        ImageProcessor.from_folder(tmp_path)(image)

    image = np.zeros((20, 30, 3), np.uint8)
    size = {"height": 8, "width": 8}
    good = {"image_processor_type": f"{family}ImageProcessor", "size": size, "rescale_factor": 0.1, "resample": 2}
    good.update(image_mean=[0.5] * 3, image_std=[0.5] * 3, do_resize=True, crop_size=size, do_center_crop=True)
    for found in _changed(good, ["max_size", "pad_size", "do_pad", "feature_extractor_type", "default_to_square"]):
        _try(read, found)


TOKENIZER = {
    "tokenizer_config.json": (
        {"added_tokens_decoder": {"4": {"content": "[MASK]", "lstrip": True}}, "pad_token": {"content": "[PAD]"}},
        [
            *("model_max_length", "max_len", "padding_side", "truncation_side", "tokenizer_class", "do_lower_case"),
            *("strip_accents", "never_split", "mask_token", "cls_token", "extra_special_tokens", "model_input_names"),
            *("additional_special_tokens", "clean_up_tokenization_spaces", "split_special_tokens", "chat_template"),
        ],
    ),
    "special_tokens_map.json": ({"pad_token": "[PAD]", "mask_token": {"content": "[MASK]"}}, ["unk_token"]),
    "added_tokens.json": ({"new": 6}, ["", "a" * 2000]),
}


@pytest.mark.parametrize("name", TOKENIZER)
def test_files_beside_a_tokenizer(write, tmp_path, name):
    def read(found):
        write(name, found)
        tokenizer = Tokenizer.from_folder(tmp_path)
        tokenizer("a a")
        tokenizer.decode([1])

    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    for found in _changed(*TOKENIZER[name]):
        _try(read, found)


def test_index(write, tmp_path):
    def read(found):
        write("model.safetensors.index.json", found)
        read_index(tmp_path / "model.safetensors.index.json")

    for found in _changed({"metadata": {"total_size": 3}, "weight_map": {"a": "b.safetensors"}}, []):
        _try(read, found)


MODULES = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense")]
SENTENCE = {
    "modules.json": (
        [{"idx": 0, "path": path, "type": f"sentence_transformers.models.{kind}"} for kind, path in MODULES],
        [],
    ),
    "1_Pooling/config.json": (
        {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True},
        ["pooling_mode", "include_prompt", "pooling_mode_cls_token"],
    ),
    "2_Dense/config.json": (
        {"in_features": 8, "out_features": 4, "bias": False, "activation_function": "torch.nn.Tanh"},
        ["use_residual", "module_input_name"],
    ),
    "sentence_bert_config.json": ({"max_seq_length": 8}, ["do_lower_case", "query_length", "transformer_task"]),
    "config_sentence_transformers.json": ({"prompts": {"q": "a"}, "default_prompt_name": "q"}, ["model_type"]),
}


@pytest.mark.parametrize("name", SENTENCE)
def test_files_of_a_sentence_encoder(write, tmp_path, name):
    def read(found):
        write(name, found)
        read_sentence_encoder(tmp_path, 8)

    for other, (good, _) in SENTENCE.items():
        write(other, good)
    weights = {"linear.weight": RawTensor(np.zeros((4, 8), np.float32), "F32")}
    write_safetensors(tmp_path / "2_Dense" / "model.safetensors", weights)
    good, more = SENTENCE[name]
    for found in _changed(good, more):
        _try(read, found)


def test_a_folder_of_nothing_but_wrong_files_is_one_error(tmp_path):
    for name in ("config.json", "tokenizer.json", "modules.json"):
        Path(tmp_path / name).write_text("[]", encoding="utf-8")
    with pytest.raises(ZooError):
        read_sentence_encoder(tmp_path, 8)
