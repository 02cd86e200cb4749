"""BEiT against transformers, on checkpoints that transformers itself wrote."""

from __future__ import annotations

import numpy as np
import pytest
from vision_checkpoints import (
    DEVICES,
    as_in_memory,
    assert_close,
    edit_config,
    pixels,
    reference,
    run,
    torch,
)

import zoo
from zoo.errors import ConfigError
from zoo.loading import load_model
from zoo.models.beit import BeitConfig
from zoo.models.beit.model import relative_index

SEGMENTATION = {"out_indices": [1, 2, 3, 4], "use_relative_position_bias": True, "auxiliary_channels": 16}
# Batch norms and 3x3 convolutions on random weights let values grow: rounding is felt a little more.
TOLERANCE = {"BeitForSemanticSegmentation": 5e-5}

CASES = {
    "fine-tuned": ("BeitForImageClassification", {"use_relative_position_bias": True}),
    "pretrained": (
        "BeitForMaskedImageModeling",
        {"use_shared_relative_position_bias": True, "use_mask_token": True, "vocab_size": 40},
    ),
    "document": ("BeitForImageClassification", {"use_absolute_position_embeddings": True}),
    "class token": ("BeitForImageClassification", {"use_relative_position_bias": True, "use_mean_pooling": False}),
    "no layer scale": ("BeitForImageClassification", {"layer_scale_init_value": 0.0}),
    "all positions at once": (
        "BeitModel",
        {
            "use_relative_position_bias": True,
            "use_shared_relative_position_bias": True,
            "use_absolute_position_embeddings": True,
        },
    ),
    "body": ("BeitModel", {"use_relative_position_bias": True}),
    "body with class token": ("BeitModel", {"use_mean_pooling": False}),
    "one channel": ("BeitModel", {"use_relative_position_bias": True, "num_channels": 1}),
    "no square": ("BeitModel", {"use_relative_position_bias": True, "image_size": [24, 40]}),
    "segmentation": ("BeitForSemanticSegmentation", SEGMENTATION),
    "segmentation from the end": ("BeitForSemanticSegmentation", {**SEGMENTATION, "out_indices": [0, 1, -2, -1]}),
    "segmentation with other scales": (
        "BeitForSemanticSegmentation",
        {**SEGMENTATION, "pool_scales": [1, 4], "use_auxiliary_head": False},
    ),
    "segmentation with a long auxiliary head": (
        "BeitForSemanticSegmentation",
        {**SEGMENTATION, "auxiliary_num_convs": 2, "auxiliary_concat_input": True},
    ),
    "backbone": ("BeitBackbone", {"use_relative_position_bias": True, "out_features": ["stem", "stage2", "stage4"]}),
    "backbone's last": ("BeitBackbone", {"use_shared_relative_position_bias": True}),
    "backbone of tokens": ("BeitBackbone", {"out_indices": [1, 3], "reshape_hidden_states": False}),
    "backbone with class token": ("BeitBackbone", {"out_indices": [2, -1], "use_mean_pooling": False}),
    "backbone with pyramid": ("BeitBackbone", {**SEGMENTATION, "add_fpn": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_equals_transformers_on_torch(case, tmp_path, rng):
    name, config = CASES[case]
    model = reference(name, tmp_path, **config)
    ours = load_model(tmp_path, device="torch:cpu", strict=True)
    assert type(ours).__name__ == name
    x = pixels(rng, *ours.config.image, channels=ours.config.num_channels)
    assert_close(ours(x), run(model, x), TOLERANCE.get(name, 2e-5))
    if config.get("use_mask_token"):
        hidden = rng.random((2, 36)) < 0.4
        assert_close(ours(x, bool_masked_pos=hidden), run(model, x, hidden))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [(36, 20), (16, 16), (27, 41), (48, 24)])
@pytest.mark.parametrize(
    "case", ["fine-tuned", "pretrained", "document", "all positions at once", "segmentation", "backbone"]
)
def test_other_sizes(case, size, device, tmp_path, rng):
    """27 x 41 is not a multiple of the patch: what is left over on the right and below is not looked at."""
    name, config = CASES[case]
    model = reference(name, tmp_path, **config)
    ours = load_model(tmp_path, device=device)
    x = pixels(rng, *size)
    for _ in range(2):  # the second time with the bias that was kept
        assert_close(ours(x), run(model, x), TOLERANCE.get(name, 2e-5))


@pytest.mark.parametrize("grid", [(1, 1), (2, 2), (3, 5), (6, 1)])
def test_relative_index(grid):
    from transformers.models.beit.modeling_beit import BeitRelativePositionBias

    wanted = BeitRelativePositionBias.generate_relative_position_index(grid).numpy()
    np.testing.assert_array_equal(relative_index(grid, np.zeros(1)), wanted)


def test_a_bias_too_large_to_keep_is_computed_again(tmp_path, rng, monkeypatch):
    model = reference("BeitModel", tmp_path, use_relative_position_bias=True)
    monkeypatch.setattr("zoo.models.beit.model.CACHED_BIAS", 10)
    ours, x = load_model(tmp_path), pixels(rng)
    assert_close(ours(x), run(model, x))
    assert all(layer.bias._gathered._latest is None for layer in ours.layers)


@pytest.mark.parametrize("case", CASES)
def test_names_of_transformers_memory(case, tmp_path, rng):
    name, config = CASES[case]
    model = reference(name, tmp_path, **config)
    as_in_memory(model, tmp_path)
    ours = load_model(tmp_path, strict=True)
    x = pixels(rng, *ours.config.image, channels=ours.config.num_channels)
    assert_close(ours(x), run(model, x), TOLERANCE.get(name, 2e-5))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", ["fine-tuned", "pretrained"])
def test_index_buffers_of_old_files(case, tmp_path, rng):
    from safetensors.numpy import load_file, save_file

    name, config = CASES[case]
    model = reference(name, tmp_path, **config)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    index = np.zeros((37, 37), np.int64)
    old = {k.replace("_bias_table", "_index"): index.copy() for k in tensors if k.endswith("bias_table")}
    assert old
    save_file({**tensors, **old}, path, {"format": "pt"})
    ours, x = load_model(tmp_path, strict=True), pixels(rng)
    assert set(ours.report.ignored) == set(old)
    assert_close(ours(x), run(model, x))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", ["fine-tuned", "pretrained", "document", "class token", "segmentation"])
def test_the_body_of_a_head(case, tmp_path, rng):
    """A checkpoint without a norm for the mean gives no pooled output: transformers would make a norm up."""
    name, config = CASES[case]
    model = reference(name, tmp_path, **config)
    ours, x = load_model(tmp_path, head="Model"), pixels(rng)
    found, wanted = ours(x), run(model.base_model, x)
    assert (found.pooler_output is None) == (case in ("pretrained", "segmentation"))
    assert_close(found, wanted)


@pytest.mark.filterwarnings("error")
def test_the_backbone_of_a_classifier(tmp_path, rng):
    reference("BeitForImageClassification", tmp_path, use_relative_position_bias=True)
    ours = load_model(tmp_path, head="Backbone")
    whole, x = load_model(tmp_path), pixels(rng)
    np.testing.assert_allclose(
        ours(x).feature_maps[0].reshape(2, 36, -1), whole.base_model(x).last_hidden_state[:, 1:], rtol=1e-5, atol=1e-6
    )


def test_an_auxiliary_head_that_is_not_in_the_file(tmp_path, rng):
    from safetensors.numpy import load_file, save_file

    name, config = CASES["segmentation"]
    model = reference(name, tmp_path, **config)
    path = tmp_path / "model.safetensors"
    kept = {k: v for k, v in load_file(path).items() if not k.startswith("auxiliary_head")}
    save_file(kept, path, {"format": "pt"})
    ours, x = load_model(tmp_path, strict=True), pixels(rng)
    assert ours.auxiliary_head is None
    assert_close(ours(x), run(model, x), TOLERANCE[name])


def test_layers_that_no_one_hears_are_not_computed(tmp_path, rng):
    name, config = CASES["segmentation"]
    reference(name, tmp_path, **config)
    ours, x = load_model(tmp_path), pixels(rng)
    wanted = ours(x)
    for layer in ours.base_model.layers[3:]:
        layer.down.weight = layer.down.weight * np.float32(np.nan)
    np.testing.assert_array_equal(ours(x), wanted)


def test_segmentation_indices_of_old_configs(tmp_path, rng):
    name, config = CASES["segmentation"]
    model = reference(name, tmp_path, **config)
    edit_config(tmp_path, out_indices=None, out_features=None, segmentation_indices=[1, 2, 3, 4])
    ours, x = load_model(tmp_path), pixels(rng)
    assert_close(ours(x), run(model, x), TOLERANCE[name])


def test_a_key_bias_is_not_what_beit_has(tmp_path):
    from safetensors.numpy import load_file, save_file

    reference("BeitModel", tmp_path)
    path, name = tmp_path / "model.safetensors", "encoder.layer.1.attention.attention.key.bias"
    save_file({**load_file(path), name: np.ones(32, np.float32)}, path, {"format": "pt"})
    with pytest.raises(zoo.ZooError, match=f"does not know: {name}"):
        load_model(tmp_path, strict=True)


def test_moving_a_model_moves_what_was_derived(tmp_path, rng):
    from zoo.nn import map_leaves

    name, config = CASES["segmentation"]
    model = reference(name, tmp_path, **config)
    ours, x = load_model(tmp_path), pixels(rng)
    ours(x)  # so that there is a bias to move
    moved = map_leaves(lambda a: torch.from_numpy(np.array(a)), ours)
    assert_close(moved(x), run(model, x), TOLERANCE[name])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("out_indices", [1, 2, 3], "do not agree"),
        ("out_indices", [2, 1, 3, 4], "must rise"),
        ("out_features", ["stage1", "stage1", "stage3", "stage4"], "must rise"),
        ("out_indices", [1, 2, 3, 5], r"not all in -5 ... 4"),
        (
            "out_features",
            ["stage1", "stage2", "stage3", "stage9"],
            "'stage9', which is not one of stem, stage1 ... stage4",
        ),
        ("out_features", ["stem", "stage2", "stage3", "stage4"], "do not agree"),
        ("pool_scales", [0, 1], "not all sizes"),
        ("auxiliary_channels", 0, "out of range"),
        ("use_mean_pooling", 1, "expected bool"),
        ("patch_size", 25, "larger than image_size"),
    ],
)
def test_configs_that_cannot_be(field, value, message, tmp_path):
    reference("BeitForSemanticSegmentation", tmp_path, **SEGMENTATION)
    edit_config(tmp_path, **{field: value})
    with pytest.raises(zoo.ZooError, match=message):
        load_model(tmp_path)


