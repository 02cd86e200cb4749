"""ViT and DeiT against transformers, on checkpoints that transformers itself wrote."""

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
    rename,
    run,
)

import zoo
from zoo.loading import load_model
from zoo.models.vit import ViTConfig, ViTModel

CLASSES = [
    *(family + h for family in ("ViT", "DeiT") for h in ("Model", "ForImageClassification", "ForMaskedImageModeling")),
    "DeiTForImageClassificationWithTeacher",
]
STRIDE = {"encoder_stride": 4}  # of a decoder that gives an image of the size it was given


def masked(rng, patches=36, batch=2):
    return rng.random((batch, patches)) < 0.4


@pytest.mark.parametrize("name", CLASSES)
def test_equals_transformers_on_torch(name, tmp_path, rng):
    model = reference(name, tmp_path, **STRIDE)
    ours = load_model(tmp_path, device="torch:cpu", strict=True)
    assert type(ours).__name__ == name
    x = pixels(rng)
    assert_close(ours(x), run(model, x))
    if name.endswith("MaskedImageModeling"):
        hidden = masked(rng)
        assert_close(ours(x, bool_masked_pos=hidden), run(model, x, hidden))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [(36, 20), (24, 24), (8, 12), (27, 41), (4, 4)])
@pytest.mark.parametrize("name", ["ViTModel", "DeiTForImageClassificationWithTeacher"])
def test_other_sizes(name, size, device, tmp_path, rng):
    """27 x 41 is not a multiple of the patch: what is left over on the right and below is not looked at."""
    model = reference(name, tmp_path)
    ours = load_model(tmp_path, device=device)
    x = pixels(rng, *size)
    for _ in range(2):  # the second time with the positions that were kept
        assert_close(ours(x, interpolate_pos_encoding=True), run(model, x, interpolate_pos_encoding=True))


@pytest.mark.parametrize("name", ["ViTForMaskedImageModeling", "DeiTForMaskedImageModeling"])
def test_reconstruction_of_another_size(name, tmp_path, rng):
    model = reference(name, tmp_path, **STRIDE)
    ours, x = load_model(tmp_path), pixels(rng, 32, 32)
    assert_close(ours(x, interpolate_pos_encoding=True), run(model, x, interpolate_pos_encoding=True))
    # where transformers expects a square
    assert ours(pixels(rng, 16, 40), interpolate_pos_encoding=True).shape == (2, 16, 40, 3)


