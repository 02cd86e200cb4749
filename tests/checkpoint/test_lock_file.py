"""The lock file itself: several writers, links, failed writes, and what is no lock."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import zoo
from tests.platforms import names_in
from zoo.checkpoint.lock_file import LockedFile, LockEntry, read_lock, write_lock
from zoo.errors import LockError
from zoo.lock import check, lock


def test_concurrent_writes_lose_nothing(tmp_path):
    path = tmp_path / "zoo.lock"
    entries = {f"org/name{i}": LockEntry(f"{i:040x}", {"config.json": LockedFile(i, "0" * 64)}) for i in range(24)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda item: write_lock(path, dict([item])), entries.items()))
    assert read_lock(path) == dict(sorted(entries.items()))
    assert names_in(tmp_path) == ["zoo.lock"]


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "kept").mkdir()
    link, target = tmp_path / "zoo.lock", tmp_path / "kept" / "production.lock"
    link.symlink_to(Path("kept", "production.lock"))
    lock(["stories260k"], link)  # which leads to nothing yet
    write_lock(link, {"org/name": LockEntry("0" * 40, {})})
    assert link.is_symlink()
    assert list(read_lock(target)) == ["org/name", "stories260k"]
    assert names_in(target.parent) == ["production.lock"]


HOLD = """
import sys, time
from pathlib import Path
from zoo.files.atomic_write import one_writer
with one_writer(Path(sys.argv[1]), 10):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_writer_that_died_blocks_nobody(tmp_path, monkeypatch):
    """One that lives does, until it ends, however it ends."""
    monkeypatch.setattr("zoo.checkpoint.lock_file.LOCK_TIMEOUT", 0.05)
    path = tmp_path / "zoo.lock"
    (tmp_path / ".zoo.lock.writing").touch()  # left behind
    lock(["stories260k"], path)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "held\n"
        with pytest.raises(LockError, match="being written by another process, for more than"):
            lock(["stories260k"], path)
        writer.kill()
    lock(["stories260k"], path)
    assert names_in(tmp_path) == ["zoo.lock"]


def test_no_other_file_is_made_for_the_lock(tmp_path):
    """A link in the place of the file that is held would have one made where it leads to."""
    (tmp_path / ".zoo.lock.writing").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LockError, match="cannot write"):
        lock(["stories260k"], tmp_path / "zoo.lock")
    assert not (tmp_path / "elsewhere").exists()


def test_a_failed_write_leaves_the_old_lock(tmp_path, monkeypatch):
    path = tmp_path / "zoo.lock"
    lock(["stories260k"], path)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(LockError, match=r"cannot write .*zoo\.lock: No space left"):
        lock(["stories260k"], path)
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["zoo.lock"]


GOOD = {"version": 1, "checkpoints": {"m": {"revision": None, "fingerprint": "sha256:", "files": {}}}}


def with_entry(**fields: object) -> dict:
    return {"version": 1, "checkpoints": {"m": {**GOOD["checkpoints"]["m"], **fields}}}


def with_file(name: str = "a", **fields: object) -> dict:
    return with_entry(files={name: {"size": 1, "sha256": "0" * 64, **fields}})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"{", "not JSON"),
        (b"[]", "expected a JSON object"),
        (b'{"version": 1, "version": 1}', "twice"),
        (b"[" * 100_000, "nested too deeply"),
        ({"version": 1}, "no 'checkpoints'"),
        ({"version": 2, "checkpoints": {}}, "version 2, expected 1"),
        ({"version": True, "checkpoints": {}}, "version True"),
        ({"version": 1.0, "checkpoints": {}}, "version 1.0"),
        ({"version": 1, "checkpoints": []}, "a list, expected an object"),
        ({"version": 1, "checkpoint": {}}, "'checkpoint' is not known; did you mean 'checkpoints'"),
        ({"version": 1, "checkpoints": {"m": None}}, "'m': a NoneType"),
        (with_entry(revision="main"), "revision 'main', expected 40"),
        (with_entry(files=[]), "'m': a list"),
        (with_entry(hash=1), "'hash' is not known"),
        (with_entry(), "edited by hand"),
        (with_file(size=-1), "size -1"),
        (with_file(size=True), "size True"),
        (with_file(size=1.5), "size 1.5"),
        (with_file(sha256="0" * 63), "64 hexadecimal digits"),
        (with_file(sha256="A" * 64), "64 hexadecimal digits"),
        (with_file(sha256=None), "sha256 None"),
        *(
            (with_file(name), "is not the name of a file in a checkpoint")
            for name in (
                *("../config.json", "a/../b", "/etc/passwd", "..", ".", "", " ", "a//b", "a/", "./a"),
                *("..\\config.json", "C:\\a", "C:a", "a\\b", "\\\\host\\share", "a\0b", "a\nb", "a:stream"),
            )
        ),
    ],
    ids=repr,
)
def test_what_is_no_lock_is_refused(tmp_path, content, says):
    path = tmp_path / "zoo.lock"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    before = path.read_bytes()
    for use in (lambda: zoo.load("stories260k", lock=path), lambda: lock(["stories260k"], path)):
        with pytest.raises(LockError) as caught:
            use()
        assert str(path) in str(caught.value)
        assert says in str(caught.value)
    assert path.read_bytes() == before


def test_a_lock_that_is_not_there_or_no_file(tmp_path):
    with pytest.raises(LockError, match="no such file; `zoo lock NAME -o"):
        zoo.load("stories260k", lock=tmp_path / "zoo.lock")
    with pytest.raises(LockError, match="lock is True, expected the path"):
        zoo.load("stories260k", lock=True)  # type: ignore[arg-type]
    with pytest.raises(LockError, match="expected a file, found a folder"):
        zoo.load("stories260k", lock=tmp_path)
    for use in (
        lambda: zoo.load("stories260k", lock=""),
        lambda: lock(["stories260k"], ""),
        lambda: write_lock("", {}),
        lambda: check(""),
    ):
        with pytest.raises(LockError, match="the lock's path is empty"):
            use()
    with pytest.raises(LockError, match="cannot write"):
        lock(["stories260k"], tmp_path / "none" / "zoo.lock")
    (tmp_path / "large").write_bytes(b" " * (17 << 20))
    with pytest.raises(LockError, match="more than 16777216 bytes"):
        zoo.load("stories260k", lock=tmp_path / "large")
