"""A file is on the disk before it replaces another."""

from __future__ import annotations

import os
import stat

import pytest

from tests.platforms import WINDOWS
from zoo.files.atomic_write import atomic_write


def test_order_of_writing(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(file):
        done.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else f"file of {os.fstat(file).st_size} bytes")
        fsync(file)

    def noted_replace(source, target):
        done.append("renamed")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    with atomic_write(tmp_path / "a") as part:
        part.write_bytes(b"four")
    assert done == ["file of 4 bytes", "renamed", *(["folder"] if not WINDOWS else [])]


def test_a_disk_that_fails(tmp_path, monkeypatch):
    """A file that cannot be flushed to the disk replaces nothing."""
    (tmp_path / "a").write_text("old")

    def fails(file):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="Input/output"), atomic_write(tmp_path / "a") as part:
        part.write_text("new")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
