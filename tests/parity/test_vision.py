"""Parity of the models that read images: their random checkpoints, and faults that must be found where they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from parity import images, pictures
from parity.checkpoints import build
from parity.choices import compare_masks
from parity.compare import Pair
from parity.specs import config_of
from parity.specs.vision import SPECS
from parity.taps import body_of
from parity.texts import Batch
from zoo.images import ImageProcessor
from zoo.models.beit import model as beit
from zoo.models.vit import model as vit
from zoo.ops import interpolate
from zoo.registry import FAMILIES
from zoo.weights.files import open_weights

IMAGES = Path(__file__).parents[1] / "data" / "images"
PHOTOGRAPHS = [IMAGES / "coco_000000039769.png"]
REAL = [
    "vit-base-patch16-224",
    "deit-base-distilled-patch16-224",
    "beit-base-patch16-224",
    "beit-base-finetuned-ade-640-640",
]


def test_the_strays_of_real_files_are_there(tmp_path):
    names = set(open_weights(build("beit-base-finetuned-ade-640-640", tmp_path)).names())
    assert "decode_head.fpn_bottleneck.bn.num_batches_tracked" in names
    assert "auxiliary_head.convs.0.conv.weight" in names
    assert "beit.encoder.layer.3.attention.attention.relative_position_bias.relative_position_index" in names
    assert "beit.encoder.layer.3.attention.attention.key.bias" not in names


def test_the_index_in_the_file_is_the_one_that_zoo_makes(tmp_path):
    source = open_weights(build("beit-base-patch16-224", tmp_path))
    name = "beit.encoder.layer.0.attention.attention.relative_position_bias.relative_position_index"
    np.testing.assert_array_equal(source.read(name).array, beit.relative_index((6, 6), np.zeros(1, np.float32)))


def test_the_sizes_of_a_processor_follow_those_of_the_model():
    spec = SPECS["deit-base-distilled-patch16-224"]
    full, tiny = (spec.processor_of(config_of(spec, size)) for size in ("full", "tiny"))
    assert (full["size"], full["crop_size"]) == (256, 224)
    assert (tiny["size"], tiny["crop_size"]) == (54, 48)
    spec = SPECS["vit-oblong"]
    assert spec.processor_of(config_of(spec, "tiny"))["size"] == {"height": 32, "width": 56}


def test_an_image_is_the_same_wherever_it_is_drawn():
    image = np.asarray(pictures.draw(64, 48))
    assert image.shape == (64, 48, 3)
    assert (image == np.asarray(pictures.draw.__wrapped__(64, 48))).all()  # drawn again
    assert (image != np.asarray(pictures.draw(64, 48, seed=1))).mean() > 0.5
    assert image.std() > 40


def test_masks_may_differ_in_one_pixel_of_ten_thousand():
    theirs = np.arange(20_000) % 7
    ours = theirs.copy()
    ours[:2] += 1
    stage = compare_masks([Pair("alone", ours, theirs)])
    assert (stage.holds, stage.top1, stage.note) == (True, 0.9999, "2 of 20000 pixels differ, 7 labels")
    ours[2] += 1
    assert not compare_masks([Pair("alone", ours, theirs)]).holds
    assert "only transformers" in compare_masks([Pair("alone", None, theirs)]).note


def layer_scale_forgotten(model):
    body_of(model).layers[1].lambda_2 = None


def bias_index_transposed(model):
    bias = body_of(model).layers[1].bias
    body_of(model).layers[1].bias = lambda grid, index: bias(grid, index.T)


def class_tokens_rows_swapped(model):
    """The table's last three rows: from the class token, to it, and to itself."""
    bias = body_of(model).bias
    bias.table = np.concatenate([bias.table[:-3], bias.table[-3:][[1, 0, 2]]])


def bias_of_another_grid(model):
    """The table is cut where it must be resized."""
    bias = body_of(model).layers[0].bias
    bias._resize = lambda span: np.resize(bias.table, (span[0] * span[1] + 3, bias.table.shape[1]))


def bias_forgotten(model):
    body_of(model).bias = None


def key_bias_of_the_value(model):
    attention = body_of(model).layers[2].attention
    attention._key_bias, attention.value_bias = attention.query_bias, attention.value_bias * 0


