"""Qwen's models of images and texts, and their kin: positions in three axes, in batches, caches and graphs, and what is
refused.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import numpy as np
import pytest

import zoo.generate.continuous
import zoo.inputs.heads
from parity.checkpoints import build
from parity.specs import SPECS, config_of
from zoo.errors import ConfigError, InputError, UnsupportedError, ZooError
from zoo.generate import ContinuousBatch, GenerationConfig, PromptCache, Request, generate, stream
from zoo.inputs.mrope import mrope_positions
from zoo.registry import FAMILIES

NAMES = ("Qwen2-VL-2B-Instruct", "Qwen2.5-VL-3B-Instruct", "Qwen3-VL-2B-Instruct", "PaddleOCR-VL", "GLM-OCR")
EIGHT = GenerationConfig(max_new_tokens=8)
SHAPES = (9, 5), (3, 7), (1, 2)  # rows and columns of an image's tokens
RAW = config_of(SPECS[NAMES[0]], "tiny")


def small_model(name: str, **options: Any) -> Any:
    raw = config_of(SPECS[name], "tiny")
    text = {**raw.get("text_config", {}), "initializer_range": 0.3} if "text_config" in raw else {}
    cls = FAMILIES[raw["model_type"]].load("ForConditionalGeneration")
    raw |= {"initializer_range": 0.3, **({"text_config": text} if text else {})}
    return cls.from_config(cls.config_class.from_dict(raw), **options)


@pytest.fixture(scope="module", params=NAMES)
def model(request) -> Any:
    return small_model(request.param)


@pytest.fixture
def short_chunks(monkeypatch):  # which end within images
    for module in (zoo.inputs.heads, zoo.generate.continuous):
        monkeypatch.setattr(module, "CHUNK", 7)


def image(model: Any, shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    factor = model.config.vision_config.factor
    size = (1, shape[0] * factor, shape[1] * factor, 3)
    return np.random.default_rng(seed).standard_normal(size, np.float32) * 2


def prompt(model: Any, *items: int | tuple[int, int], seed: int = 0) -> Any:
    """A prompt of so many random words, and of images of so many rows and columns; seed: of the images alone."""
    rng, place, ids, images = np.random.default_rng(len(items)), model.config.image_token_id, [], []
    for item in items:
        if isinstance(item, int):
            ids += rng.integers(3, place, item).tolist()
        else:
            ids += [place] * (item[0] * item[1])
            images.append(image(model, item, seed + len(images)))
    return model.prompt(ids, images) if images else np.array(ids)


def every_kind(model: Any) -> list[Any]:
    return [
        prompt(model, 5, SHAPES[0], 3, SHAPES[1], 4),
        prompt(model, 11),
        prompt(model, 2, SHAPES[2]),
        prompt(model, SHAPES[1], 20),
    ]


def answers(model: Any, prompts: list[Any], **options: Any) -> list[list[int]]:
    return [found[0].ids.tolist() for found in generate(model, prompts, GenerationConfig(max_new_tokens=8, **options))]


def alone(model: Any, prompts: list[Any], **options: Any) -> list[list[int]]:
    return [answers(model, [one], **options)[0] for one in prompts]


def test_positions_are_those_of_transformers():
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    import torch

    text, vision = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 99}, {}
    text |= {"num_hidden_layers": 1, "intermediate_size": 8, "rope_scaling": {"type": "mrope", "mrope_section": [4]}}
    vision |= {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 16}
    theirs = transformers.Qwen2VLModel(transformers.Qwen2VLConfig(text_config=text, vision_config=vision))
    rng = np.random.default_rng(0)
    for _ in range(100):
        grids, types = [], []
        for _ in range(rng.integers(1, 4)):
            grids.append(tuple(rng.integers(1, 9, 2).tolist()))
            types += [0] * rng.integers(1, 9) + [1] * (grids[-1][0] * grids[-1][1])
        types = np.array(types + [0] * rng.integers(0, 9))
        thw = torch.tensor([[1, 2 * rows, 2 * columns] for rows, columns in grids])
        found, delta = theirs.get_rope_index(torch.tensor(types)[None], torch.tensor(types)[None], thw)
        ours = mrope_positions(types == 1, grids)
        np.testing.assert_array_equal(ours, found[:, 0].T)
        assert ours.max() + 1 - len(types) == int(delta)
    assert [key for key, _ in groupby(mrope_positions(np.ones(3, bool), [(1, 3)])[:, 0].tolist())] == [0]


def test_rows_of_a_batch_are_those_alone(model, short_chunks):
    prompts = every_kind(model)
    assert answers(model, prompts) == alone(model, prompts)
    assert answers(model, prompts, num_beams=3) == alone(model, prompts, num_beams=3)


def test_chunks_and_drafts_change_nothing(model, monkeypatch):
    prompts = every_kind(model)
    wanted = alone(model, prompts)
    for module in (zoo.inputs.heads, zoo.generate.continuous):
        monkeypatch.setattr(module, "CHUNK", 7)
    assert alone(model, prompts) == wanted
    assert answers(model, prompts, prompt_lookup_num_tokens=3) == wanted


def test_an_image_is_known_by_its_pixels(model):
    known = PromptCache(model)
    words: Any = prompt(model, 5, SHAPES[0], 3, SHAPES[1], 4).ids[:5]
    first = prompt(model, 5, SHAPES[0], 3, SHAPES[1], 4)
    each: Any = (
        (first, 0),
        (first, len(first) - 1),
        (prompt(model, 5, SHAPES[0], 3, SHAPES[1], 4, seed=9), 5),
        (np.append(words, [7, 8, 9]), 5),  # no image, after which positions would be others
        (first, 5),
    )
    for one, length in each:
        cache = known.begin(one, len(one) + 8)
        assert cache.length == length
        found = [token.id for token in stream(model, one, EIGHT, cache=cache)]
        known.ids += found[:-1]
        assert found == answers(model, [one])[0]


def test_rows_that_join_a_batch_are_those_alone(model, short_chunks):
    prompts = [*every_kind(model), prompt(model, 5, SHAPES[0], 3, SHAPES[1], 4, seed=3), *every_kind(model)[:2]]
    batch, requests = ContinuousBatch(model, 3), [Request(one, EIGHT) for one in prompts]
    for request in requests:
        batch.add(request)
    while batch.rows or batch.waiting:
        assert not any(step.error for step in batch.step())
    assert [request.generated_ids for request in requests] == alone(model, prompts)
    assert batch.reused >= 48


def test_calls_with_a_cache_are_a_call_without(model):
    """Of rows with and without an image, and padding."""
    place, rng, factor = model.config.image_token_id, np.random.default_rng(0), model.config.vision_config.factor
    pixels = rng.standard_normal((2, 3 * factor, 4 * factor, 3), np.float32)
    ids = rng.integers(3, place, (3, 30))
    ids[0, 4:16] = ids[2, 11:23] = place
    mask = np.ones_like(ids)
    mask[1, :9] = mask[2, :5] = 0
    whole = model(ids, mask, pixel_values=pixels)
    cache = model.new_cache(3, 30)
    first = model(ids[:, :26], mask[:, :26], pixel_values=pixels, cache=cache)
    then = [model(ids[:, i : i + 1], mask[:, : i + 1], cache=cache) for i in range(26, 30)]
    found = np.concatenate([first, *then], 1)
    np.testing.assert_allclose(found[mask > 0], whole[mask > 0], rtol=1e-3, atol=1e-4)
    ids[0, 15], ids[1, 0] = 3, place
    with pytest.raises(InputError, match="a row of input_ids has 11 places of images, expected 12 for each"):
        model(ids, pixel_values=pixels)


@pytest.mark.parametrize("device", ["onnx", "torch:cpu"])
@pytest.mark.parametrize("name", NAMES)
def test_other_devices_write_the_same(name, device, tmp_path):
    if device != "onnx":
        pytest.importorskip("torch", reason="needs torch")
    from zoo.saving import save_model

    model = small_model(name)
    save_model(model, tmp_path)
    other = type(model).from_pretrained(tmp_path, device=device)
    assert answers(other, every_kind(other)) == answers(model, every_kind(model))


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({"rope_scaling": {"type": "mrope", "mrope_section": [2, 3]}}, ConfigError, "numbers whose sum is 8"),
        ({"rope_scaling": {"type": "mrope", "mrope_section": 8}}, ConfigError, "mrope_section = 8"),
        ({"image_token_id": 500}, ConfigError, "image_token_id = 500 is out of range"),
        (
            {"vision_config": {**RAW["vision_config"], "hidden_size": 32}},
            ConfigError,
            "and the decoder has the width 64",
        ),
        ({"vision_config": {**RAW["vision_config"], "patch_size": [4, 8]}}, ConfigError, "patch_size = [4, 8]"),
        ({"vision_config": {"model_type": "siglip_vision_model"}}, UnsupportedError, "expected 'qwen2_vl_vision'"),
        ({"text_config": {"model_type": "llama"}}, UnsupportedError, "expected 'qwen2_vl_text'"),
    ],
)
def test_configs_that_are_not_implemented_are_refused(change, error, problem):
    with pytest.raises(error) as found:
        FAMILIES["qwen2_vl"].load("Config").from_dict({**RAW, **change})
    assert problem in str(found.value)


@pytest.mark.parametrize(
    ("name", "part", "change", "problem"),
    [
        (NAMES[0], "vision_config", {"rope_parameters": {"type": "linear", "factor": 2.0}}, "rope_type 'linear'"),
        (NAMES[1], "vision_config", {"window_size": 4}, "window_size = 4, expected at least 8"),
        (NAMES[2], "vision_config", {"num_position_embeddings": 35}, "expected those of a square"),
        (NAMES[2], "vision_config", {"deepstack_visual_indexes": [1, 4]}, "expected some of the 4 layers"),
        (NAMES[2], "vision_config", {"deepstack_visual_indexes": [1, 1]}, "each once"),
        (NAMES[2], "text_config", {"rope_scaling": {"mrope_interleaved": False, "mrope_section": [4, 2, 2]}}, "False"),
        (NAMES[2], "text_config", {"rope_scaling": {"mrope_section": [4, 4]}}, "expected three numbers"),
        (NAMES[3], "vision_config", {"hidden_size": 24}, "positions in a plane need a multiple of 4"),
        (NAMES[3], "vision_config", {"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, "'linear'"),
        (NAMES[3], "vision_config", {"spatial_merge_size": 0}, "spatial_merge_size = 0"),
        (NAMES[4], "vision_config", {"rms_norm_eps": 0.0}, "rms_norm_eps = 0.0"),
        (NAMES[4], "text_config", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "numbers whose sum is 4"),
    ],
)
def test_parts_that_are_not_implemented_are_refused(name, part, change, problem):
    raw = config_of(SPECS[name], "tiny")
    with pytest.raises(ZooError) as found:
        FAMILIES[raw["model_type"]].load("Config").from_dict({**raw, part: {**raw[part], **change}})
    assert problem in str(found.value)


@pytest.mark.parametrize("kind", [{}, {"rope_type": "axial"}, {"rope_type": "default"}, {"type": "default"}])
def test_positions_in_a_plane_are_the_default_of_older_files(kind):
    vision = {**RAW["vision_config"], "rope_parameters": {"rope_theta": 500.0, **kind}}
    config = FAMILIES["qwen2_vl"].load("Config").from_dict({**RAW, "vision_config": vision})
    size = config.vision_config.head_size // 2
    np.testing.assert_allclose(config.vision_config.frequencies, 500.0 ** (-np.arange(0, size, 2) / size), rtol=1e-6)


def test_what_the_decoder_adds_is_no_field_of_files():
    raw = config_of(SPECS[NAMES[2]], "tiny")
    config = FAMILIES["qwen3_vl"].load("Config").from_dict(raw)
    assert (config.text_config.deepstack_layers, config.text_config.embeds_width) == (2, 192)
    written = config.to_dict()
    assert "deepstack_layers" not in written["text_config"]
    assert type(config).from_dict(written) == config


def test_layers_with_windows_are_refused():
    raw = config_of(SPECS["PaddleOCR-VL-bare"], "tiny")
    text = {**raw["text_config"], "layer_types": ["sliding_attention"] * 3, "sliding_window": 4}
    with pytest.raises(UnsupportedError, match="layer_types"):
        FAMILIES["paddleocr_vl"].load("Config").from_dict({**raw, "text_config": text})


@pytest.mark.parametrize("name", NAMES)
def test_a_theta_of_the_encoder_counts(name):
    raw = config_of(SPECS[name], "tiny")
    kind = FAMILIES[raw["model_type"]].load("Config")
    config = kind.from_dict({**raw, "vision_config": {**raw["vision_config"], "rope_theta": 9.0}}).vision_config
    exponents = np.arange(0, config.head_size // 2, 2) / (config.head_size // 2)
    np.testing.assert_allclose(config.frequencies, 9.0**-exponents, rtol=1e-6)


def test_a_decoder_of_paddleocr_vl_is_tied_unless_its_own_part_says_not():
    """transformers looks for the field in its part alone, whatever the whole says."""
    for name, own, whole, tied in (
        ("PaddleOCR-VL", {}, False, True),
        ("PaddleOCR-VL-bare", {}, False, True),
        ("PaddleOCR-VL-bare", {"tie_word_embeddings": False}, False, False),
        ("PaddleOCR-VL-bare", {"tie_word_embeddings": False}, True, True),
    ):
        raw = {**config_of(SPECS[name], "tiny"), "tie_word_embeddings": whole}
        raw |= {"text_config": {**raw["text_config"], **own}} if own else {}
        assert FAMILIES["paddleocr_vl"].load("Config").from_dict(raw).is_tied is tied


@pytest.mark.parametrize("name", NAMES)
def test_info_of_images_of_any_size(name, tmp_path, capsys):
    """They have no fixed number of tokens."""
    from zoo.apps.cli import main

    assert main(["info", str(build(name, tmp_path / "model")), "--json"]) == 0
    assert "image_tokens" not in json.loads(capsys.readouterr().out)["memory"]
