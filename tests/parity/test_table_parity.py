"""Parity of Table Transformer: its random checkpoints, and faults that must be found where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench import calling

from parity import images
from parity.checkpoints import build
from parity.choices import compare_objects, match_objects
from parity.compare import FLOAT32, Pair
from parity.specs import config_of, tensors
from parity.specs.table import SPECS, timm_name
from parity.stages import compare_stages, judge_by_float64, needs_float64
from parity.taps import body_of
from parity.texts import Batch
from zoo.images import ImageProcessor, boxes
from zoo.images.boxes import corners
from zoo.loading import load_model
from zoo.nn import Linear
from zoo.weights.files import open_weights

DETECTION, STRUCTURE = "table-transformer-detection", "table-transformer-structure-recognition"
V11, LEARNED = "table-transformer-structure-recognition-v1.1-all", "table-transformer-learned-positions"


def test_the_strays_of_real_files_are_there(tmp_path):
    names = set(open_weights(build(DETECTION, tmp_path)).names())
    prefix = "model.backbone.conv_encoder.model."
    for name in ("conv1.weight", "layer4.1.bn2.running_var", "layer2.0.downsample.1.bias"):
        assert prefix + name in names
    counters = {name for name in names if name.endswith("num_batches_tracked")}
    assert counters == {f"{prefix}layer{i}.0.downsample.1.num_batches_tracked" for i in (2, 3, 4)}


def test_the_names_of_timm():
    """A few by hand, and no two alike."""
    names = [name for name in tensors(SPECS[LEARNED], config_of(SPECS[LEARNED], "tiny")) if "conv_encoder" in name]
    found = {timm_name(name).rpartition("conv_encoder.model.")[2]: name for name in names}
    assert len(found) == len(names)
    assert {"conv1.weight", "bn1.running_mean", "layer1.0.conv3.weight", "layer3.1.bn2.bias"} <= found.keys()
    assert found["layer4.0.downsample.0.weight"].endswith("encoder.stages.3.layers.0.shortcut.convolution.weight")


def _rows(*boxes, label=1):
    return np.array([[0, 0.5, label, *box] for box in boxes])


def test_partners_have_the_label_and_most_of_the_box():
    wanted = _rows((0, 0, 0.5, 1), (0.2, 0.2, 0.4, 0.4))
    assert match_objects(wanted[::-1], wanted) == (0, 1, 0.0)
    assert match_objects(wanted + np.array([0, 0, 0, 0.02, 0, 0.02, 0]), wanted).lonely == 0
    assert match_objects(wanted[:1], wanted).lonely == 1
    assert match_objects(np.concatenate([wanted, wanted[:1]]), wanted).lonely == 1
    assert match_objects(_rows((0, 0, 0.5, 1), (0.2, 0.2, 0.4, 0.4), label=2), wanted).lonely == 4
    assert match_objects(_rows((0, 0, 0.5, 1), (0.3, 0.2, 0.5, 0.4)), wanted).lonely == 2


def test_objects_must_be_the_same_and_boxes_nearly():
    theirs = _rows((0, 0, 0.5, 1), (0.2, 0.2, 0.4, 0.4))
    found = compare_objects([Pair("padded", theirs + 0.9e-4 * (theirs == 0.4), theirs)])
    assert (found.holds, found.note) == (True, "2 objects, 1 labels")
    assert math.isclose(found.max_abs, 0.9e-4)
    assert not compare_objects([Pair("padded", theirs + 1.1e-4 * (theirs == 0.4), theirs)]).holds
    assert "1 objects, expected 2" in compare_objects([Pair("padded", theirs[:1], theirs)]).note
    other = _rows((0, 0, 0.5, 1), (0.2, 0.2, 0.4, 0.4), label=2)
    assert not compare_objects([Pair("padded", other, theirs)]).holds
    assert "only zoo" in compare_objects([Pair("padded", theirs, None)]).note


@pytest.mark.parametrize(
    ("ours", "holds"),
    [
        (range(100), True),
        ([1, 0, *range(2, 96), 97, 96, 99, 98], True),  # transformers turns two, of 100, and another may be
        ([*range(100)][::-1], False),
        ([*range(4, 100)], True),  # transformers lacks one
        ([*range(5, 100)], False),
    ],
)
def test_objects_are_judged_by_float64_where_rounding_decides(rng, ours, holds):
    """Of 100 with about equal scores; of its own transformers lacks one, or has two in another order."""
    where = rng.uniform(0, 0.5, (100, 2))
    exact = np.concatenate([np.tile([0, 0.5], (100, 1)), rng.integers(0, 4, (100, 1)), where, where + 0.4], 1)
    theirs = exact[1:] if len(ours) < 100 else exact[[1, 0, *range(2, 100)]]
    batch = Batch("a", {})
    sides = [[{"objects": rows}] for rows in (exact[list(ours)], exact, theirs)]
    stages = compare_stages([batch], sides[0], sides[2], FLOAT32)
    assert [needs_float64(stage) for stage in stages] == [True]
    (stage,) = judge_by_float64(stages, [batch], *sides)
    assert stage.holds is holds


@pytest.mark.parametrize(("apart", "holds"), [(1e-3, True), (1.3e-3, False)])
def test_coordinates_of_objects_are_as_exact_as_transformers(apart, holds):
    exact = _rows((0, 0, 0.5, 1), (0.2, 0.2, 0.4, 0.4))
    sides = [[{"objects": exact + error * (exact == 0.2)}] for error in (apart, 0, 2e-4)]
    stages = compare_stages([Batch("a", {})], sides[0], sides[2], FLOAT32)
    (stage,) = judge_by_float64(stages, [Batch("a", {})], *sides)
    assert (stage.holds, stage.max_abs) == (holds, pytest.approx(apart))


@pytest.mark.parametrize(
    ("name", "device"), [*((name, "torch:cpu") for name in SPECS if name != "table-transformer-bare"), (V11, "cpu")]
)
def test_every_stage_holds(bench, name, device):
    """The stages of NumPy's models are in `zoo parity --all` too: here are torch's."""
    bench = bench(name)
    stages = bench.stages(load_model(bench.folder, strict=True, device=device))
    layers = [f"{part}.layer.{i}" for part in ("encoder", "decoder") for i in range(3)]
    wanted = {"processor", "features", "positions", *layers, "logits", "pred_boxes", "objects"}
    assert wanted <= {stage.name for stage in stages}
    assert [stage for stage in stages if not stage.holds] == []


@pytest.mark.parametrize("name", [DETECTION, STRUCTURE, V11, LEARNED])
def test_there_are_objects_to_compare(bench, name):
    """There are objects of several kinds, and fewer at a higher threshold."""
    rows = np.concatenate([stages["objects"] for stages in bench(name).theirs])
    counts = [int((rows[:, 1] == threshold).sum()) for threshold in (0.5, 0.7, 0.9)]
    assert counts[0] > counts[1] > counts[2] > 0
    assert len(np.unique(rows[:, 2])) > 1
    assert rows[:, 3:].std(0).min() > 0.003


def shortcut_forgotten(model):
    block = body_of(model).backbone.layers[-1].blocks[0]
    shortcut = block.shortcut
    block.shortcut = lambda x: shortcut(x) * 0


def relu_before_the_shortcut(model):
    for stage in body_of(model).backbone.layers:
        for block in stage.blocks:
            block.last.act, block.last.post = "relu", None


def columns_before_rows(model):
    positions = body_of(model).positions
    table = positions.table
    positions.table = lambda mask, like: np.concatenate(np.split(table(mask, like), 2, 3)[::-1], 3)


def positions_of_the_padding(model):
    positions = body_of(model).positions
    table = positions.table
    positions.table = lambda mask, like: table(np.ones_like(mask), like)


def padding_seen(model):
    layer = body_of(model).encoder_layers[1]
    body_of(model).encoder_layers[1] = lambda x, positions, mask: layer(x, positions, None)


def padding_seen_by_queries(model):
    layer = body_of(model).decoder_layers[2]
    body_of(model).decoder_layers[2] = lambda x, c: layer(x, c._replace(mask=None))


def positions_added_to_the_values(model):
    layer = body_of(model).decoder_layers[0]
    body_of(model).decoder_layers[0] = lambda x, c: layer(x, c._replace(memory=c.placed_memory))


def queries_that_begin_with_themselves(model):
    layer = body_of(model).decoder_layers[0]
    body_of(model).decoder_layers[0] = lambda x, c: layer(x + c.queries, c)


def encoder_norm_forgotten(model):
    body_of(model).encoder_norm = lambda x: x


def norm_after(model):
    layer = body_of(model).encoder_layers[0]
    layer.norm, layer.final_norm = layer.final_norm, layer.norm


def box_without_sigmoid(model):
    model.bbox_predictor[2].act = None


def corners_for_centres(model):
    """The boxes as x0, y0, x1, y1 where centre, width and height are wanted."""
    calling(model.bbox_predictor[2], lambda layer, x: corners(Linear.__call__(layer, x)))


def no_object_first(model):
    head = model.class_labels_classifier
    head.weight, head.bias = np.roll(head.weight, 1, 0), np.roll(head.bias, 1)


@pytest.mark.parametrize(
    ("name", "fault", "stage"),
    [
        (DETECTION, shortcut_forgotten, "features"),
        (LEARNED, relu_before_the_shortcut, "features"),
        (V11, columns_before_rows, "positions"),
        (V11, positions_of_the_padding, "positions"),
        (LEARNED, columns_before_rows, "positions"),
        (V11, norm_after, "encoder.layer.0"),
        (V11, padding_seen, "encoder.layer.1"),
        (V11, positions_added_to_the_values, "decoder.layer.0"),
        (V11, queries_that_begin_with_themselves, "decoder.layer.0"),
        (V11, encoder_norm_forgotten, "decoder.layer.0"),
        (V11, padding_seen_by_queries, "decoder.layer.2"),
        (V11, no_object_first, "logits"),
        (V11, box_without_sigmoid, "pred_boxes"),
        (V11, corners_for_centres, "pred_boxes"),
    ],
)
def test_a_fault_is_found_where_it_is(bench, name, fault, stage):
    bench = bench(name)
    model = load_model(bench.folder, strict=True)
    fault(model)
    assert bench.first_wrong(model) == stage


def test_boxes_that_are_read_as_corners_are_found(bench, monkeypatch):
    bench = bench(V11)
    monkeypatch.setattr(boxes, "corners", lambda found: found)
    assert bench.first_wrong(bench.load()) == "objects"


def test_a_processor_of_another_rule_is_found(bench):
    """The long side of 192 is rounded down by some rules."""
    from parity.stages import compare_processors

    bench = bench(V11)
    assert bench.prepared[0].holds
    other = ImageProcessor.from_folder(bench.folder).with_size({"longest_edge": 191})
    assert not compare_processors(bench.reference, images.batches(bench.load(), other, [], 0)).holds
