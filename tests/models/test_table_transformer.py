"""Table Transformer against transformers, on checkpoints that transformers itself wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from table_checkpoints import (
    BOTTLENECK,
    DEVICES,
    RESNET18,
    as_timm,
    assert_close,
    padded,
    reference,
    run,
    torch,
)
from vision_checkpoints import as_in_memory, edit_config, rename

import zoo
from zoo import loading
from zoo.models.table_transformer import TableTransformerConfig, TableTransformerModel

load_model: Any = loading.load_model
DATA = Path(__file__).parents[1] / "data"
CASES = {
    "basic": {},
    "bottleneck": {"backbone": BOTTLENECK},
    "bottleneck that shrinks first": {"backbone": {**BOTTLENECK, "downsample_in_bottleneck": True}},
    "first stage shrinks": {"backbone": {**RESNET18, "downsample_in_first_stage": True, "hidden_act": "gelu"}},
    "learned positions": {"position_embedding_type": "learned"},
    "for training": {"auxiliary_loss": True, "activation_function": "gelu"},
    "body": {"name": "TableTransformerModel"},
    "body for training": {"name": "TableTransformerModel", "auxiliary_loss": True},
}
# Those that no checkpoint of the parity report has, which compares the others on NumPy.
UNREPORTED = ("bottleneck that shrinks first", "first stage shrinks", "for training", "body for training")


@pytest.mark.parametrize(
    ("case", "device"), [*((case, "torch:cpu") for case in CASES), *((case, "cpu") for case in UNREPORTED)]
)
def test_equals_transformers(case, device, tmp_path, rng):
    model = reference(tmp_path, **CASES[case])
    ours = load_model(tmp_path, device=device, strict=True)
    assert type(ours) is getattr(zoo.models.table_transformer, type(model).__name__)
    x, mask = padded(rng, (70, 130), (100, 64), (33, 33))
    assert_close(ours(x, mask), run(model, x, mask))
    assert_close(ours(x), run(model, x))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [(1, 1), (32, 33), (31, 65), (97, 2), (160, 128)])
@pytest.mark.parametrize("kind", ["sine", "learned"])
def test_sizes(kind, size, device, tmp_path, rng):
    """An image of any size, alone, with a mask that says nothing and without one: the same."""
    model = reference(tmp_path, position_embedding_type=kind)
    ours = load_model(tmp_path, device=device)
    x, mask = padded(rng, size)
    found = ours(x)
    assert_close(found, run(model, x))
    for other in (ours(x, mask), ours(x, mask.astype(np.int64)), ours(x)):
        np.testing.assert_allclose(other.logits, found.logits, rtol=1e-5, atol=1e-6)


def test_mask_of_a_whole_image_costs_no_positions(tmp_path, rng, monkeypatch):
    reference(tmp_path)
    ours = load_model(tmp_path)
    x, mask = padded(rng, (64, 96), (63, 95))  # the mask has a gap, which none of the features sees
    wanted = ours(x).logits
    monkeypatch.delattr(type(ours.base_model.positions), "table")
    np.testing.assert_array_equal(ours(x, mask).logits, wanted)


@pytest.mark.parametrize("case", ["basic", "body"])
def test_names_of_transformers_memory(case, tmp_path, rng):
    model = reference(tmp_path, **CASES[case])
    as_in_memory(model, tmp_path)
    x, mask = padded(rng, (70, 130), (100, 64))
    assert_close(load_model(tmp_path, strict=True)(x, mask), run(model, x, mask))


@pytest.mark.filterwarnings("error")
def test_the_body_of_a_head(tmp_path, rng):
    model = reference(tmp_path)
    ours = load_model(tmp_path, head="Model")
    assert type(ours) is TableTransformerModel
    x, mask = padded(rng, (70, 130), (100, 64))
    assert_close(ours(x, mask), run(model.model, x, mask))


HUB = {
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "num_queries": 11,
    "id2label": {"0": "table", "1": "table rotated"},
}


@pytest.mark.parametrize(
    ("fields", "kind", "depths"),
    [
        ({"backbone": "resnet18", "dilation": False, "use_pretrained_backbone": True}, "basic", [2, 2, 2, 2]),
        ({"backbone": "resnet34.a1_in1k"}, "basic", [3, 4, 6, 3]),
        ({}, "bottleneck", [3, 4, 6, 3]),
        (
            {"backbone_config": {"model_type": "timm_backbone", "backbone": "resnet18", "out_indices": [1, 2, 3, 4]}},
            "basic",
            [2, 2, 2, 2],
        ),
        (
            {
                "backbone": None,
                "dilation": None,
                "use_timm_backbone": False,
                "use_pretrained_backbone": None,
                "backbone_config": {"model_type": "resnet", "layer_type": "basic", "hidden_sizes": [64, 128, 256, 512]},
            },
            "basic",
            [3, 4, 6, 3],
        ),
        ({"use_timm_backbone": False}, "bottleneck", [3, 4, 6, 3]),
    ],
)
def test_backbones_that_configs_name(fields, kind, depths):
    resnet = TableTransformerConfig.from_dict({**HUB, **fields}).resnet
    assert resnet.layer_type == kind
    assert list(resnet.depths) == depths
    assert list(resnet.hidden_sizes) == [w * (4 if kind == "bottleneck" else 1) for w in (64, 128, 256, 512)]


@pytest.mark.parametrize(
    ("name", "queries", "labels"), [("detection", 15, ["table", "table rotated"]), ("structure-recognition", 125, None)]
)
def test_configs_of_the_hub(name, queries, labels):
    raw = json.loads((DATA / "configs" / f"table-transformer-{name}.json").read_text())
    config = TableTransformerConfig.from_dict(raw)
    assert config.num_queries == queries
    assert list(config.id2label.values()) == labels or (labels is None and config.num_labels == 6)
    assert (config.resnet.layer_type, list(config.resnet.depths)) == ("basic", [2, 2, 2, 2])
    saved = config.to_dict()
    assert {key: saved[config.aliases.get(key, key)] for key in raw} == raw


def test_num_hidden_layers_is_another_name_of_encoder_layers():
    assert TableTransformerConfig.from_dict({"num_hidden_layers": 3}).encoder_layers == 3  # as in transformers


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"backbone": "resnet181"}, "did you mean 'resnet18'"),
        ({"backbone": "convnext_tiny"}, "'convnext_tiny' is not implemented, only resnet18"),
        ({"dilation": True}, "dilation = True"),
        ({"backbone_config": {"model_type": "timm_backbone", "backbone": "resnet18", "output_stride": 16}}, "only 32"),
        ({"backbone_config": {"model_type": "swin"}}, "'swin' is not implemented, only 'resnet'"),
        ({"backbone_config": {"layer_type": "basics"}}, "backbone_config: layer_type.*did you mean 'basic'"),
        ({"backbone_config": {"depths": [2, 2]}}, "do not fit together"),
        ({"backbone_config": {"depths": []}}, "depths"),
        ({"backbone_config": {"out_features": ["stage2", "stage3"]}}, "ends with its last stage"),
        ({"backbone_config": {"hidden_sizes": ["64"]}}, "hidden_sizes"),
        ({"backbone_kwargs": {"out_indices": [1, 2]}}, "ends with its last stage"),
        ({"backbone_kwargs": {"outputstride": 16}}, "did you mean 'output_stride'"),
        ({"backbone_config": {"model_type": "timm_backbone", "num_channels": "3"}}, "num_channels = '3' has type str"),
        ({"backbone": "microsoft/resnet-18", "use_timm_backbone": False}, "in another repository"),
        ({"position_embedding_type": "sin"}, "did you mean 'sine'"),
        ({"num_queries": 0}, "num_queries = 0 is out of range"),
        ({"d_model": 30, "encoder_attention_heads": 2, "decoder_attention_heads": 2}, "multiple of 4"),
        ({"decoder_attention_heads": 7}, "decoder_attention_heads = 7 does not divide d_model"),
        ({"activation_function": 3}, "expected str"),
    ],
)
def test_configs_that_zoo_does_not_read(fields, message):
    with pytest.raises(zoo.ZooError, match=message):
        TableTransformerConfig.from_dict({**HUB, **fields})


def test_a_wrong_number_names_its_field(tmp_path):
    reference(tmp_path)
    edit_config(tmp_path, num_queries=15)
    with pytest.raises(zoo.ZooError, match=r"query_position_embeddings.weight' has shape \(11, 32\).*num_queries = 15"):
        load_model(tmp_path)


def test_the_wrong_resnet_of_timm(tmp_path):
    reference(tmp_path, backbone=RESNET18)
    as_timm(tmp_path, "resnet34")
    with pytest.raises(zoo.ZooError, match=r"no tensor 'model.backbone.conv_encoder.model.encoder.stages.0.layers.2"):
        load_model(tmp_path)


def test_detr_under_another_name_lacks_a_norm(tmp_path):
    reference(tmp_path)
    rename(tmp_path, lambda name: name.replace("encoder.layernorm", "encoder.layernorm_of_no_one"))
    with pytest.raises(zoo.ZooError, match=r"no tensor 'model\.encoder\.layernorm\.weight'"):
        load_model(tmp_path)


def test_tensors_of_no_one_are_told(tmp_path):
    from safetensors.numpy import load_file, save_file

    reference(tmp_path)
    path, name = tmp_path / "model.safetensors", "model.decoder.layers.0.extra.weight"
    save_file({**load_file(path), name: np.ones(3, np.float32)}, path, {"format": "pt"})
    with pytest.raises(zoo.ZooError, match=f"does not know: {name}"):
        load_model(tmp_path, strict=True)


def test_images_that_do_not_fit(tmp_path, rng):
    reference(tmp_path, position_embedding_type="learned")
    ours = load_model(tmp_path)
    x, mask = padded(rng, (40, 50))
    with pytest.raises(zoo.ZooError, match=r"pixel_mask has shape \(1, 50, 40\), expected \(1, 40, 50\)"):
        ours(x, mask.transpose(0, 2, 1))
    with pytest.raises(zoo.ZooError, match="pixel_mask must hold only 0"):
        ours(x, mask * 2)
    with pytest.raises(zoo.ZooError, match="channels come last"):
        ours(x.transpose(0, 3, 1, 2))
    with pytest.raises(zoo.ZooError, match="1 x 51 features is too large: positions end at 50 x 50"):
        ours(np.zeros((1, 8, 1601, 3), np.float32))


def test_moving_a_model_moves_what_was_derived(tmp_path, rng):
    from zoo.nn import map_leaves

    model = reference(tmp_path)
    ours, (x, mask) = load_model(tmp_path), padded(rng, (70, 100), (100, 64))
    ours(x)  # so that there are positions to move
    moved = map_leaves(lambda a: torch.from_numpy(np.array(a)), ours)
    assert_close(moved(x, mask), run(model, x, mask))
    assert_close(moved(x), run(model, x))


def test_a_weight_that_is_prepared_is_not_kept_folded_too(tmp_path):
    from zoo.nn import Conv2d, modules
    from zoo.weights.mapped import region_of

    reference(tmp_path)
    convs: list[Any] = [one for one in modules(load_model(tmp_path)) if isinstance(one, Conv2d)]
    for conv in convs:
        if conv.norm:
            assert region_of(conv.weight) is not None
            assert (conv._folded[0] is conv.weight) == (conv._prepared is not None)
