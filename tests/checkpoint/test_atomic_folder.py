"""The files of a folder change together: at every moment there are all of the old ones, or all of the new ones."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import zoo
from tests.platforms import WINDOWS
from zoo.errors import ZooError
from zoo.files import atomic_folder as module
from zoo.files.atomic_folder import atomic_folder
from zoo.models import bert

SIZES = {"vocab_size": 9, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, text: str, *names: str, replaces: tuple[str, ...] = ()) -> None:
    with atomic_folder(folder, replaces) as staged:
        for name in names or ("config.json", "weights", "deep/er"):
            (staged / name).parent.mkdir(exist_ok=True)
            (staged / name).write_text(text)


@pytest.fixture(params=["exchanged", "moved", "working directory"])
def folder(request, tmp_path, monkeypatch) -> Path:
    """A folder with files of before and of the user."""
    target = tmp_path / "parent" / "target"
    write(target, "old")
    assert contents(target) == {"config.json": "old", "weights": "old", "deep/er": "old"}
    (target / "deep" / "own.txt").write_text("own")
    (target / "notes").symlink_to("deep")
    (target / "gone.onnx").write_text("old")
    target.chmod(0o750)
    if request.param == "moved":
        monkeypatch.setattr(module, "_exchange", lambda a, b: False)
    if request.param == "working directory":
        monkeypatch.chdir(target)
    return target


def test_what_is_replaced_and_what_stays(folder):
    write(folder, "new", replaces=("*.onnx",))
    assert contents(folder) == {"config.json": "new", "weights": "new", "deep/er": "new", "deep/own.txt": "own"}
    assert (folder / "notes").is_symlink()
    assert folder.stat().st_mode & 0o777 == 0o750
    assert os.listdir(folder.parent) == ["target"]
    write(folder, "more", "another")
    assert contents(folder)["another"] == "more"
    assert os.listdir(folder.parent) == ["target"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_exception_leaves_the_old_files(error, folder, monkeypatch):
    """Also one that comes between two renames."""
    before = contents(folder)

    def stopped():
        with atomic_folder(folder) as staged:
            (staged / "config.json").write_text("new")
            raise error

    with pytest.raises(type(error)):
        stopped()
    assert contents(folder) == before
    replace, left = os.replace, [2]

    def fails(a, b):
        left[0] -= 1
        if left[0] == 0:
            raise error
        replace(a, b)

    def no_exchange(a, b):
        raise error

    if module._exchange.__name__ == "_exchange" and Path.cwd() != folder:
        monkeypatch.setattr(module, "_exchange", no_exchange)
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(type(error)):
        write(folder, "new")
    assert contents(folder) == before
    assert os.listdir(folder.parent) == ["target"]


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(NotADirectoryError):
        write(tmp_path / "a", "new")
    with pytest.raises(ZooError, match="Not a directory"):
        zoo.save(bert.BertModel.from_config(bert.BertConfig(hidden_size=8, **SIZES)), tmp_path / "a")


def test_a_link_to_a_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for text in ("old", "new"):
        write(tmp_path / "link", text)
        assert (tmp_path / "link").is_symlink()
        assert contents(tmp_path / "real")["config.json"] == text


SAVE = """
import os, signal, sys
from tests.checkpoint.test_atomic_folder import SIZES
import zoo
from tests.platforms import WINDOWS
from zoo.models import bert
call, at = sys.argv[2], int(sys.argv[3])
own, done = getattr(os, call), [0]
def killed(*arguments, **options):
    done[0] += 1
    if done[0] == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return own(*arguments, **options)
setattr(os, call, killed)
zoo.save(bert.BertModel.from_config(bert.BertConfig(hidden_size=16, **SIZES)), sys.argv[1])
"""


@pytest.mark.skipif(WINDOWS, reason="needs SIGKILL, and folders that can be flushed and exchanged")
@pytest.mark.parametrize(("call", "at"), [("fsync", 1), ("fsync", 2), ("link", 1), ("fsync", 3), ("fsync", 4)])
def test_a_kill_leaves_one_of_two_checkpoints(call, at, tmp_path):
    folder = tmp_path / "model"
    zoo.save(bert.BertModel.from_config(bert.BertConfig(hidden_size=8, **SIZES)), folder)
    (folder / "notes.txt").write_text("own")
    program = [sys.executable, "-c", SAVE, str(folder), call, str(at)]
    ended = subprocess.run(program, cwd=Path(__file__).parents[2], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert zoo.load_model(folder).config.hidden_size in (8, 16)
    assert (folder / "notes.txt").read_text() == "own"
    zoo.save(bert.BertModel.from_config(bert.BertConfig(hidden_size=16, **SIZES)), folder)
    assert zoo.load_model(folder).config.hidden_size == 16
    shutil.rmtree(folder)
