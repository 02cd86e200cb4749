"""`zoo map` and `zoo.apps.batch.map_files`: formats of rows, results, errors as rows, what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from tests.cli.map_rows import TEXTS, rows_in, write_rows
from zoo.apps.batch import map_files
from zoo.apps.batch.results import to_plain
from zoo.apps.cli import main
from zoo.errors import InputError, NotFoundError, UnsupportedError, ZooError


@pytest.mark.parametrize("given", [".jsonl", ".csv", ".parquet", ".xlsx"])
@pytest.mark.parametrize("written", [".jsonl", ".csv", ".parquet"])
def test_formats(given: str, written: str, checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    if ".parquet" in (given, written):
        pytest.importorskip("pyarrow", reason="pyarrow reads and writes Parquet")
    said = ["the cat", 'a "garden",\nin two lines', "who is outside", "where", "ünïcode 猫"]
    source = write_rows(tmp_path / f"in{given}", [{"id": str(i), "text": text} for i, text in enumerate(said)])
    found = map_files(checkpoint("embed"), source, tmp_path / f"out{written}", rows=2)
    assert (found.rows, found.errors, found.known) == (5, 0, 0)
    rows = rows_in(tmp_path / f"out{written}")
    assert [row["id"] for row in rows] == list("01234")
    assert [row["text"] for row in rows] == said
    vectors = [json.loads(v) if isinstance(v := row["embedding"], str) else v for row in rows]
    task: Any = zoo.load(checkpoint("embed"))
    # In parts of two, as they were computed.
    wanted = np.concatenate([task(said[i : i + 2]) for i in range(0, 5, 2)])
    assert np.array_equal(np.array(vectors, np.float32), wanted)
    assert list(tmp_path.glob("*.parts")) == []
    assert {row["error"] for row in rows} == ({""} if written == ".csv" else {None})


@pytest.mark.parametrize("task", ["fill-mask", "classify", "tag"])
def test_results_are_those_of_the_task(task: str, checkpoint: Callable[[str], str], texts: Path) -> None:
    out = texts.with_name("out.jsonl")
    found = map_files(checkpoint(task), texts, out, task=task, rows=100)
    loaded: Any = zoo.load(checkpoint(task), task=task)
    assert found.errors == (4 if task == "fill-mask" else 0)
    for row, text in zip(rows_in(out), TEXTS, strict=True):
        if row["error"] is not None:
            assert row["error"] == f"{texts}, row {row['id'] + 1}: text holds no mask: write '[MASK]' there"
            assert row["words"] is None
            continue
        wanted: Any = to_plain(loaded(text))
        if task == "classify":
            assert (row["label"], row["score"]) == (wanted[0]["label"], pytest.approx(wanted[0]["score"], rel=1e-4))
        elif task == "tag":
            assert [one["text"] for one in row["entities"]] == [one["text"] for one in wanted]
        else:
            assert [[word["token"] for word in mask] for mask in row["words"]] == [[word["token"] for word in wanted]]


def test_pairs_answers_and_top_k(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    rows = [{"question": "who", "context": f"the cat {i}", "n": i} for i in range(3)]
    source = write_rows(tmp_path / "qa.jsonl", rows)
    map_files(checkpoint("answer"), source, tmp_path / "a.jsonl", options={"top_k": 2}, keep=["n"])
    answer: Any = zoo.load(checkpoint("answer"))
    for row, given in zip(rows_in(tmp_path / "a.jsonl"), rows, strict=True):
        wanted = answer(given["question"], given["context"], top_k=2)
        assert [one["text"] for one in row["answers"]] == [one.text for one in wanted]
        assert (row["answer"], row["start"], row["n"]) == (wanted[0].text, wanted[0].start, given["n"])
        assert "context" not in row
    args = [checkpoint("classify"), str(source), str(tmp_path / "c.jsonl"), "--text", "question", "--pair", "context"]
    assert main(["map", *args, "--task", "classify", "--top-k", "2"]) == 0
    classify: Any = zoo.load(checkpoint("classify"))
    for row, given in zip(rows_in(tmp_path / "c.jsonl"), rows, strict=True):
        wanted = classify(given["question"], given["context"])
        assert [one["label"] for one in row["labels"]] == [one.label for one in wanted]


def test_what_a_model_writes(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.csv", [{"text": "Once upon a time"}, {"text": "Lily saw"}])
    args = ["map", "stories260k", str(source), str(tmp_path / "out.csv"), "--max-new-tokens", "5", "--keep", ""]
    assert main(args) == 0
    llm: Any = zoo.load("stories260k")
    wanted = llm(["Once upon a time", "Lily saw"], max_new_tokens=5)
    assert [row["generated"] for row in rows_in(tmp_path / "out.csv")] == wanted
    assert list(rows_in(tmp_path / "out.csv")[0]) == ["generated", "error"]


def test_bad_rows_are_rows(
    checkpoint: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = b'id,text\n0,the cat\n1\n2,"open"x\n3,\xff garden\n\n4,who\n5,a,b\n'
    (tmp_path / "in.csv").write_bytes(bad)
    (tmp_path / "in.jsonl").write_text('{"text": "the cat"}\n{"txt": "a"}\n[1]\n{\n{"text": 3}\n{"text": NaN}\n"x"\n')
    assert main(["map", checkpoint("embed"), str(tmp_path / "in.csv"), str(tmp_path / "a.jsonl"), "--rows", "4"]) == 1
    rows = rows_in(tmp_path / "a.jsonl")
    said = [row["error"] and row["error"].partition("in.csv, ")[2] for row in rows]
    assert said[0] is said[4] is None
    assert said[1] == "row 2: 1 fields, expected 2"
    assert said[2] is not None
    assert said[2].startswith("row 3: is not CSV: ")
    assert said[3] == "row 4: is not UTF-8: byte 0xff at 2"
    assert said[5] == "row 6: 3 fields, expected 2"
    assert [row["id"] for row in rows if row["error"] is None] == ["0", "4"]
    assert all((row["embedding"] is None) == (row["error"] is not None) for row in rows)
    err = capsys.readouterr().err.splitlines()
    assert err[0].endswith("a.jsonl: 6 rows")
    assert err[-1] == "zoo: 4 rows could not be used: the column 'error' says why"
    assert main(["map", checkpoint("embed"), str(tmp_path / "in.jsonl"), str(tmp_path / "b.jsonl")]) == 1
    said = [row["error"] and row["error"].partition(": ")[2] for row in rows_in(tmp_path / "b.jsonl")]
    assert said[0] is None
    assert said[1:3] == ["no column 'text', only 'txt'", "is a list, expected an object"]
    assert said[4] == "text is of type int, expected a text (str)"
    assert "NaN" in str(said[5])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"text": "txet"}, InputError, r"in.jsonl has no column 'txet', only id, text; did you mean 'text'\?"),
        ({"keep": ["idd"]}, InputError, r"no column 'idd', only id, text; did you mean 'id'\?"),
        (
            {"output": "out.paruqet"},
            UnsupportedError,
            r"expected .parquet, .jsonl, .csv or a folder; did you mean 'parq",
        ),
        ({"output": "out", "format": "cvs"}, UnsupportedError, "did you mean 'csv'"),
        ({"output": "out.csv", "format": "jsonl"}, InputError, "'jsonl' is for a folder"),
        ({"engine": "rya"}, UnsupportedError, r"did you mean 'ray'\?"),
        ({"rows": 0}, InputError, "rows is 0"),
        ({"inputs": []}, InputError, "inputs is empty"),
        ({"inputs": "none.jsonl"}, NotFoundError, "none.jsonl: no such file"),
        ({"inputs": "notes.txt"}, InputError, "notes.txt: expected one of .parquet, .csv"),
        ({"inputs": ["in.jsonl", "other.csv"]}, InputError, "other.csv is CSV"),
        ({"inputs": "empty.jsonl"}, InputError, "empty.jsonl has no rows"),
        ({"inputs": "twice.csv"}, InputError, "'text' names two columns"),
        (
            {"inputs": ["a.csv", "other.csv"], "text": "a"},
            InputError,
            "other columns than the files before it: a, text",
        ),
        ({"task": "rerank"}, UnsupportedError, "rerank sorts the documents of one query"),
        ({"pair": "id"}, InputError, "pair is for classify"),
        ({"options": {"prompt_name": "query"}}, InputError, "prompt_name is 'query'"),
        ({"inputs": "collides.jsonl"}, InputError, "the input and the result both have a column 'embedding'"),
        ({"inputs": "damaged.parquet"}, InputError, "damaged.parquet is not a Parquet file, or is damaged"),
    ],
)
def test_what_is_refused(
    options: dict[str, Any],
    error: type[ZooError],
    message: str,
    checkpoint: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n', encoding="utf-8")
    Path("collides.jsonl").write_text('{"text": "a", "embedding": 3}\n', encoding="utf-8")
    for name, text in {"other.csv": "text\na\n", "a.csv": "a\nb\n", "twice.csv": "text,text\na,b\n"}.items():
        Path(name).write_text(text, encoding="utf-8")
    for name in ("notes.txt", "empty.jsonl", "damaged.parquet"):
        Path(name).write_text("", encoding="utf-8")
    if options.get("inputs") == "damaged.parquet":
        pytest.importorskip("pyarrow", reason="pyarrow reads Parquet")
    arguments = {"inputs": "in.jsonl", "output": "out.jsonl", **options}
    name = checkpoint("rerank" if options.get("task") == "rerank" else "embed")
    with pytest.raises(error, match=message):
        map_files(name, **arguments)
    assert not Path("out.jsonl").exists()


def test_a_column_of_several_types(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow writes Parquet")
    source = write_rows(
        tmp_path / "in.jsonl", [{"text": "a", "n": 1}, {"text": "a", "n": 0.5}, {"text": "a", "m": [1]}]
    )
    map_files(checkpoint("embed"), source, tmp_path / "out.parquet", rows=1)
    assert [(row["n"], row["m"]) for row in rows_in(tmp_path / "out.parquet")] == [(1, None), (0.5, None), (None, [1])]
    write_rows(source, [{"text": "a", "n": 1}, {"text": "a", "n": "one"}])
    with pytest.raises(InputError, match="the column 'n' holds values of several types"):
        map_files(checkpoint("embed"), source, tmp_path / "other.parquet")
    assert map_files(checkpoint("embed"), source, tmp_path / "other.jsonl").errors == 0


def test_formulas(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.csv", [{"text": '=HYPERLINK("http://x")', "@SUM(1)": "-2,5"}])
    for raw in (False, True):
        map_files(checkpoint("classify"), source, tmp_path / "out.csv", raw=raw)
        (row,) = rows_in(tmp_path / "out.csv")
        mark = "" if raw else "'"
        assert row["text"] == f'{mark}=HYPERLINK("http://x")'
        assert row[f"{mark}@SUM(1)"] == "-2,5"


def test_texts_that_are_no_unicode(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="pyarrow reads Parquet")
    from pyarrow import parquet

    lines = [
        '{"id": 0, "text": "\\ud800"}',
        '{"id": 1, "text": "\\ud83d\\ude00"}',
        '{"id": 2, "text": "a", "text": "b"}',
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    column = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"fine"]).buffers())
    parquet.write_table(pa.table({"text": column, "id": [0, 1]}), tmp_path / "in.parquet")
    for name, bad in (("in.jsonl", [True, False, True]), ("in.parquet", [True, False])):
        for written in ("out.jsonl", "out.parquet", "out.csv"):
            map_files(checkpoint("classify"), tmp_path / name, tmp_path / written)
            assert [bool(row["error"]) for row in rows_in(tmp_path / written)] == bad


def test_numbers_that_json_does_not_have(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.parquet", [{"text": "a", "x": 0.5}, {"text": "b", "x": float("inf")}])
    assert map_files(checkpoint("embed"), source, tmp_path / "out.jsonl").errors == 1
    row = rows_in(tmp_path / "out.jsonl")[1]
    assert (row["text"], row["x"], row["embedding"]) == ("b", None, None)
    assert "not finite" in row["error"]


def test_without_pyarrow(
    checkpoint: Callable[[str], str],
    texts: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Lines and CSV need no package; what does names it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = str(texts.with_name("out.csv"))
    assert main(["map", checkpoint("embed"), str(texts), out]) == 0
    capsys.readouterr()
    for source, to in (("s3://bucket/in.csv", out), (str(texts), "out.parquet")):
        assert main(["map", checkpoint("embed"), source, to]) == 1
        assert "the package pyarrow: pip install pyarrow" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["map", checkpoint("embed"), str(texts), str(texts.with_name("b.csv")), "--engine", "ray"]) == 1
    assert "the engine ray requires the package ray: pip install 'transformers-zoo[ray]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threshold", "0.5"], "--threshold is for segment, detect, keypoint-detection"),
        (["--rows", "0"], "0 is not at least 1"),
        (["--engine", "spark"], "invalid choice: 'spark'"),
        (["--task", "rerank"], "invalid choice: 'rerank'"),
    ],
)
def test_usage(
    arguments: list[str],
    message: str,
    checkpoint: Callable[[str], str],
    texts: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["map", checkpoint("embed"), str(texts), "out.jsonl", *arguments])
    assert message in capsys.readouterr().err
