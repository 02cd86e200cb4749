"""Depth against transformers' pipeline, on NumPy and ONNX Runtime, and the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import zoo
from parity.checkpoints import build
from parity.pictures import draw
from zoo.apps.cli import main
from zoo.tasks.depth import Depth, DepthMap


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build("Depth-Anything-V2-Small", tmp_path_factory.mktemp("depth"))


@pytest.mark.parametrize("device", ["cpu", "onnx", "torch:cpu"])
def test_equals_transformers(folder, device):
    transformers = pytest.importorskip("transformers", reason="needs transformers, the reference")
    torch = pytest.importorskip("torch", reason="needs torch, the reference")
    pytest.importorskip("onnxruntime", reason="needs onnxruntime, for device='onnx'")
    images = [draw(100, 140), draw(61, 50), draw(100, 140, seed=1)]
    model = transformers.AutoModelForDepthEstimation.from_pretrained(folder).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    depth = zoo.load(folder, device=device, dtype="float32")
    assert isinstance(depth, Depth)
    for image, found in zip(images, depth(images), strict=True):
        with torch.no_grad():
            output = model(**processor(image, return_tensors="pt"))
        ours = transformers.DPTImageProcessor().post_process_depth_estimation(output, [(image.height, image.width)])
        wanted = ours[0]["predicted_depth"].numpy()
        assert found.depth.shape == wanted.shape == (image.height, image.width)
        np.testing.assert_allclose(found.depth, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_a_picture(tmp_path):
    DepthMap(np.array([[1, 2], [3, 5]], np.float32)).picture(tmp_path / "depth.png")
    assert np.asarray(Image.open(tmp_path / "depth.png")).tolist() == [[0, 63], [127, 255]]
    assert np.asarray(DepthMap(np.ones((2, 2), np.float32)).picture()).tolist() == [[0, 0], [0, 0]]


def test_on_the_command_line(folder, tmp_path, capsys):
    draw(100, 140).save(tmp_path / "a.png")
    assert main(["run", str(folder), str(tmp_path / "a.png"), "--overlay", str(tmp_path / "b.png"), "--json"]) in (
        0,
        None,
    )
    shown = json.loads(capsys.readouterr().out)
    assert (shown["height"], shown["width"]) == (100, 140)
    assert shown["least"] < shown["largest"]
    assert Image.open(tmp_path / "b.png").size == (140, 100)
