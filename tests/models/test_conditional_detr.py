"""Conditional DETR: files that transformers writes, what it finds, and its labels, which are judged one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import page
from zoo.errors import UnsupportedError
from zoo.loading import load_model
from zoo.models.conditional_detr import ConditionalDetrConfig


@pytest.mark.parametrize("name", ["ConditionalDetrForObjectDetection", "ConditionalDetrModel"])
@pytest.mark.parametrize("auxiliary", [False, True])
@pytest.mark.parametrize("in_memory", [False, True])
def test_files_that_transformers_writes_and_its_names_in_memory(name, auxiliary, in_memory, tmp_path, rng):
    tables = pytest.importorskip("table_checkpoints", reason="needs torch and transformers, the reference")
    from vision_checkpoints import as_in_memory

    model = tables.reference(tmp_path, name, auxiliary_loss=auxiliary)
    if in_memory:
        as_in_memory(model, tmp_path)
    x, mask = tables.padded(rng, (70, 130), (100, 64), (33, 33))
    wanted = tables.run(model, x, mask)
    wanted.pop("reference_points", None)
    for device in ("cpu", "torch:cpu"):
        ours: Any = load_model(tmp_path, device=device, strict=True)
        tables.assert_close(ours(x, mask), wanted, 5e-5)


def test_objects_are_the_hundred_best_pairs_of_a_query_and_a_label(tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    task = zoo.load(build("conditional-detr-own-net", tmp_path))
    found = task(page(), threshold=0.0)
    assert len(found) == 100
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    prepared = task.processor(page())
    out = task.model(prepared.pixel_values)
    given = transformers.models.detr.modeling_detr.DetrObjectDetectionOutput(
        logits=torch.tensor(np.ascontiguousarray(out.logits)), pred_boxes=torch.tensor(out.pred_boxes)
    )
    processor = transformers.ConditionalDetrImageProcessorPil()
    (wanted,) = processor.post_process_object_detection(given, 0.0, [(page().height, page().width)])
    np.testing.assert_allclose([one.score for one in found], wanted["scores"], rtol=1e-5)
    height, width = page().height, page().width  # equal scores are in any order
    for one in found[:10]:
        centre = np.array([one.box[0] + one.box[2], one.box[1] + one.box[3]]) / 2 / (width, height)
        assert np.abs(out.pred_boxes[0, :, :2] - centre).max(1).min() < 1e-5


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="dilation"):
        ConditionalDetrConfig.from_dict({"dilation": True})
    assert ConditionalDetrConfig.from_dict({}).num_queries == 300
