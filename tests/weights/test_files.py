"""The choice of weight files: indices and shards, links; and weights that are not finite."""

from __future__ import annotations

import json

import numpy as np
import pytest

from zoo.errors import CheckpointError, MissingWeightError, NotFoundError
from zoo.hub import find
from zoo.weights import files
from zoo.weights.files import Sharded, choose_weight_file, non_finite, open_weights, read_index
from zoo.weights.safetensors import SafetensorsFile

INDEX = "model.safetensors.index.json"
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def save(path, **arrays):
    from safetensors.numpy import save_file

    save_file(arrays, path)
    return path


def index(folder, weight_map, name=INDEX):
    path = folder / name
    path.write_text(json.dumps({"metadata": {"total_size": 8}, "weight_map": weight_map}))
    return path


@pytest.fixture
def sharded(tmp_path):
    """A folder of two shards and their index."""
    save(tmp_path / FIRST, a=np.float32([1]), b=np.float32([2]))
    save(tmp_path / SECOND, c=np.float32([3]))
    index(tmp_path, {"a": FIRST, "b": FIRST, "c": SECOND})
    return tmp_path


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["pytorch_model.bin", "model.safetensors", "tf_model.h5"], "model.safetensors"),
        ([INDEX, "model.safetensors"], "model.safetensors"),
        ([INDEX, FIRST, SECOND, "pytorch_model.bin"], INDEX),
        (["pytorch_model.bin.index.json", "pytorch_model.bin"], "pytorch_model.bin"),
        (["pytorch_model.bin.index.json", "model.fp16.safetensors"], "pytorch_model.bin.index.json"),
        (["original/model.safetensors", "pytorch_model.bin"], "pytorch_model.bin"),
    ],
)
def test_choice(names, chosen):
    assert choose_weight_file(names) == chosen


@pytest.mark.parametrize(
    "names",
    [
        ["tf_model.h5", "flax_model.msgpack", "onnx/model.onnx", "model-Q4.gguf", "config.json"],
        ["original/consolidated.00.pth"],
        ["original/model.safetensors", "onnx/pytorch_model.bin"],
        ["model.fp16.safetensors", "diffusion_pytorch_model.safetensors"],
    ],
)
def test_nothing_to_choose(names):
    with pytest.raises(NotFoundError) as caught:
        choose_weight_file(names)
    assert all((name in str(caught.value)) == (name != "config.json") for name in names)
    assert "model.safetensors or" in str(caught.value)


def test_no_weights_at_all():
    with pytest.raises(NotFoundError, match="no weight file at all"):
        choose_weight_file(["config.json", "vocab.txt"])


@pytest.mark.parametrize("how", ["folder", "index", "list", "shards alone"])
def test_shards_as_one(sharded, how):
    files = {
        "folder": sharded,
        "index": str(sharded / INDEX),
        "list": [sharded / INDEX, sharded / FIRST, sharded / SECOND],
        "shards alone": [sharded / FIRST, sharded / SECOND],
    }[how]
    source = open_weights(files)
    assert {name: source.read(name).array.item() for name in source.names()} == {"a": 1, "b": 2, "c": 3}
    assert source.files == [sharded / FIRST, sharded / SECOND]
    assert (source.shape("c"), source.dtype("c"), "c" in source, "d" in source) == ((1,), "F32", True, False)
    with pytest.raises(MissingWeightError, match="none of 2 shards has d"):
        source.read("d")


def test_a_load_reads_the_index_once(sharded, monkeypatch):
    read = []
    monkeypatch.setattr(files, "read_index", lambda path: read.append(path.name) or read_index(path))
    (sharded / "config.json").write_text("{}")
    assert set(find(sharded).open_weights().names()) == {"a", "b", "c"}
    assert read == [INDEX]


def test_one_file(sharded):
    assert isinstance(open_weights(sharded / FIRST), SafetensorsFile)
    assert isinstance(open_weights([sharded / FIRST]), SafetensorsFile)


def test_bin_shards(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.ones(2)}, tmp_path / "pytorch_model-00001-of-00001.bin")
    index(tmp_path, {"a": "pytorch_model-00001-of-00001.bin"}, "pytorch_model.bin.index.json")
    assert open_weights(tmp_path).read("a").array.tolist() == [1, 1]


def test_unlisted_tensors_stay_visible(sharded):
    save(sharded / SECOND, c=np.float32([3]), extra=np.float32([4]))
    assert "extra" in open_weights(sharded).names()


BAD_SHARDS = {
    "parent": "../x.safetensors",
    "parent itself": "..",
    "folder itself": ".",
    "absolute": "/etc/passwd",
    "subfolder": "original/x.safetensors",
    "drive": "C:\\x.safetensors",
    "drive, relative": "C:x.safetensors",
    "backslash": "..\\x.safetensors",
    "network": "\\\\host\\x.safetensors",
    "url": "https://host/x.safetensors",
    "NUL": "x\0.safetensors",
    "newline": "x\n.safetensors",
    "empty": "",
    "blank": " ",
    "device": "NUL",
    "device with a suffix": "con.safetensors",
    "numbered device": "COM1.safetensors",
    "pattern": "*.safetensors",
    "long": "x" * 300,
    "a number": 1,
    "a list": ["x.safetensors"],
    "null": None,
}


