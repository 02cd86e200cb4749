"""An Idefics3 in two GGUF files, as llama.cpp has it: the texts and the encoder of images (mmproj)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_gguf import add, finish, gguf, put, tensors_of, write_llama
from safetensors.numpy import save_file

import zoo
from tests.image_text_checkpoint import TEMPLATE, write_image_text_checkpoint
from zoo.errors import CheckpointError, ConfigError, MissingWeightError
from zoo.loading import load_model
from zoo.weights.gguf.images import mmproj_of

VISION = ("model.vision_model.", "model.connector.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_image_text_checkpoint(tmp_path_factory.mktemp("idefics3") / "model")


def write_texts(folder: Path, path: Path) -> Path:
    """The decoder of a checkpoint as a GGUF file of a llama."""
    config, alone = json.loads((folder / "config.json").read_text()), path.parent / "texts"
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir(parents=True)
    (alone / "config.json").write_text(json.dumps({"rope_theta": 100000.0, **config["text_config"]}))
    (alone / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    tensors = {n.replace("model.text_model.", "model."): x for n, x in tensors_of(folder).items()}
    save_file({n: x for n, x in tensors.items() if not n.startswith(VISION)}, alone / "model.safetensors")
    end = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
    given = {"tokenizer__chat_template": TEMPLATE, "tokenizer__ggml__eos_token_id": end}
    given |= {"tokenizer__huggingface__json": (folder / "tokenizer.json").read_text()}
    written = write_llama(alone, path, tokens="bytes", tokenizer__ggml__add_bos_token=False, **given)
    shutil.rmtree(alone)
    return written


def write_images(folder: Path, path: Path, kind: str = "F32", left_out: str = "none", **more: Any) -> Path:
    """The encoder and the connector as an mmproj, with the names that the package's own table has for them."""
    config = json.loads((folder / "config.json").read_text())
    vision, processor = config["vision_config"], json.loads((folder / "preprocessor_config.json").read_text())
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_clip_has_vision_encoder(True)
    writer.add_clip_projector_type("idefics3")
    writer.add_vision_projection_dim(config["text_config"]["hidden_size"])
    writer.add_vision_image_size(vision["image_size"])
    writer.add_vision_patch_size(vision["patch_size"])
    writer.add_vision_embedding_length(vision["hidden_size"])
    writer.add_vision_feed_forward_length(vision["intermediate_size"])
    writer.add_vision_block_count(vision["num_hidden_layers"])
    writer.add_vision_head_count(vision["num_attention_heads"])
    writer.add_vision_image_mean(processor["image_mean"])
    writer.add_vision_image_std(processor["image_std"])
    writer.add_vision_attention_layernorm_eps(vision["layer_norm_eps"])
    writer.add_vision_projector_scale_factor(config["scale_factor"])
    writer.add_vision_use_gelu(True)
    writer.add_vision_preproc_image_size(processor["size"]["longest_edge"])
    add(writer, more)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, vision["num_hidden_layers"])
    for name, x in tensors_of(folder).items():
        if name.startswith(VISION) and left_out not in name:
            found = str(names.get_name(name, try_suffixes=(".weight", ".bias")))
            put(writer, found, x, "F32" if x.ndim != 2 or "position" in name else kind)
    return finish(writer, path)


