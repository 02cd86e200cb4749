"""device="openvino": the same graphs by another library, and what it cannot take by ONNX Runtime."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_families import records

import zoo
from parity.cases import case_of
from parity.checkpoints import build
from parity.run import run
from zoo import devices
from zoo.engines.onnx.ops.decoder import BASE, DIGITS, Half, rotary
from zoo.engines.onnx.ops.graph import GraphBuilder
from zoo.engines.onnx.ops.symbol import FLOAT, INT, Symbol
from zoo.engines.onnx.ops.vision import interpolate
from zoo.engines.onnx.signature import GraphInput
from zoo.engines.onnx.trace import finish
from zoo.errors import InputError, UnsupportedError
from zoo.models.bert import BertModel

pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs what OpenVINO cannot")
openvino = pytest.importorskip("openvino", reason="needs openvino")

from zoo.engines.openvino import runner, session  # noqa: E402

# A checkpoint of each kind of network.
KINDS = (
    *("bert-base-uncased", "deberta-v3-base", "t5-small", "Llama-3.2-1B", "gemma-3-270m", "whisper-base"),
    *("vit-base-patch16-224", "swin-tiny-patch4-window7-224", "table-transformer-detection", "rtdetr_v2_r50vd"),
    *("trocr-small-printed", "clip-vit-base-patch32", "pp-ocrv6-small-rec"),
)
IDS = np.arange(5, 29).reshape(2, 12)
MASK = np.where(np.arange(12) < [[12], [7]], 1, 0)


@pytest.fixture(autouse=True)
def _first_time(kept):
    """Graphs are in this test's own cache, and a warning that was given is given again."""
    runner._warn_once.cache_clear()


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return build("bert-base-uncased", tmp_path_factory.mktemp("bert") / "bert")


@pytest.fixture
def has_bfloat16():
    if "bfloat16" not in session.dtypes():
        pytest.skip("needs a processor with avx512_bf16 or AMX")


