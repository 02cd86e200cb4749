"""weights="int8" and "int4" on ONNX Runtime: every family, a decoder's steps, saved checkpoints, what is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from tests.graphs.test_onnx_tasks import TASKS, written
from zoo.errors import UnsupportedError

onnx = pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")

IDS = np.random.default_rng(0).integers(5, 60, (3, 12))


load_model: Any = zoo.load_model


def error(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def operators(folder):
    """The operators of all graphs in a folder."""
    found = set()
    for path in folder.rglob("*.onnx"):
        found |= {node.op_type for node in onnx.load(path, load_external_data=False).graph.node}
    return found


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ASSETS_CACHE", str(tmp_path / "assets"))
    return tmp_path / "assets"


@pytest.mark.parametrize("name", [name for name in TASKS if name not in ("generate", "answer", "rerank")])
def test_a_task_runs_in_int8(name, tmp_path, kept):
    spec, call = TASKS[name]
    task = name.removesuffix(" images")
    call(zoo.load(written(spec, tmp_path / "checkpoint"), task=task, device="onnx", weights="int8"))
    assert "DynamicQuantizeMatMul" in operators(kept)


def test_precisions_are_kept_apart(tmp_path, kept):
    folder = build("bert-base-uncased", tmp_path / "checkpoint")
    wanted = load_model(folder)(IDS)
    by_graph = [load_model(folder, device="onnx", weights=one)(IDS) for one in (None, "int8", None, "int8")]
    errors = [error(one, wanted) for one in by_graph]
    assert max(errors[0], errors[2]) < 1e-5 < min(errors[1], errors[3])
    assert errors[1] == errors[3] < 0.05


def test_a_decoder_in_int8_and_int4(kept):
    """stories260k is real: what it says of each token in float32 is what int8 says."""
    prompt = "Once upon a time, there was a little girl named Lily. She loved to play"
    wanted: Any = zoo.load("stories260k")
    ids = np.asarray(wanted.tokenizer([prompt]).input_ids)
    cache = wanted.model.new_cache(1)
    logits = wanted.model.next_logits(ids, None, cache)
    for weights, operator, limit in (("int8", "DynamicQuantizeMatMul", 0.05), ("int4", "MatMulNBits", 0.5)):
        model = load_model("stories260k", device="onnx", weights=weights)
        decoder = model.runner.decoder(model)
        found = decoder.next_logits(ids, None, decoder.new_cache(1))
        assert 0 < error(found, logits) < limit
        assert operator in operators(kept)


def test_what_was_saved_in_int8_runs_so(tmp_path, kept):
    folder = build("bert-base-uncased", tmp_path / "checkpoint")
    wanted = load_model(folder)(IDS)
    zoo.save(zoo.load_model(folder, weights="int8"), tmp_path / "saved")
    assert error(load_model(tmp_path / "saved", device="onnx")(IDS), wanted) < 0.05
    assert "DynamicQuantizeMatMul" in operators(kept)


def test_an_export_has_the_weights_that_it_has(tmp_path, kept):
    folder = zoo.export("stories260k", tmp_path / "export", precision="int8")
    assert "DynamicQuantizeMatMul" in operators(folder)
    assert zoo.load(folder, device="onnx")(["Once upon"], max_new_tokens=3)
    with pytest.raises(UnsupportedError, match="weights='int8' cannot change exported graphs"):
        zoo.load(folder, device="onnx", weights="int8")


def test_an_encoder_of_images_is_in_int8_where_its_decoder_is_in_int4(tmp_path, kept):
    folder = build("granite-docling-258M", tmp_path / "checkpoint")
    plain, four, eight = (load_model(folder, device="onnx", weights=one) for one in (None, "int4", "int8"))
    given = plain.example(rows=1)
    pixels = plain.vision_model.pixels(given["pixel_values"])
    wanted, found, other = (np.array(one.runner.run(one.image_features, pixels)) for one in (plain, four, eight))
    np.testing.assert_array_equal(found, other)
    assert 1e-4 < error(found, wanted) < 0.05
    assert error(four(**given), plain(**given)) > 2 * error(eight(**given), plain(**given))


def test_one_graph_of_steps_does_for_prompts_and_tokens(tmp_path, kept):
    from zoo.generate import GenerationConfig, generate

    folder = build("granite-docling-258M", tmp_path / "checkpoint")
    config, plain, found = GenerationConfig(max_new_tokens=6), load_model(folder), []
    for model in (plain, load_model(folder, device="onnx")):
        given = model.example(rows=1)
        prompts = [model.prompt(given["input_ids"][0], [given["pixel_values"]]), IDS[0]]
        found.append([row[0].ids.tolist() for row in generate(model.runner.decoder(model), prompts, config)])
    assert found[0] == found[1]
    assert [name for name in model.runner._graphs if "step" in str(name)] == ["Decoder.step, in place, vectors"]