def positions_cut(model):
    """The positions of another grid are the first ones, not resized."""
    embeddings = body_of(model).embeddings
    positions = embeddings.positions
    N, D = positions.table.shape[1] - positions.prefix_tokens, positions.table.shape[2]

    def cut(grid):
        first, rest = positions((N // positions.grid[1], positions.grid[1]))
        return first, np.resize(rest, (1, grid[0] * grid[1], D))

    embeddings.positions = cut


def positions_bilinear(model):
    embeddings = body_of(model).embeddings
    positions = embeddings.positions

    def bilinear(grid):
        first, rest = positions(positions.grid)
        square = rest.reshape(1, *positions.grid, -1)
        return first, interpolate(square, grid).reshape(1, grid[0] * grid[1], -1)

    embeddings.positions = bilinear


def patches_column_by_column(model):
    embeddings = body_of(model).embeddings
    projection = embeddings.projection
    embeddings.projection = _Wrapped(projection, lambda x: projection(x).swapaxes(1, 2))


def blue_before_red(model):
    projection = body_of(model).embeddings.projection
    body_of(model).embeddings.projection = _Wrapped(projection, lambda x: projection(x[..., ::-1].copy()))


def distillation_token_before_the_class(model):
    embeddings = body_of(model).embeddings
    embeddings.prefix_tokens = embeddings.prefix_tokens[::-1]


def mask_token_forgotten(model):
    embeddings = body_of(model).embeddings
    patches = embeddings.patches
    embeddings.patches = lambda p: patches(p._replace(bool_masked_pos=None))


def pooled_class_token(model):
    """The class token, normed, where the patches' mean is wanted."""

    body = body_of(model)

    def broken(p):
        x = body.encode(p)
        return beit.BeitModelOutput(x, body.pooler(x[:, 0]))

    body.forward = broken


def pooled_mean(model):
    """The patches' mean, where the class token is wanted."""

    body = body_of(model)

    def broken(p):
        x = body.encode(p)
        return vit.ViTModelOutput(x, body.pooler(x[:, 1:].mean(1)))

    body.forward = broken


class _Wrapped:
    """Another call in the place of a module's, whose attributes stay."""

    def __init__(self, inner, call):
        self._inner, self._call = inner, call

    def __call__(self, x):
        return self._call(x)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def final_norm_forgotten(model):
    body_of(model).norm = lambda x: x


def heads_swapped(model):
    model.cls_classifier, model.distillation_classifier = model.distillation_classifier, model.cls_classifier


def heads_not_averaged(model):
    forward = model.forward

    def broken(p):
        out = forward(p)
        return out._replace(logits=out.cls_logits)

    model.forward = broken


def batch_norm_of_another_epsilon(model):
    conv = model.decode_head.merge
    conv.norm.eps = 1e-3
    conv._folded = conv.norm.fold(conv.weight, conv.bias)


def lateral_forgotten(model):
    lateral = model.decode_head.laterals[0]
    model.decode_head.laterals[0] = lambda x: lateral(x) * 0


def pyramid_without_gelu(model):
    model.pyramid.up.act = None


def visual_tokens_of_all_tokens(model):
    norm = model.norm
    model.norm = lambda x: norm(np.roll(x, 1, 1))


@pytest.mark.parametrize(
    ("name", "fault", "stage"),
    [
        ("vit-base-patch16-224", positions_cut, "embeddings"),
        ("vit-base-patch16-224", positions_bilinear, "embeddings"),
        ("vit-base-patch16-224", patches_column_by_column, "embeddings"),
        ("vit-base-patch16-224", blue_before_red, "embeddings"),
        ("vit-base-patch16-224", final_norm_forgotten, "logits"),
        ("vit-base-patch16-224-in21k", pooled_mean, "pooler_output"),
        ("vit-mim", mask_token_forgotten, "embeddings"),
        ("deit-base-distilled-patch16-224", distillation_token_before_the_class, "embeddings"),
        ("deit-base-distilled-patch16-224", heads_swapped, "logits"),
        ("deit-base-distilled-patch16-224", heads_not_averaged, "logits"),
        ("beit-base-patch16-224", layer_scale_forgotten, "layer.1"),
        ("beit-base-patch16-224", bias_index_transposed, "layer.1"),
        ("beit-base-patch16-224", bias_of_another_grid, "layer.0"),
        ("beit-base-patch16-224", key_bias_of_the_value, "layer.2"),
        ("beit-base-patch16-224", pooled_class_token, "logits"),
        ("beit-base-patch16-224-pt22k", class_tokens_rows_swapped, "layer.0"),
        ("beit-base-patch16-224-pt22k", bias_forgotten, "layer.0"),
        ("beit-base-patch16-224-pt22k", mask_token_forgotten, "embeddings"),
        ("beit-base-patch16-224-pt22k", visual_tokens_of_all_tokens, "logits"),
        ("beit-pyramid", pyramid_without_gelu, "feature_maps.0"),
        ("beit-base-finetuned-ade-640-640", batch_norm_of_another_epsilon, "logits"),
        ("beit-base-finetuned-ade-640-640", lateral_forgotten, "logits"),
        ("beit-base-finetuned-ade-640-640", pyramid_without_gelu, "logits"),
        ("dit-base-finetuned-rvlcdip", layer_scale_forgotten, "layer.1"),
    ],
)
def test_a_fault_is_found_where_it_is(bench, name, fault, stage):
    bench = bench(name)
    assert bench.first_wrong(bench.load()) is None
    model = bench.load()
    fault(model)
    assert bench.first_wrong(model) == stage


@pytest.mark.parametrize(
    "changed",
    [
        lambda p: {"resample": 2 if p.resample == 3 else 3},
        lambda p: {"table": p.table[:, ::-1] * np.float32(1.0001)},
        lambda p: {"size": {"height": 64, "width": 64}},
    ],
    ids=["filter", "scale", "size"],
)
@pytest.mark.parametrize("name", ["vit-base-patch16-224", "deit-base-distilled-patch16-224"])
def test_a_processor_that_works_otherwise_is_found(bench, name, changed):
    from parity.stages import compare_processors

    bench = bench(name)
    model, processor = bench.load(), ImageProcessor.from_folder(bench.folder)
    other = replace(processor, crop=(48, 48), **changed(processor))
    found = compare_processors(bench.reference, images.batches(model, other, [], 0))
    assert (bench.prepared[0].name, bench.prepared[0].holds) == ("processor", True)
    assert (found.name, found.holds) == ("processor", False)


def test_a_mask_of_shifted_pixels_is_found(bench):
    from parity.stages import compare_stages, zoo_stages

    bench = bench("beit-base-finetuned-ade-640-640")
    model = bench.load()
    ours = [zoo_stages(model, batch) for batch in bench.inputs]
    for stages in ours:
        if "mask" in stages:
            stages["mask"] = np.roll(stages["mask"], 1)
    wrong = [stage.name for stage in compare_stages(bench.inputs, ours, bench.theirs, bench.rule) if not stage.holds]
    assert wrong == ["mask"]


@pytest.mark.parametrize("name", REAL)
def test_photographs_become_the_same_pixel_values(name):
    """From a file to the model's full size, bit by bit."""
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    config = dict(SPECS[name].processor)
    ours = ImageProcessor.from_dict(config, FAMILIES[SPECS[name].model_type].processor)
    reference = getattr(transformers, f"{ours.family}ImageProcessorPil").from_dict(dict(config))
    theirs = reference(images=[Image.open(path) for path in PHOTOGRAPHS], return_tensors="np")["pixel_values"]
    np.testing.assert_array_equal(ours(PHOTOGRAPHS).pixel_values.transpose(0, 3, 1, 2), theirs)


@pytest.mark.parametrize("name", REAL)
def test_photographs_agree_at_every_stage(bench, name):
    from parity.stages import compare_processors, compare_stages, reference_stages, zoo_stages

    bench = bench(name)
    opened = [Image.open(path) for path in PHOTOGRAPHS]
    batch = Batch(
        "photographs",
        {"pixel_values": ImageProcessor.from_folder(bench.folder)(PHOTOGRAPHS).pixel_values},
        images=opened,
    )
    ours, theirs = zoo_stages(bench.load(), batch), reference_stages(bench.reference, batch)
    stages = [compare_processors(bench.reference, [batch]), *compare_stages([batch], [ours], [theirs], bench.rule)]
    assert {"processor", "embeddings", "layer.0", "logits"} <= {stage.name for stage in stages}
    assert [stage for stage in stages if not stage.holds] == []