def error(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def test_float32_is_float32(bert):
    """OpenVINO would take bfloat16 by itself, whose error is 5e-3; inputs may be read-only."""
    ids = IDS.copy()
    ids.flags.writeable = False
    model = zoo.load_model(bert, device="openvino")
    found, wanted = model(ids, MASK), zoo.load_model(bert)(ids, MASK)
    assert type(next(iter(model.runner._graphs.values()))[0].session) is session.OpenVINOSession
    assert error(found, wanted) < 1e-5
    assert error(model(ids[:1, :5]), zoo.load_model(bert)(ids[:1, :5])) < 1e-5  # of another length
    assert np.array([1e-40], np.float32) * np.float32(1) > 0  # what the thread computes later keeps its small numbers


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux, whose /proc/self/smaps is read")
@pytest.mark.parametrize("device", ["openvino", "onnx"])
def test_pages_of_weights_leave_memory(bert, tmp_path, device):
    """Those that reading has brought there when a model is loaded, and once a graph of OpenVINO has packed them."""
    config = replace(zoo.load_model(bert).config, vocab_size=40_000)
    folder = zoo.save(BertModel.from_config(config), tmp_path / "large")
    model = zoo.load_model(folder, device=device, head="Model")
    size = (folder / "model.safetensors").stat().st_size / 1024
    assert resident_kilobytes(folder) < size / 4  # the header stays, and what the system maps around it
    model(IDS, MASK)
    if device == "openvino":  # ONNX Runtime's own mapping is its own matter
        assert resident_kilobytes(folder) < size / 4


def resident_kilobytes(folder):
    """Of the mapped safetensors files of a folder."""
    found, ours = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        name, *rest = line.split()
        ours = str(folder) in line if not name.endswith(":") else ours
        if ours and name == "Rss:":
            found += int(rest[0])
    return found


def test_bfloat16(bert, has_bfloat16):
    wanted = zoo.load_model(bert)(IDS, MASK)
    found = zoo.load_model(bert, device="openvino", dtype="bfloat16")(IDS, MASK)
    assert found.dtype == np.float32
    assert 1e-4 < error(found, wanted) < 3e-2


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", KINDS)
def test_parity(name, dtype):
    if dtype not in session.dtypes():
        pytest.skip(f"needs a processor that computes in {dtype}")
    assert run(case_of(f"random:{name}", False), device="openvino", dtype=dtype).holds


def test_weights_of_16_bits(tmp_path):
    """They are read from the file as they are."""
    folder = zoo.save(zoo.load_model(build("vit-base-patch16-224", tmp_path / "a")), tmp_path / "b", dtype="bfloat16")
    record, *_ = records(zoo.load_model(folder), 0)
    found = zoo.load_model(folder, device="openvino")
    wanted = zoo.load_model(folder)
    assert error(found.runner.run(found.forward, record), wanted.forward(record)) < 1e-5


@pytest.mark.parametrize("frequencies", [(1.0, 0.1, 1e-4)])
def test_rotary_positions_in_16_bits(running, frequencies):
    """Their angles are not: 16 bits have no 257, and float32 no position beyond 16,777,216."""
    graph = GraphBuilder(standard=True, precision=Half())
    inputs = [GraphInput("at", ("B", "T"), "int64", -1, "at")]
    at = Symbol(
        graph, "at", [graph.input_dim(n, size, "at", i) for i, (n, size) in enumerate((("B", 2), ("T", 3)))], INT
    )
    cos, sin = rotary(at, frequencies, 2.0, at)
    traced = finish(graph, inputs, [("cos", cos, False), ("sin", sin, False)])
    assert not {"Cos", "Sin"} & {node.op for node in traced.nodes}
    positions = np.array([[0, 1, 127], [128, 257, BASE**DIGITS - 1]])
    found = running(traced).run(None, {"at": positions})
    angles = positions[..., None] * np.array(frequencies)
    for one, f in zip(found, (np.cos, np.sin), strict=True):
        np.testing.assert_allclose(one, 2 * f(angles), atol=2e-6)


@pytest.mark.parametrize("size", [(55, 110), (41, 164), (9, 9), (30, 7)])
def test_nearest_pixels(size, tmp_path):
    """OpenVINO's 55 / 110 is less than a half."""
    before, after = size
    graph = GraphBuilder(standard=True)
    inputs = [GraphInput("x", ("B", "H", "W", "C"), "float32", -1, "x"), GraphInput("y", ("Y",), "int64", -1, "y")]
    x, y = (
        Symbol(graph, one.name, [graph.input_dim(str(n), 2 + i, one.name, i) for i, n in enumerate(one.dims)], kind)
        for one, kind in zip(inputs, (FLOAT, INT), strict=True)
    )
    finish(graph, inputs, [("out", interpolate(x, (y.shape[0], 1), "nearest"), False)]).save(tmp_path / "nearest.onnx")
    rows = np.arange(before, dtype=np.float32).reshape(1, before, 1, 1)
    core = openvino.Core()
    compiled = core.compile_model(tmp_path / "nearest.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    (found,) = compiled({"x": rows, "y": np.arange(after)}).values()
    np.testing.assert_array_equal(found.ravel(), np.arange(after) * before // after)


def test_auto_in_16_bits(bert, monkeypatch):
    """It is OpenVINO where the processor has them; in float32 it is not."""
    monkeypatch.delenv("ZOO_DEVICE", raising=False)
    monkeypatch.setattr(devices, "_has_cuda", lambda: False)
    monkeypatch.setattr(session, "dtypes", lambda: ("float32", "bfloat16"))
    found = [devices.resolve_device("auto", dtype) for dtype in ("bfloat16", "float16", "float32", None)]
    assert found == ["openvino", None, "onnx", "onnx"]


def test_a_dtype_that_the_processor_lacks(bert, monkeypatch):
    monkeypatch.setattr(session, "dtypes", lambda: ("float32",))
    with pytest.raises(
        UnsupportedError, match=r"dtype is 'bfloat16'.* in 'float32' on this .*lacks avx512_bf16 or AMX"
    ):
        zoo.load_model(bert, device="openvino", dtype="bfloat16")
    with pytest.raises(UnsupportedError, match=r"dtype is 'float64'.* in 'float32' on this processor"):
        zoo.load_model(bert, device="openvino", dtype="float64")


def test_what_is_not_there(bert, monkeypatch):
    with pytest.raises(UnsupportedError, match=r"'openvino:gpu': zoo runs OpenVINO on the CPU"):
        zoo.load_model(bert, device="openvino:gpu")
    with pytest.raises(UnsupportedError, match=r"dtype is 'bfloat16'; device='openvino' computes"):
        zoo.load_model(bert, device="onnx", dtype="bfloat16")
    with monkeypatch.context() as patch:
        patch.setattr(openvino, "__version__", "2024.6.0-1-x")
        with pytest.raises(UnsupportedError, match=r"OpenVINO 2026.0 or newer, found 2024.6.0.*\[openvino\]"):
            zoo.load_model(bert, device="openvino")
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(InputError, match=r"device 'openvino' requires the package openvino.*\[openvino\]"):
        zoo.load_model(bert, device="openvino")


def test_packed_matrices_run_on_onnx_runtime(bert):
    with pytest.warns(UserWarning, match=r"ONNX Runtime runs BertForMaskedLM: it has int8 matrices"):
        found = zoo.load_model(bert, device="openvino", weights="int8")(IDS, MASK)
    np.testing.assert_array_equal(found, zoo.load_model(bert, device="onnx", weights="int8")(IDS, MASK))
    with pytest.raises(UnsupportedError, match=r"dtype is 'bfloat16', and BertForMaskedLM has int8 matrices"):
        zoo.load_model(bert, device="openvino", weights="int8", dtype="bfloat16")


def test_a_graph_that_openvino_refuses(bert, monkeypatch):
    def refuse(*_):
        raise RuntimeError("no such operator")

    monkeypatch.setattr(session.OpenVINOSession, "_read_model", refuse)
    with pytest.warns(UserWarning, match=r"runs BertForMaskedLM.forward, in float32: OpenVINO .* no such operator"):
        found = zoo.load_model(bert, device="openvino")(IDS, MASK)
    assert error(found, zoo.load_model(bert)(IDS, MASK)) < 1e-5


def test_steps_of_a_decoder():
    wanted = zoo.load("stories260k")("Once upon a time", max_new_tokens=12)
    with pytest.warns(UserWarning, match=r"ONNX Runtime runs LlamaForCausalLM.step.*no GroupQueryAttention"):
        found = zoo.load("stories260k", device="openvino")("Once upon a time", max_new_tokens=12)
    assert str(found) == str(wanted)


def test_an_export(bert, tmp_path):
    """It is looked at as for ONNX Runtime, and its weights are in the file beside it."""
    folder = zoo.export(bert, tmp_path / "export", standard=True)
    model = zoo.load_model(folder, device="openvino")
    assert error(model(IDS, MASK), zoo.load_model(bert)(IDS, MASK)) < 1e-5