@pytest.fixture(scope="module")
def pair(folder, tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("gguf")
    write_images(folder, place / "mmproj-docling-f16.gguf")
    return write_texts(folder, place / "docling-F32.gguf")


def test_both_files_are_the_checkpoint(folder, pair, rng):
    ours, theirs = load_model(pair), load_model(folder)
    given = theirs.example(rows=2)
    np.testing.assert_allclose(ours(**given), theirs(**given), rtol=1e-5, atol=1e-6)
    assert not ours.report.unused
    assert not ours.report.new
    image = rng.integers(0, 256, (40, 70, 3), np.uint8)
    read: Any = zoo.load(pair)
    wanted: Any = zoo.load(folder)
    assert read.name == "image-text-to-text"
    assert read(image, "What?", max_new_tokens=10) == wanted(image, "What?", max_new_tokens=10)
    assert zoo.load(pair, device="onnx")(image, "What?", max_new_tokens=10) == wanted(image, "What?", max_new_tokens=10)


def test_blocks_of_an_encoder_are_read(folder, pair, tmp_path, rng):
    shutil.copy(pair, tmp_path)
    write_images(folder, tmp_path / "mmproj-docling-Q8_0.gguf", "Q8_0")
    packed, plain = load_model(tmp_path / pair.name), load_model(pair)
    given = plain.example(rows=1)
    difference = np.abs(packed(**given) - plain(**given)).max()
    assert 1e-6 < difference < 0.3 * np.abs(plain(**given)).max()


def test_saving_writes_one_checkpoint(pair, tmp_path, rng):
    read: Any = zoo.load(pair)
    zoo.save(read, tmp_path / "saved")
    again: Any = zoo.load(tmp_path / "saved")
    image = rng.integers(0, 256, (40, 70, 3), np.uint8)
    assert again(image, "What?", max_new_tokens=10) == read(image, "What?", max_new_tokens=10)


def test_an_mmproj_belongs_to_the_file_of_its_name(tmp_path):
    for name in ("SmolVLM-256M.gguf", "other-Q8_0.gguf", "mmproj-SmolVLM-256M-f16.gguf", "mmproj-SmolVLM-500M.gguf"):
        (tmp_path / name).touch()
    assert mmproj_of(tmp_path, "SmolVLM-256M.gguf") == "mmproj-SmolVLM-256M-f16.gguf"
    assert mmproj_of(tmp_path, "other-Q8_0.gguf") is None
    assert mmproj_of(tmp_path, "mmproj-SmolVLM-500M.gguf") is None
    (tmp_path / "SmolVLM-256M-Q4_K_M.gguf").touch()
    assert mmproj_of(tmp_path, "SmolVLM-256M-Q4_K_M.gguf") == "mmproj-SmolVLM-256M-f16.gguf"
    (tmp_path / "mmproj-SmolVLM-256M.gguf").touch()
    assert mmproj_of(tmp_path, "SmolVLM-256M.gguf") == "mmproj-SmolVLM-256M.gguf"


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no size": ({"clip__vision__image_size": None}, ConfigError, "no 'clip.vision.image_size'"),
    "a wrong factor": ({"clip__vision__projector__scale_factor": 3}, ConfigError, "scale_factor = 3 does not divide"),
    "a tensor is missing": ({"left_out": "modality_projection"}, MissingWeightError, "no tensor 'model.connector"),
}
OF_OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "another projector": ({"clip__projector_type": "pixtral"}, "'pixtral' is not implemented, only"),
    "another decoder": ({"clip__projector_type": "gemma3"}, "of gemma3 beside a llama is not implemented"),
    "no projector": ({"clip__projector_type": None}, "projector_type = ''"),
    "another activation": ({"clip__use_gelu": None, "clip__use_silu": True}, "use_gelu = False"),
    "a key that may change it": ({"clip__vision__window_size": 8}, "clip.vision.window_size"),
}


@pytest.mark.parametrize("case", OF_OTHERS)
def test_an_mmproj_of_another_model_is_left_out(folder, pair, tmp_path, case):
    more, problem = OF_OTHERS[case]
    shutil.copy(pair, tmp_path)
    write_images(folder, tmp_path / "mmproj-docling-F32.gguf", **more)
    with pytest.warns(UserWarning, match=f"{problem}.*read without it, as a model of texts"):
        assert load_model(tmp_path / pair.name).architecture == "LlamaForCausalLM"


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(folder, pair, tmp_path, case):
    more, error, problem = WRONG[case]
    shutil.copy(pair, tmp_path)
    path = write_images(folder, tmp_path / "mmproj-docling-F32.gguf", **more)
    with pytest.raises(error, match=problem):
        load_model(tmp_path / pair.name)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="mmproj-docling"):
        load_model(tmp_path / pair.name)


def test_words_without_a_place_for_images_are_refused(folder, tmp_path):
    text = json.loads((folder / "tokenizer.json").read_text())
    renamed = tmp_path / "renamed"
    shutil.copytree(folder, renamed)
    for one in text["added_tokens"]:
        one["content"] = one["content"].replace("<image>", "<picture>")
    (renamed / "tokenizer.json").write_text(json.dumps(text))
    write_images(folder, tmp_path / "mmproj-m.gguf")
    with pytest.raises(ConfigError, match="have no <image>, which stands for an image"):
        load_model(write_texts(renamed, tmp_path / "m.gguf"))