@pytest.mark.parametrize("shard", BAD_SHARDS.values(), ids=BAD_SHARDS)
def test_bad_shard_names(tmp_path, shard):
    with pytest.raises(CheckpointError, match=INDEX) as caught:
        read_index(index(tmp_path, {"encoder.weight": shard}))
    assert "file" in str(caught.value)


@pytest.mark.parametrize("weight_map", [None, [], {}, "x", [["a", "b"]], 3])
def test_bad_weight_map(tmp_path, weight_map):
    with pytest.raises(CheckpointError, match="weight_map is"):
        read_index(index(tmp_path, weight_map))


def test_bad_json(tmp_path):
    path = tmp_path / INDEX
    path.write_text('{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}')
    with pytest.raises(CheckpointError, match="'a' occurs twice"):
        read_index(path)


def test_read_index(tmp_path):
    assert read_index(index(tmp_path, {"a": "x", "b": "y", "c": "x"})) == {"x": ["a", "c"], "y": ["b"]}


@pytest.mark.parametrize(
    ("weight_map", "says"),
    [
        ({"a": FIRST, "b": SECOND, "c": SECOND}, rf"'b' is mapped to {SECOND}, but is in {FIRST}"),
        ({"a": FIRST, "b": FIRST, "d": SECOND}, rf"{SECOND} has no 'd'"),
    ],
)
def test_index_against_shards(sharded, weight_map, says):
    with pytest.raises(CheckpointError, match=says):
        open_weights(index(sharded, weight_map))


def test_missing_shard(sharded):
    (sharded / SECOND).unlink()
    with pytest.raises(NotFoundError, match=f"has no {SECOND}, which the index names; did you mean '{FIRST}'"):
        open_weights(sharded)


def test_same_tensor_in_two_shards(sharded):
    save(sharded / SECOND, c=np.float32([3]), a=np.float32([4]))
    with pytest.raises(CheckpointError, match=f"'a' is both in .*{FIRST} and in .*{SECOND}"):
        open_weights(sharded)


def test_files_that_do_not_belong_together(sharded, tmp_path):
    with pytest.raises(CheckpointError, match="is not a shard of"):
        open_weights([sharded / INDEX, save(sharded / "other.safetensors", d=np.ones(1))])
    with pytest.raises(CheckpointError, match="expected one index"):
        open_weights([sharded / INDEX, index(sharded, {"a": "x"}, "pytorch_model.bin.index.json")])
    with pytest.raises(NotFoundError, match="no weight file"):
        open_weights([])
    with pytest.raises(CheckpointError, match=r"found \.ggml"):
        open_weights(sharded / "model.ggml")


def link(path, to):
    try:
        path.symlink_to(to)
    except OSError:
        pytest.skip("needs the right to make symbolic links")


def test_link_out_of_the_folder(sharded):
    outside = sharded / "outside.safetensors"
    folder = sharded / "model"
    folder.mkdir()
    (sharded / SECOND).rename(outside)
    for name in (INDEX, FIRST):
        (sharded / name).rename(folder / name)
    link(folder / SECOND, outside)
    with pytest.raises(CheckpointError, match=f"{SECOND}: a link out of its folder"):
        open_weights(folder)
    (folder / SECOND).unlink()
    link(folder / SECOND, folder / SECOND)
    with pytest.raises(CheckpointError, match="cannot be followed"):
        open_weights(folder)


def test_non_finite(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    tensors = {"ints": torch.full((3,), 2**62), "no elements": torch.zeros(0)}
    for dtype in (torch.float16, torch.float32, torch.float64, torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn):
        name = str(dtype).removeprefix("torch.")
        tensors[f"{name} fine"] = torch.tensor([-448.0, 0.0, 448.0]).to(dtype)
        tensors[f"{name} nan"] = torch.tensor([1.0, -float("nan")]).to(dtype)
        if name != "float8_e4m3fn":
            tensors[f"{name} inf"] = torch.tensor([1.0, -float("inf")]).to(dtype)
    late = torch.zeros(3 << 20)
    late[-1] = float("nan")
    tensors["late nan"] = late
    save_file(tensors, tmp_path / "x.safetensors")
    source = open_weights(tmp_path / "x.safetensors")
    assert set(non_finite(source)) == {n for n in tensors if n.endswith(("nan", "inf"))}
    assert non_finite(source, ["float32 fine", "late nan"]) == ["late nan"]


def test_sharded_of_any_sources(sharded):
    sources = {sharded / name: SafetensorsFile(sharded / name) for name in (FIRST, SECOND)}
    assert list(Sharded(sources).names()) == ["a", "b", "c"]
