"""`zoo grits`: what it reads, prints and refuses."""

from __future__ import annotations

import json

import pytest

from zoo.apps.cli import main
from zoo.apps.tables import Table
from zoo.apps.tables.grits import grits

TRUE = Table.from_html("<table><thead><tr><th>a<th>b</thead><tr><td>c<td>d</table>")
FOUND = Table.from_html("<table><tr><td>a<td>b<tr><td>c<td>x</table>")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRUE.save("true.html")
    FOUND.save("found.json")
    (tmp_path / "one.json").write_text(json.dumps([FOUND.to_dict()]))
    (tmp_path / "two.json").write_text(json.dumps([FOUND.to_dict()] * 2))
    (tmp_path / "latin.html").write_bytes("<table><tr><td>Größe</table>".encode("latin-1"))
    (tmp_path / "broken.json").write_text('{"cells": [')
    return tmp_path


@pytest.mark.parametrize("name", ["found.json", "one.json"])
def test_scores_are_those_of_the_function(files, name, capsys):
    assert main(["grits", "true.html", name]) == 0
    expected = {metric: grits(TRUE, FOUND, metric)._asdict() for metric in ("top", "con")}
    assert json.loads(capsys.readouterr().out) == expected
    assert main(["grits", "found.json", name, "--metric", "loc", "--published"]) == 0
    assert json.loads(capsys.readouterr().out)["loc"]["f"] == 1


def test_a_terminal_gets_a_table(files, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["grits", "found.json", "found.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "found.json, found.json"
    assert [line.split() for line in lines[2:]] == [[metric, *["1.0000"] * 4] for metric in ("top", "con", "loc")]
    monkeypatch.undo()
    assert main(["grits", str(files / "found.json"), str(files / "found.json"), "--text"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == lines[2:]
    with pytest.raises(SystemExit):
        main(["grits", str(files / "found.json"), str(files / "found.json"), "--text", "--json"])
    assert "--json and --text exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["true.html", "none.json"], "none.json: no such file"),
        (["true.html", "two.json"], "two.json: the file has 2 tables, expected one"),
        (["broken.json", "one.json"], "broken.json: the table: not JSON"),
        (["latin.html", "one.json"], "latin.html: not UTF-8"),
        (["true.html", "found.xlsx"], "found.xlsx: the file has the suffix '.xlsx'"),
    ],
)
def test_files_without_a_table_are_refused(files, names, message, capsys):
    assert main(["grits", *names]) == 1
    assert message in capsys.readouterr().err


def test_html_has_no_boxes_to_compare(files, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["grits", "true.html", "found.json", "--metric", "loc"])
    assert "--metric loc compares boxes" in capsys.readouterr().err
