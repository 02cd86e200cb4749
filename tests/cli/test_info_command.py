"""`zoo info`: what a checkpoint holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from running import command

import zoo
from zoo.apps.cli.info import describe


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
