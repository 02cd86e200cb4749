"""`zoo info`: what a checkpoint holds."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from running import command

import zoo
from zoo.apps.cli.info import describe
from zoo.errors import ResourceError
from zoo.weights import memory


def test_info_of_a_checkpoint_that_reads_images(
    vision: Callable[[str], str], in_terminal: Callable[..., str], tmp_path: Path
) -> None:
    folder = vision("segment")
    found = json.loads(command("info", folder).stdout)
    assert (found["architecture"], found["task"]) == ("BeitForSemanticSegmentation", "segment")
    assert (found["image_size"], found["patch_size"]) == (24, 4)
    assert found["labels"] == [f"kind {i}" for i in range(6)]
    assert found["processor"] == {"kind": "BeitImageProcessor", "size": {"height": 24, "width": 24}, "crop": None}
    assert "tokenizer" not in found
    assert "vocab_size" not in found
    shown = " ".join(in_terminal("info", folder).split())
    assert all(text in shown for text in ("image 24, patch 4", "BeitImageProcessor, height 24"))
    zoo.save(zoo.load_model(vision("embed")), tmp_path)
    assert "preprocessor_config.json" in json.loads(command("info", str(tmp_path)).stdout)["processor"]["error"]


def test_info(checkpoint: Callable[[str], str], in_terminal: Callable[..., str]) -> None:
    folder = checkpoint("fill-mask")
    found = json.loads(command("info", folder).stdout)
    model = zoo.load_model(folder)
    assert found["architecture"] == "BertForMaskedLM"
    assert found["task"] == "fill-mask"
    assert found["parameters"] == zoo.nn.count_parameters(model)
    assert (found["num_hidden_layers"], found["hidden_size"], found["num_attention_heads"]) == (2, 16, 2)
    assert found["tied"] == model.report.tied != {}
    assert found["unused"] == []
    assert found["tokenizer"]["kind"] == "WordPiece"
    assert found["files"]["model.safetensors"] == (Path(folder) / "model.safetensors").stat().st_size
    assert list(found["stored"]) == ["F32"]
    shown = in_terminal("info", folder)
    assert all(text in shown for text in ("BertForMaskedLM", f"{found['parameters']:,}", "layers 2", "config.json"))


def test_info_lists_what_is_unused_and_what_is_missing(tmp_path: Path, checkpoint: Callable[[str], str]) -> None:
    from safetensors.numpy import load_file, save_file

    folder = Path(checkpoint("embed"))
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "stray.weight": np.zeros((2, 3), np.float16)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    done = command("info", str(tmp_path))
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["unused"] == ["stray.weight"]
    assert found["stored"]["F16"] == {"tensors": 1, "elements": 6, "bytes": 12}
    assert "error" in found["tokenizer"]


def test_bytes_of_quantised_weights_by_type(tmp_path):
    folder = zoo.save(zoo.load_model("stories260k", weights="int4"), tmp_path)
    stored = describe(str(folder))["stored"]
    assert set(stored) == {"INT4_32", "INT8", "F32"}
    header = 8 + int.from_bytes((folder / "model.packed.safetensors").read_bytes()[:8], "little")
    total = sum(of["bytes"] for of in stored.values())
    assert total == (folder / "model.packed.safetensors").stat().st_size - header


def test_memory_of_precisions_is_what_loading_takes(tmp_path: Path) -> None:
    for weights in ("int8", "int4"):
        folder = zoo.save(zoo.load_model("stories260k", weights=weights), tmp_path / weights)
        stored = describe(str(folder))["memory"]["weights"]["stored"]
        assert describe("stories260k")["memory"]["weights"][weights] == pytest.approx(stored, rel=0.02)
    found = describe("stories260k", batch=3, length=50)["memory"]
    cache = zoo.load_model("stories260k").new_cache(3, 50)
    arrays = [*cache.keys, *cache.values]
    assert found["cache_per_token"] * 150 == sum(array.nbytes for array in arrays)
    assert found["peak"]["int8"] > found["weights"]["int8"] + found["cache_per_token"] * 150


@pytest.mark.parametrize(("batch", "length"), [(1, 256), (8, 64)])
def test_the_memory_of_a_batch_is_about_right(batch: int, length: int) -> None:
    model = zoo.load_model("stories260k")
    ids = np.ones((batch, length), int)
    model(ids, logits_to_keep=1)
    tracemalloc.start()
    model(ids, logits_to_keep=1, cache=model.new_cache(batch, length))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = describe("stories260k", batch=batch, length=length)["memory"]
    told = found["peak"]["stored"] - found["weights"]["stored"]
    assert peak / 3 < told < 3 * peak


def test_a_model_larger_than_the_machine_is_refused_with_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "machine_memory", lambda: 300_000)
    with pytest.raises(ResourceError, match=r"need 1\.0 MB of memory, and the machine has 300\.0 kB: .*int4 168\.7 kB"):
        zoo.load_model("stories260k")
    zoo.load_model("stories260k", weights="int8")
    found = describe("stories260k")
    assert "unused" not in found
    assert found["parameters"] == 260_032
    with monkeypatch.context() as patch:
        patch.setenv("ZOO_MEMORY_CHECK", "0")
        zoo.load_model("stories260k")
    monkeypatch.setattr(memory, "machine_memory", lambda: None)
    zoo.load_model("stories260k")