CONFIGS = {
    "pairs of sizes": {"image_size": [24, 40], "patch_size": [6, 4]},
    "one channel": {"num_channels": 1},
    "another pooler": {"pooler_output_size": 20, "pooler_act": "relu"},
    "another epsilon": {"layer_norm_eps": 1e-3},
    "one head": {"num_attention_heads": 1},
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_configs(kind, tmp_path, rng):
    model = reference("ViTModel", tmp_path, **CONFIGS[kind])
    ours = load_model(tmp_path, strict=True)
    x = pixels(rng, *ours.config.image, channels=ours.config.num_channels)
    assert_close(ours(x), run(model, x))


@pytest.mark.parametrize("name", CLASSES)
def test_names_of_transformers_memory(name, tmp_path, rng):
    model = reference(name, tmp_path)
    as_in_memory(model, tmp_path)
    ours, x = load_model(tmp_path, strict=True), pixels(rng)
    assert any("q_proj" in legacy for legacy in ours.report.renamed.values())
    assert_close(ours(x), run(model, x))


@pytest.mark.filterwarnings("error")
def test_the_body_of_a_classifier(tmp_path, rng):
    for name in ("ViTForImageClassification", "ViTForMaskedImageModeling", "DeiTForImageClassificationWithTeacher"):
        model = reference(name, tmp_path / name)
        ours, x = load_model(tmp_path / name, head="Model"), pixels(rng)
        wanted = run(model.base_model, x)
        assert ours(x).pooler_output is None
        assert_close(ours(x), wanted)


def test_a_body_without_prefix_or_pooler_under_a_head(tmp_path, rng):
    """As DINO's checkpoints come, with a classifier put beside them."""
    model = reference("ViTForImageClassification", tmp_path)
    rename(tmp_path, lambda name: name.removeprefix("vit."))
    x = pixels(rng)
    assert_close(load_model(tmp_path, strict=True)(x), run(model, x))


@pytest.mark.filterwarnings("error")
def test_a_pooler_that_no_head_uses(tmp_path, rng):
    from safetensors.numpy import load_file, save_file

    model = reference("ViTForImageClassification", tmp_path)
    path = tmp_path / "model.safetensors"
    pooler = {
        "vit.pooler.dense.weight": np.zeros((32, 32), np.float32),
        "vit.pooler.dense.bias": np.zeros(32, np.float32),
    }
    save_file({**load_file(path), **pooler}, path, {"format": "pt"})
    ours, x = load_model(tmp_path, strict=True), pixels(rng)
    assert set(ours.report.ignored) == set(pooler)
    assert_close(ours(x), run(model, x))


def test_a_head_that_the_checkpoint_has_not(tmp_path):
    reference("DeiTForImageClassificationWithTeacher", tmp_path)
    with pytest.raises(zoo.ZooError, match=r"no tensor 'classifier.weight' .*; did you mean 'cls_classifier.weight'"):
        load_model(tmp_path, head="ForImageClassification")


def test_images_that_do_not_fit(rng):
    model = ViTModel.from_config(ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=32))
    with pytest.raises(zoo.ZooError, match="32 x 48, the checkpoint's images 32 x 32; interpolate_pos_encoding=True"):
        model(pixels(rng, 32, 48))
    with pytest.raises(zoo.ZooError, match="8 x 48, smaller than a patch"):
        model(pixels(rng, 8, 48), interpolate_pos_encoding=True)
    with pytest.raises(zoo.ZooError, match="channels come last"):
        model(pixels(rng, 32, 32).transpose(0, 3, 1, 2))
    with pytest.raises(zoo.ZooError, match=r"bool_masked_pos has shape \(1, 3\), expected \(2, 4\)"):
        model(pixels(rng, 32, 32), bool_masked_pos=np.ones((1, 3), bool))


def test_a_mask_needs_a_mask_token(tmp_path, rng):
    reference("ViTModel", tmp_path)
    with pytest.raises(zoo.ZooError, match="this one has none"):
        load_model(tmp_path)(pixels(rng), bool_masked_pos=masked(rng))


def test_two_grids_on_two_threads(rng):
    """The positions that are kept for the next image are never those of another thread's."""
    from concurrent.futures import ThreadPoolExecutor

    model = ViTModel.from_config(ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=32))
    inputs = [pixels(rng, 32, 48, 1), pixels(rng, 64, 32, 1)]
    wanted = [model(x, interpolate_pos_encoding=True).last_hidden_state for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: model(inputs[i % 2], interpolate_pos_encoding=True)[0], range(60)))
    for i, x in enumerate(found):
        np.testing.assert_allclose(x, wanted[i % 2], atol=1e-5)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("image_size", [1, 2, 3], "neither a size in pixels nor a pair"),
        ("patch_size", 0, "neither a size in pixels nor a pair"),
        ("patch_size", ["4", "4"], r"patch_size = \['4', '4'\] has type list, expected int or list\[int\]"),
        ("patch_size", 32, "larger than image_size"),
        ("hidden_act", "gelou", "activation 'gelou' is not implemented; did you mean"),
        ("num_attention_heads", 5, "does not divide"),
        ("head_dim", 64, "head_dim = 64 is not implemented"),
        ("qkv_bias", "yes", "expected bool"),
        ("encoder_stride", 0, "encoder_stride = 0 is out of range"),
    ],
)
def test_configs_that_cannot_be(field, value, message, tmp_path):
    reference("ViTModel", tmp_path)
    edit_config(tmp_path, **{field: value})
    with pytest.raises(zoo.ZooError, match=message):
        load_model(tmp_path)
