"""D-FINE: its distances and boxes against transformers, files that it writes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from parity.pictures import page
from zoo.errors import ConfigError, UnsupportedError
from zoo.models.d_fine import DFineConfig


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("dfine-affine", tmp_path_factory.mktemp("d_fine"))


def test_distances_are_those_of_transformers(folder):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    theirs = pytest.importorskip("transformers.models.d_fine.modeling_d_fine", reason="needs transformers")
    sides, rng = zoo.load_model(folder).base_model.sides, np.random.default_rng(0)
    up, scale = torch.tensor(sides.up), torch.tensor(sides.scale)
    wanted = theirs.weighting_function(sides._distances.shape[1] - 1, up, scale)
    np.testing.assert_allclose(sides._distances[0], wanted, rtol=1e-5, atol=1e-6)
    first = rng.random((2, 5, 4), np.float32)
    odds = rng.standard_normal((2, 5, 4 * len(wanted)), np.float32)
    shares = torch.softmax(torch.tensor(odds).reshape(-1, len(wanted)), 1) @ wanted
    boxes = theirs.distance2bbox(torch.tensor(first), shares.reshape(2, 5, 4), scale)
    np.testing.assert_allclose(sides(first, odds), boxes, rtol=1e-4, atol=1e-5)


def test_files_that_transformers_writes(folder, tmp_path):
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    theirs = transformers.DFineForObjectDetection.from_pretrained(folder).eval()
    theirs.save_pretrained(tmp_path)
    x = np.random.default_rng(0).random((2, 96, 128, 3), np.float32)
    with torch.no_grad():
        wanted = theirs(torch.tensor(x).permute(0, 3, 1, 2))
    for device in ("cpu", "torch:cpu"):
        found = zoo.load_model(tmp_path, device=device, strict=True)(x)
        np.testing.assert_allclose(np.asarray(found.logits), wanted.logits, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(np.asarray(found.pred_boxes), wanted.pred_boxes, rtol=1e-3, atol=1e-4)


def test_objects(folder):
    task = zoo.load(folder)
    found = task(page(), threshold=0.0)
    assert len(found) == task.config.num_queries
    with pytest.raises(zoo.ZooError, match="rule"):
        task(page(), rule="argmax")


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        ({"eval_idx": 2}, UnsupportedError, "eval_idx = 2"),
        ({"decoder_n_points": [3, 6]}, ConfigError, "decoder_n_points"),
        ({"decoder_n_points": [3, 6, 0]}, ConfigError, "decoder_n_points"),
        ({"max_num_bins": 7}, ConfigError, "max_num_bins = 7"),
        ({"top_prob_values": 40}, ConfigError, "top_prob_values = 40"),
        ({"depth_mult": 0.1}, ConfigError, "depth_mult = 0.1"),
        ({"decoder_method": "discrete"}, UnsupportedError, "decoder_method"),
    ],
)
def test_configs_that_are_refused(fields, error, says):
    with pytest.raises(error, match=says):
        DFineConfig.from_dict(fields)
