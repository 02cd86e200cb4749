"""`zoo info`: what a checkpoint holds."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import command

import zoo
from zoo.apps.cli.info import _memory, describe
from zoo.errors import InputError, ResourceError
from zoo.models.gemma3 import Gemma3ForCausalLM, Gemma3TextConfig
from zoo.models.llama3 import LlamaConfig
from zoo.weights import memory
from zoo.weights.memory import TensorHeader
from zoo.weights.slices import Split


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


def test_the_cache_of_layers_with_windows(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}
    config = Gemma3TextConfig(**sizes, num_hidden_layers=7, intermediate_size=32, vocab_size=50, sliding_window=100)
    model = Gemma3ForCausalLM.from_config(config)
    folder = zoo.save(model, tmp_path)
    for length in (50, 5000):
        cache = model.new_cache(2, length)
        size = sum(array.nbytes for array in (*cache.keys, *cache.values))
        found = describe(str(folder), batch=2, length=length)["memory"]
        assert found["cache"] == size
        assert (size < 2 * length * found["cache_per_token"]) == (length == 5000)


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


LLAMA_70B: dict[str, Any] = {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
}
LLAMA_70B |= {"num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192}


def headers_of_70b() -> list[TensorHeader]:
    D, F, V, G = 8192, 28672, 128256, 1024
    layer = {"input_layernorm": (D,), "post_attention_layernorm": (D,), "mlp.gate_proj": (F, D), "mlp.up_proj": (F, D)}
    layer |= {"mlp.down_proj": (D, F), "self_attn.q_proj": (D, D), "self_attn.o_proj": (D, D)}
    layer |= {"self_attn.k_proj": (G, D), "self_attn.v_proj": (G, D)}
    shapes = {"model.embed_tokens": (V, D), "lm_head": (V, D), "model.norm": (D,)}
    shapes |= {f"model.layers.{i}.{name}": shape for i in range(80) for name, shape in layer.items()}
    return [TensorHeader(f"{name}.weight", "BF16", shape) for name, shape in shapes.items()]


@pytest.mark.parametrize("ranks", [1, 2, 8, 16])
def test_memory_of_processes_that_share_a_model(ranks: int) -> None:
    """Llama 3 70B has 70,553,706,496 numbers (its report's 70.6 billion); norms are whole in each process."""
    config, tensors = LlamaConfig.from_dict({**LLAMA_70B, "architectures": ["LlamaForCausalLM"]}), headers_of_70b()
    assert sum(tensor.elements for tensor in tensors) == 70_553_706_496
    found = _memory(config, tensors, 1, None, ranks)
    norms, keys = 161 * 8192, 80 * 2 * 1024 * 8192
    shared = 70_553_706_496 - norms - keys
    assert found["weights"]["bfloat16"] == 2 * (shared // ranks + norms + keys // min(ranks, 8))
    assert found["cache_per_token"] == 2 * 80 * max(1, 8 // ranks) * 128 * 4
    assert set(found["weights"]) == {"stored", "float32", "bfloat16"}


def test_slices_make_up_the_whole() -> None:
    config = LlamaConfig.from_dict({**LLAMA_70B, "vocab_size": 128257})
    split = Split(config, 8)
    shapes = {"model.embed_tokens.weight": (128257, 4), "model.layers.3.mlp.down_proj.weight": (4, 28672)}
    for name, shape in shapes.items():
        parts = [split.part(name, shape, rank) for rank in range(8)]
        cut = 0 if "embed" in name else 1
        assert [part[cut].stop for part in parts[:-1]] == [part[cut].start for part in parts[1:]]
        assert (parts[0][cut].start, parts[-1][cut].stop) == (0, shape[cut])
        assert all(part[1 - cut] == slice(0, 4) for part in parts)
    assert split.part("model.layers.3.mlp.down_proj.bias", (4,), 2) == (slice(0, 4),)
    for ranks, fields, words in (
        (3, {}, "num_attention_heads is 64, which 3 processes cannot share"),
        (
            12,
            {"num_attention_heads": 48, "intermediate_size": 1200, "num_key_value_heads": 16, "head_dim": 64},
            "a divisor of 12",
        ),
        (8, {"vocab_size": 7}, "vocab_size is 7"),
        (8, {"intermediate_size": 30}, "intermediate_size is 30"),
    ):
        with pytest.raises(InputError, match=words):
            Split(LlamaConfig.from_dict({**LLAMA_70B, **fields}), ranks)


def test_info_of_processes(checkpoint: Callable[[str], str], in_terminal: Callable[..., str], tmp_path: Path) -> None:
    shown = " ".join(in_terminal("info", "stories260k", "--tp", "2").split())
    assert "memory of each of 2 processes" in shown
    done = command("info", "stories260k", "--tp", "3")
    assert (done.returncode, "which 3 processes cannot share" in done.stderr) == (1, True)
    assert "cannot be split over processes" in command("info", checkpoint("embed"), "--tp", "2").stderr
    zoo.save(zoo.load_model("stories260k", weights="int8"), tmp_path)
    assert "only F64, F32, F16, BF16 can be split" in command("info", str(tmp_path), "--tp", "2").stderr


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


def test_info_of_a_reader_of_lines(tmp_path: Path) -> None:
    from zoo.models.pp_ocrv6_small_rec import PPOCRV6SmallRecConfig, PPOCRV6SmallRecForTextRecognition

    blocks = [[[3, 8, 8, 1, False]] for _ in range(4)]
    backbone = {"model_type": "pp_lcnet_v4", "stem_channels": [3, 4, 8], "block_configs": blocks}
    sizes: dict[str, Any] = {"hidden_size": 8, "num_attention_heads": 2, "head_out_channels": 3}
    config = PPOCRV6SmallRecConfig.from_dict({**sizes, "backbone_config": backbone})
    zoo.save(PPOCRV6SmallRecForTextRecognition.from_config(config), tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"character_list": ["blank", "a", " "]}))
    found = json.loads(command("info", str(tmp_path)).stdout)
    assert found["task"] == "ocr"
    wanted = {"kind": "PPOCRV6SmallRecImageProcessor", "size": {"height": 48, "width": 320}, "crop": None}
    assert found["processor"] == wanted


def test_info_of_a_model_that_writes_a_tables_structure(tmp_path: Path) -> None:
    """Its config names nothing: its task does."""
    from parity.checkpoints import build

    assert describe(str(build("slanet", tmp_path)))["labels"] == [
        *("table", "table column", "table row", "table column header", "table spanning cell")
    ]
