"""Graphs that are kept on disk: found again, and made again where something else is there."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zoo
from parity.checkpoints import build
from zoo.engines.onnx import cache
from zoo.engines.onnx.session import Session
from zoo.errors import UnsupportedError, ZooError

pytest.importorskip("onnx", reason="needs onnx, which writes the graphs")
pytest.importorskip("onnxruntime", reason="needs onnxruntime, which runs the graphs")

IDS = np.arange(5, 17).reshape(2, 6)


def given(folder: Path) -> np.ndarray:
    found = zoo.load_model(folder, device="onnx")(IDS)
    np.testing.assert_allclose(found, zoo.load_model(folder)(IDS), rtol=1e-4, atol=1e-5)
    return found


def test_a_second_load_traces_nothing(tmp_path, kept, traces):
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    given(folder)
    assert traces == ["forward"]
    (found,) = kept.glob("*/*.onnx")
    assert found.stat().st_size < (folder / "model.safetensors").stat().st_size  # whose weights stay where they are
    assert not list(kept.glob("*/*.data"))


@pytest.mark.parametrize("spec", ["bert-own-decoder", "Llama-3.2-1B", "roberta-base"])
def test_weights_of_other_types_and_files(spec, tmp_path, kept, traces):
    """16 bits, and several files."""
    folder = build(spec, tmp_path / "a")
    for _ in range(2):
        given(folder)
    assert traces == ["forward"]


def test_other_weights_have_other_graphs(tmp_path, kept, traces):
    a = given(build("bert-base-uncased", tmp_path / "a"))
    b = given(build("bert-base-uncased", tmp_path / "a", seed=1))
    assert traces == ["forward", "forward"]
    assert not np.allclose(a, b)


@pytest.mark.parametrize("suffix", ["json", "onnx"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff\x00", None], ids=str)
def test_a_damaged_graph_is_made_again(suffix, content, tmp_path, kept, traces):
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    (path,) = kept.glob(f"*/*.{suffix}")
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    given(folder)
    given(folder)
    assert traces == ["forward", "forward"]


@pytest.mark.parametrize("damage", ["other numbers", "numbers of the same time", "cut", "gone"])
def test_a_damaged_file_of_weights_is_made_again(damage, tmp_path, kept, traces, monkeypatch):
    monkeypatch.setattr(cache, "MAX_EMBEDDED_BYTES", 0)
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    (path,) = kept.glob("*/*.data")
    before, content = path.stat(), path.read_bytes()
    gc.collect()  # the session that maps the file, as Windows writes to none that is mapped
    path.write_bytes(content[: len(content) // 2] if damage == "cut" else content[::-1])
    if damage == "gone":
        path.unlink()
    if damage == "numbers of the same time":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    given(folder)
    assert traces == ["forward", "forward"]


def test_graphs_of_two_models_that_were_swapped_are_made_again(tmp_path, kept, traces):
    folders = [build("bert-base-uncased", tmp_path / name, seed=i) for i, name in enumerate("ab")]
    for folder in folders:
        given(folder)
    one, other = (sorted(kept.glob(f"*/*.{suffix}")) for suffix in ("json", "onnx"))
    for paths in (one, other):
        first, second = (path.read_bytes() for path in paths)
        paths[0].write_bytes(second)
        paths[1].write_bytes(first)
    for folder in folders:
        given(folder)
    assert len(traces) == 4


def test_another_onnx_runtime_has_other_graphs(tmp_path, kept, traces, monkeypatch):
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    monkeypatch.setattr(sys.modules["onnxruntime"], "__version__", "99.0")
    cache.program.cache_clear()
    given(folder)
    cache.program.cache_clear()
    assert traces == ["forward", "forward"]


def test_a_folder_that_cannot_be_written(tmp_path, kept, traces):
    kept.parent.mkdir(parents=True)
    kept.write_text("a file")
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    given(folder)
    assert traces == ["forward", "forward"]


def test_the_least_recently_used_goes_first(tmp_path, kept, monkeypatch):
    folders = [build("bert-base-uncased", tmp_path / name, seed=i) for i, name in enumerate("abc")]
    for i, folder in enumerate(folders):
        given(folder)
        for path in set(kept.glob("*/*")):
            os.utime(path, (i, i))
        if i == 1:
            monkeypatch.setattr(cache, "LIMIT", int(1.5 * sum(p.stat().st_size for p in kept.glob("*/*")) / 2))
    assert len(list(kept.iterdir())) == 1


def test_processes_that_begin_at_once(tmp_path, kept):
    folder = build("bert-base-uncased", tmp_path / "a")
    code = f"import zoo, numpy as np\nprint(zoo.load_model({str(folder)!r}, device='onnx')(np.ones((1, 4), int)).sum())"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert len({one.communicate(timeout=300)[0] for one in started}) == 1
    assert [one.returncode for one in started] == [0] * 3
    for path in kept.glob("*/*.json"):
        assert json.loads(path.read_text())["method"] == "BertForMaskedLM.forward"
    assert {path.suffix for path in kept.glob("*/*")} == {".json", ".onnx"}  # and nothing half done


def test_a_folder_that_another_process_removed_is_made_again(kept, monkeypatch):
    """While this one waits for its turn, the other makes room: an empty folder goes first."""
    graphs, acquire = cache.GraphFolder("a model"), cache.FileLock.acquire

    def acquired(lock: Any, *patience: float) -> Any:
        turn = acquire(lock, *patience)
        graphs.path.rmdir()
        return turn

    monkeypatch.setattr(cache.FileLock, "acquire", acquired)
    with graphs.making() as folder:
        assert folder == graphs.path
        assert folder.is_dir()


def test_what_a_killed_process_left_is_removed(tmp_path, kept):
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    (path,) = kept.glob("*/*.json")
    path.unlink()
    left = path.with_name(".half")
    left.mkdir()
    (left / "x.onnx.data").write_bytes(b"1")
    given(folder)
    assert path.exists()
    assert not left.exists()


@pytest.mark.parametrize("where", ["before", "while writing"])
def test_a_full_disk_is_one_error(where, tmp_path, kept, monkeypatch):
    folder = build("bert-base-uncased", tmp_path / "a")
    model = zoo.load_model(folder, device="onnx", weights="int8")
    monkeypatch.setattr(cache, "MAX_EMBEDDED_BYTES", 0)

    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as m:
        if where == "before":
            m.setattr(cache.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
            message = r"needs .* on the disk, and 0 MB are free: free some, or set HF_ASSETS_CACHE"
        else:
            m.setattr("zoo.engines.onnx.trace.Traced.save", full)
            message = r"cannot be written: No space left on device: free some"
        with pytest.raises(ZooError, match=message):
            model(IDS)
    assert not [path for path in kept.glob("*/*") if path.is_file()]  # nothing half done
    model(IDS)


def test_a_model_larger_than_memory_is_refused(tmp_path, kept, monkeypatch):
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    monkeypatch.setattr(cache, "machine_memory", lambda: 1000)
    with pytest.raises(ZooError, match=r"the graph of .*forward needs .* MB of memory, and there are 0 MB"):
        zoo.load_model(folder, device="onnx")(IDS)


def test_long_writing_is_announced(tmp_path, kept, monkeypatch, capsys):
    monkeypatch.setattr(cache, "MAX_EMBEDDED_BYTES", 0)
    folder = build("bert-base-uncased", tmp_path / "a")
    given(folder)
    assert not capsys.readouterr().err
    monkeypatch.setattr(cache, "MIN_ANNOUNCED_BYTES", 1000)
    given(build("bert-base-uncased", tmp_path / "a", seed=1))
    assert re.fullmatch(
        r"zoo: writing \d+ MB for ONNX Runtime \(BertForMaskedLM.forward, once\): \d+ s\n", capsys.readouterr().err
    )


def test_an_old_runtime_is_refused(monkeypatch):
    monkeypatch.setattr(sys.modules["onnxruntime"], "__version__", "1.22.1")
    with pytest.raises(UnsupportedError, match=r"needs ONNX Runtime 1.23 or newer, found 1.22.1: pip install"):
        zoo.load_model("stories260k", device="onnx")


def test_a_session_that_packs_begins_when_the_other_has_ended(monkeypatch):
    """Both at once would hold a model's weights twice."""
    import onnx

    sessions: list[Any] = []
    packed: list[bool] = []
    made = Session._make_session

    def noted(self: Session, is_packed: bool) -> Any:
        assert not any(one() for one in sessions)
        found = made(self, is_packed)
        sessions.append(weakref.ref(found))
        packed.append(is_packed)
        return found

    monkeypatch.setattr(Session, "_make_session", noted)
    w = np.arange(12, dtype=np.float32).reshape(3, 4)
    x, y = (onnx.helper.make_tensor_value_info(name, 1, ["B", n]) for name, n in (("x", 3), ("y", 4)))
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], [onnx.numpy_helper.from_array(w, "w")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    session = Session(model.SerializeToString(), "CPUExecutionProvider", weight_bytes=10**8)
    session._packs_after = 0.0
    for _ in range(3):
        np.testing.assert_allclose(session({"x": np.ones((2, 3), np.float32)})[0], np.ones((2, 3)) @ w)
    assert packed == [False, True]


def packed_graph(tmp_path: Path, kept: Path) -> tuple[Any, Path]:
    """A model with matrices in int4, and the file of its graph's weights."""
    model = zoo.load_model(build("Llama-3.2-1B", tmp_path / "a"), device="onnx", weights="int4")
    model(IDS)
    (data,) = kept.glob("*/*.data")
    return model, data


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what is in memory")
def test_packed_weights_and_rows_of_tables_leave_memory(tmp_path, kept):
    model, data = packed_graph(tmp_path, kept)
    for _ in range(2):
        wanted = model(IDS)
        maps = Path("/proc/self/smaps").read_text(encoding="utf-8").split("VmFlags")
        mine = [re.search(r"\nRss: +(\d+) kB", one) for one in maps if data.name in one]
        assert len(mine) == 1
        assert not any(int(found[1]) for found in mine if found)
    np.testing.assert_array_equal(model(IDS), wanted)


def test_a_constant_beyond_its_file_is_made_again(tmp_path, kept, traces):
    model, data = packed_graph(tmp_path, kept)
    path = data.with_suffix("").with_suffix(".json")
    about = json.loads(path.read_text(encoding="utf-8"))
    constants = about["constants"].values()
    assert max(begin for _, _, begin in constants) < data.stat().st_size
    max(constants, key=lambda place: place[2])[2] += 1 << 20
    path.write_text(json.dumps(about), encoding="utf-8")
    again = zoo.load_model(tmp_path / "a", device="onnx", weights="int4")
    np.testing.assert_array_equal(again(IDS), model(IDS))
    assert traces == ["forward", "forward"]
