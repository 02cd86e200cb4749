"""Folders of ONNX graphs: run without zoo, and by it; and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from tests.graphs.test_onnx_tasks import TASKS, assert_close
from zoo.checkpoint.names import EMBEDDED_NAMES
from zoo.errors import CheckpointError, InputError, UnsupportedError

onnx = pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")

IDS = np.arange(5, 17).reshape(2, 6)


@pytest.fixture
def exported(tmp_path):
    """A function: the folder of an export, and the checkpoint that it is of."""

    def make(spec, **options):
        if spec not in EMBEDDED_NAMES:
            pytest.importorskip("torch", reason="needs torch, which makes the checkpoints")
        checkpoint = spec if spec in EMBEDDED_NAMES else build(spec, tmp_path / "checkpoint")
        return zoo.export(checkpoint, tmp_path / "export", **options), checkpoint

    return make


@pytest.mark.parametrize("name", TASKS)
def test_every_task_runs_from_its_export(name, exported):
    spec, call = TASKS[name]
    task = name.removesuffix(" images")
    folder, checkpoint = exported(spec, task=task)
    found = zoo.load(folder, task=task, device="onnx")
    assert_close(call(found), call(zoo.load(checkpoint, task=task)))
    proof = json.loads((folder / "parity.json").read_text())
    assert proof["outputs"]
    assert all(figures["relative_l2"] <= 1e-5 for figures in proof["outputs"].values())
    for path in folder.glob("*.onnx"):
        onnx.checker.check_model(str(path), full_check=True)
    if name in ("embed", "detect", "read", "generate"):  # each kind of program
        run_readme(folder)


def run_readme(folder):
    """README's program, where neither zoo nor torch can be imported."""
    code = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    alone = f"import sys\nsys.modules['zoo'] = sys.modules['torch'] = None\n{code[1]}"
    done = subprocess.run([sys.executable, "-c", alone], cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_standard_operators_alone(exported):
    folder, checkpoint = exported("bert-base-uncased", standard=True)
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    assert {node.domain for node in graph.node} == {""}
    assert_close(zoo.load_model(folder, device="onnx")(IDS), zoo.load_model(checkpoint)(IDS))


def test_int8(exported):
    folder, checkpoint = exported("bert-base-uncased", precision="int8")
    found, wanted = zoo.load_model(folder, device="onnx")(IDS), zoo.load_model(checkpoint)(IDS)
    assert 0 < np.linalg.norm(found - wanted) < 0.1 * np.linalg.norm(wanted)


def test_heads_without_a_task(exported):
    folder, checkpoint = exported("bert-swag")
    ids = IDS.reshape(1, 2, 6)
    assert_close(zoo.load_model(folder, device="onnx")(ids), zoo.load_model(checkpoint)(ids))


def test_what_is_loaded_may_be_exported(tmp_path, exported):
    pytest.importorskip("torch", reason="needs torch, which makes the checkpoint")
    checkpoint = build("bert-emotion", tmp_path / "a")
    task = zoo.load(checkpoint)
    texts = ["Anna went to Rome.", "So did the boy."]
    assert_close(zoo.load(zoo.export(task, tmp_path / "b"), device="onnx")(texts), task(texts))
    model = zoo.load_model(checkpoint)
    assert_close(zoo.load_model(zoo.export(model, tmp_path / "c"), device="onnx")(IDS), model(IDS))
    zoo.export(task, tmp_path / "b")  # again, in its own place


def test_an_export_has_graphs_and_no_weights(exported, tmp_path):
    folder, _ = exported("bert-base-uncased")
    with pytest.raises(UnsupportedError, match="holds ONNX graphs: load it with"):
        zoo.load(folder)
    with pytest.raises(UnsupportedError, match="was exported as BertForMaskedLM, and BertModel is asked for"):
        zoo.load(folder, task="embed", device="onnx")
    with pytest.raises(InputError, match="has no input position_ids"):
        zoo.load_model(folder, device="onnx")(IDS, position_ids=IDS)
    with pytest.raises(UnsupportedError, match="an exported folder cannot be exported"):
        zoo.export(zoo.load_model(folder, device="onnx"), tmp_path / "again")


def test_files_that_are_not_of_one_export(exported):
    folder, _ = exported("bert-base-uncased")
    path, index = folder / "model.onnx", folder / "model.onnx.index.json"
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="is not the file that"):
        zoo.load_model(folder, device="onnx")(IDS)
    path.write_bytes(whole)
    data = folder / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"has \d+ bytes"):
        zoo.load_model(folder, device="onnx")(IDS)
    about = json.loads(index.read_text())
    for field, value, message in (
        ("version", 2, "version 2, expected 1"),
        ("format", "other", "not the index of a folder that `zoo export` wrote"),
        ("tensors", {"a": [-1]}, "has no shape"),
        ("graphs", {"BertForMaskedLM.forward": 3}, "is damaged"),
        ("graphs", [], "has no graph of BertForMaskedLM.forward"),
    ):
        index.write_text(json.dumps({**about, "metadata": {**about["metadata"], field: value}}))
        with pytest.raises(zoo.ZooError, match=message):
            zoo.load_model(folder, device="onnx")(IDS)


def test_a_folder_with_another_checkpoint(tmp_path):
    checkpoint, other = build("bert-base-uncased", tmp_path / "a"), build("roberta-base", tmp_path / "b")
    with pytest.raises(zoo.ZooError, match="holds files of another save"):
        zoo.export(checkpoint, other)
    with pytest.raises(zoo.ZooError, match="holds files of another save"):
        zoo.export(checkpoint, checkpoint)  # its weights would stay, and be loaded


@pytest.mark.parametrize("spec", ["t5-bare", "whisper-bare"])
def test_an_encoder_and_a_decoder_without_a_head(spec, exported, rng):
    """One graph of both, with a mask of each, for several rows of the decoder to a row of the encoder."""
    folder, checkpoint = exported(spec)
    ours, wanted = zoo.load_model(folder, device="onnx"), zoo.load_model(checkpoint)
    given = {"decoder_input_ids": rng.integers(3, 90, (4, 5)), "decoder_attention_mask": np.arange(5) < [[5], [3]] * 2}
    if spec == "t5-bare":
        given |= {"input_ids": IDS, "attention_mask": np.arange(6) < [[6], [4]]}
    else:
        shape = 2, wanted.config.num_mel_bins, wanted.config.frames
        given["input_features"] = rng.normal(size=shape).astype(np.float32)
    for found, expected in zip(ours(**given), wanted(**given), strict=True):
        assert_close(found, expected)
    run_readme(folder)


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(UnsupportedError, match="precision 'int9' is not one of float32, int8; did you mean"):
        zoo.export(build("bert-base-uncased", tmp_path / "a"), tmp_path / "b", precision="int9")
    with pytest.raises(UnsupportedError, match="'dynamic'"):
        zoo.export(zoo.load_model(build("llama-dynamic", tmp_path / "c")), tmp_path / "d")
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "d").exists()
