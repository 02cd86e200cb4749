"""Saving: the format by the suffix, and files that are complete or not there."""

from __future__ import annotations

import errno
import os
import stat
import sys

import pytest
from random_tables import make

from zoo.apps.tables import Table
from zoo.apps.tables.table import SUFFIXES
from zoo.errors import InputError, TableError

TABLE = make([["Größe", "a\nb"], ["1", "2"]], 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_suffix_names_the_format(suffix, tmp_path):
    if suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="the extra 'tables': openpyxl")
    for name in (f"table{suffix}", f"again{suffix.upper()}"):
        TABLE.save(tmp_path / name)
        data = (tmp_path / name).read_bytes()
        if suffix == ".csv":
            assert data == TABLE.to_csv().encode()
        elif suffix == ".md":
            assert data == TABLE.to_markdown().encode()
        elif suffix == ".json":
            assert Table.from_json(data) == TABLE
        elif suffix == ".html":
            assert b'<meta charset="utf-8">' in data
            assert data.decode().endswith(TABLE.to_html())
        else:
            assert data.startswith(b"PK")
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("table.xls", "suffix '.xls', expected .csv, .html, .md, .json, .xlsx; did you mean '.xlsx'"),
        ("table.htm", "did you mean '.html'"),
        ("table", "no suffix, expected"),
        (".csv", "no suffix, expected"),
        ("no/table.csv", "No such file"),
        ("folder.csv", "it is a folder"),
        ("folder.xlsx", "it is a folder"),
        ("pipe.csv", "not a regular file"),
        ("a\0.csv", "null"),
        ("x" * 300 + ".csv", "too long"),
    ],
)
def test_where_nothing_can_be_written(name, message, tmp_path):
    for folder in ("folder.csv", "folder.xlsx"):
        (tmp_path / folder).mkdir()
    if name == "pipe.csv":
        if not hasattr(os, "mkfifo"):
            pytest.skip("needs named pipes")
        os.mkfifo(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(TableError, match=f"cannot write to .*{message}"):
        TABLE.save(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_is_replaced_and_kept_where_that_fails(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("before")
    monkeypatch.setattr("pathlib.Path.write_bytes", _full)
    with pytest.raises(TableError, match=f"cannot write to {path}: {os.strerror(errno.ENOSPC)}"):
        TABLE.save(path)
    assert path.read_text() == "before"
    monkeypatch.undo()
    TABLE.save(path)
    assert path.read_bytes() == TABLE.to_csv().encode()
    assert list(tmp_path.iterdir()) == [path]


def _full(path, data):
    with open(path, "wb") as file:
        file.write(data[:3])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_workbook_is_kept_where_the_disk_is_full(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="the extra 'tables': openpyxl")
    path = tmp_path / "table.xlsx"
    TABLE.save(path)
    before = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openpyxl.Workbook, "save", lambda book, at: _full(at, b"PK too much"))
        with pytest.raises(TableError, match=os.strerror(errno.ENOSPC)):
            TABLE.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_read_only_file_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("before")
    path.chmod(stat.S_IRUSR)
    monkeypatch.setattr(os, "access", lambda path, mode: bool(os.stat(path).st_mode & stat.S_IWUSR))  # also for root
    with pytest.raises(TableError, match="it is read-only"):
        TABLE.save(path)
    assert path.read_text() == "before"


@pytest.mark.parametrize(("package", "call"), [("openpyxl", "to_xlsx"), ("pandas", "to_pandas")])
def test_a_package_that_is_missing_is_named(package, call, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"requires the package {package}: pip install"):
        getattr(TABLE, call)(*[tmp_path / "a.xlsx"][: call == "to_xlsx"])