def test_a_segmentation_head_needs_four_states(tmp_path):
    reference("BeitForSemanticSegmentation", tmp_path, **SEGMENTATION)
    edit_config(tmp_path, out_indices=[1, 2, 3], out_features=None)
    with pytest.raises(zoo.ZooError, match="reads four hidden states"):
        load_model(tmp_path)


def test_a_pyramid_of_tokens_cannot_be(tmp_path):
    reference("BeitBackbone", tmp_path, **{**SEGMENTATION, "add_fpn": True})
    edit_config(tmp_path, reshape_hidden_states=False)
    with pytest.raises(zoo.ZooError, match="a pyramid is made of images"):
        load_model(tmp_path)


def test_images_that_do_not_fit(tmp_path, rng):
    reference("BeitForSemanticSegmentation", tmp_path, **SEGMENTATION)
    ours = load_model(tmp_path)
    with pytest.raises(zoo.ZooError, match="2 x 24, smaller than a patch"):
        ours(pixels(rng, 2, 24))
    with pytest.raises(zoo.ZooError, match="1 x 6 patches is too small to be halved"):
        ours(pixels(rng, 4, 24))
    with pytest.raises(zoo.ZooError, match="channels come last"):
        ours(pixels(rng).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("count", [-1, 10**9])
def test_a_number_of_auxiliary_convolutions_that_cannot_be(count):
    with pytest.raises(ConfigError, match="auxiliary_num_convs"):
        BeitConfig.from_dict({"auxiliary_num_convs": count})
