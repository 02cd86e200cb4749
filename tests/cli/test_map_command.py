"""`zoo map` and `zoo.apps.batch.map_files`: formats, errors as rows, resumed and shared jobs, other file systems."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zoo
from tests.cli.deadly_job import DeadlyJob
from zoo.apps.batch import files, map_files
from zoo.apps.batch.results import plain
from zoo.apps.batch.row_files import RowFiles
from zoo.apps.cli import main
from zoo.errors import InputError, NotFoundError, UnsupportedError, ZooError
from zoo.files.atomic_write import one_writer

TEXTS = ["the cat sits", "a [MASK] is in the garden", "what is outside [MASK]", "who", "where is a cat", "the garden"]


def rows_in(path: Path | str) -> list[dict[str, Any]]:
    path = Path(path)
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow reads Parquet")
    return parquet.read_table(path).to_pylist()


def write_rows(path: Path, rows: list[dict[str, Any]], group: int = 4) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        pa = pytest.importorskip("pyarrow", reason="pyarrow writes Parquet")
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "texts.jsonl", [{"id": i, "text": text} for i, text in enumerate(TEXTS)])


@pytest.mark.parametrize("given", [".jsonl", ".csv", ".parquet"])
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
        wanted: Any = plain(loaded(text))
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
        ({"inputs": "damaged.parquet"}, InputError, "damaged.parquet is no Parquet file, or damaged"),
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
    Path("in.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n')
    Path("collides.jsonl").write_text('{"text": "a", "embedding": 3}\n')
    for name, text in {"other.csv": "text\na\n", "a.csv": "a\nb\n", "twice.csv": "text,text\na,b\n"}.items():
        Path(name).write_text(text)
    for name in ("notes.txt", "empty.jsonl", "damaged.parquet"):
        Path(name).write_text("")
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


def test_pictures(vision: Callable[[str], str], photos: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for path, to in zip(photos, ("b.png", "deep/a.png"), strict=True):
        (folder / to).write_bytes(Path(path).read_bytes())
    (folder / "broken.png").write_bytes(b"no image")
    (folder / "notes.txt").write_text("")
    found = map_files(vision("classify"), folder, tmp_path / "out.jsonl", rows=2)
    assert (found.rows, found.errors) == (3, 1)
    rows = rows_in(tmp_path / "out.jsonl")
    assert [os.path.relpath(row["image"], folder) for row in rows] == ["b.png", "broken.png", "deep/a.png"]
    assert rows[1]["error"].startswith(f"{folder / 'broken.png'}: ")
    classify: Any = zoo.load(vision("classify"))
    assert rows[0]["label"] == classify(photos[0])[0].label
    assert rows[2]["score"] == pytest.approx(classify(photos[1])[0].score, rel=1e-4)
    # The same from a file that names them, relative to itself.
    source = write_rows(folder / "list.csv", [{"image": "b.png"}, {"image": "none.png"}, {"image": "deep/a.png"}])
    assert map_files(vision("classify"), source, tmp_path / "named.jsonl").errors == 1
    named = rows_in(tmp_path / "named.jsonl")
    assert [row["label"] for row in named] == [rows[0]["label"], None, rows[2]["label"]]
    assert "none.png" in named[1]["error"]


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("../outside.png", "may only name files below"),
        ("%2e%2e/outside.png", "may only name files below"),
        ("{tmp}/in/inside.png", "may only name files below"),
        ("file://{tmp}/in/inside.png", "may only name files below"),
        ("s3://bucket/x.png?endpoint_override=127.0.0.1:9&scheme=http", "may only name files below"),
        ("link.png", "may only name files below"),
        ("/dev/zero", "may only name files below"),
        ("fifo.png", "found a special file"),
        ("a\0b.png", "no file can be named"),
        ("\ud800.png", "half of a surrogate pair"),
        ("", "expected the path of an image"),
    ],
)
def test_a_row_reads_only_below_its_table(
    named: str, reason: str, vision: Callable[[str], str], photos: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for path in (folder / "inside.png", tmp_path / "outside.png"):
        path.write_bytes(Path(photos[0]).read_bytes())
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    os.mkfifo(folder / "fifo.png")
    rows = [{"image": named.format(tmp=tmp_path)}, {"image": "inside.png"}]
    source = write_rows(folder / "in.jsonl", rows)
    assert map_files(vision("classify"), source, tmp_path / "out.jsonl").errors == 1
    bad, good = rows_in(tmp_path / "out.jsonl")
    assert reason in bad["error"]
    assert good["error"] is None


def test_rows_that_are_allowed_more(vision: Callable[[str], str], photos: list[str], tmp_path: Path) -> None:
    tables, data = tmp_path / "tables", tmp_path / "data"
    for folder in (tables, data):
        folder.mkdir()
        (folder / "a.png").write_bytes(Path(photos[0]).read_bytes())
    named = [str(data / "a.png"), "../data/a.png", f"file://{data}/a.png", "a.png"]
    source = write_rows(tables / "in.jsonl", [{"image": one} for one in named])

    def errors(**options: Any) -> list[bool]:
        map_files(vision("classify"), source, tmp_path / "out.jsonl", **options)
        return [row["error"] is not None for row in rows_in(tmp_path / "out.jsonl")]

    assert errors() == [True, True, True, False]
    assert errors(root=data) == [False, False, False, True]
    assert errors(root=tmp_path) == [False] * 4
    assert errors(root=f"file://{data}") == [False, False, False, True]
    assert errors(trust_rows=True) == [False] * 4


@pytest.mark.parametrize(
    ("name", "base", "below"),
    [
        ("s3://b/in/a.png", "s3://b/in", True),
        ("s3://b/in/a.png?region=x", "s3://b/in", False),
        ("s3://b/in/../x.png", "s3://b/in/", False),
        ("s3://b/in/%2e%2e/x.png", "s3://b/in", False),
        ("s3://b/inside.png", "s3://b/in", False),
        ("s3://other/in/a.png", "s3://b/in", False),
        ("/etc/passwd", "s3://b/in", False),
    ],
)
def test_rows_of_a_store(name: str, base: str, below: bool) -> None:
    files = RowFiles(base)
    if below:
        assert files.place(name, "s3://b/t.csv") == name
    else:
        with pytest.raises(InputError, match="may only name files below"):
            files.place(name, "s3://b/t.csv")


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


def test_special_files_links_and_two_jobs(checkpoint: Callable[[str], str], texts: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.jsonl")
    with pytest.raises(InputError, match="found a special file"):
        map_files(checkpoint("embed"), tmp_path / "fifo.jsonl", tmp_path / "out.jsonl")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "part-00009-lost-0.jsonl").touch()
    (tmp_path / "out.jsonl.parts").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="is a link"):
        map_files(checkpoint("embed"), texts, tmp_path / "out.jsonl")
    assert os.listdir(tmp_path / "mine") == ["part-00009-lost-0.jsonl"]
    outputs = [tmp_path / "other.jsonl", *([tmp_path / "folder"] if importlib.util.find_spec("pyarrow") else [])]
    for output in outputs:
        with one_writer(output, 0), pytest.raises(ZooError, match="is being written by another process"):
            map_files(checkpoint("embed"), texts, output)
        map_files(checkpoint("embed"), texts, output)


def test_pictures_in_parquet(vision: Callable[[str], str], photos: list[str], tmp_path: Path) -> None:
    data = [Path(path).read_bytes() for path in photos]
    write_rows(tmp_path / "a.parquet", [{"image": {"bytes": one, "path": None}, "n": 1} for one in data])
    write_rows(tmp_path / "b.parquet", [{"image": one, "n": 2} for one in data])
    wanted: Any = zoo.load(vision("segment"))(photos)
    for name in ("a", "b"):
        source, out = tmp_path / f"{name}.parquet", tmp_path / f"{name}.jsonl"
        if name == "b":
            with pytest.raises(InputError, match="the column 'image' has bytes, which jsonl cannot store"):
                map_files(vision("segment"), source, out)
        assert map_files(vision("segment"), source, out, keep=["n"]).errors == 0
        for row, one in zip(rows_in(out), wanted, strict=True):
            assert (row["height"], row["width"]) == one.mask.shape
            assert [area["label"] for area in row["labels"]] == [area.label for area in one.labels]


def test_files_by_uri(checkpoint: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow knows URIs")
    (tmp_path / "in put").mkdir()
    for i in range(3):
        write_rows(tmp_path / "in put" / f"part-{i}.csv", [{"text": text} for text in TEXTS[i : i + 2]])
    (tmp_path / "in put" / "other.txt").write_text("")
    base = f"file://{tmp_path}".replace(" ", "%20")
    assert main(["map", checkpoint("embed"), f"{base}/in%20put/part-*.csv", f"{base}/out.jsonl", "--rows", "1"]) == 0
    map_files(checkpoint("embed"), tmp_path / "in put", tmp_path / "here.jsonl", rows=1)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    assert len(rows_in(tmp_path / "out.jsonl")) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.jsonl", "in put", "out.jsonl"]
    for _ in range(2):  # a folder, and once more
        assert main(["map", checkpoint("embed"), f"{base}/in%20put", f"{base}/parts/", "--rows", "2", "--resume"]) == 0
    assert "6 rows, 6 of them from before" in capsys.readouterr().err
    assert len(list((tmp_path / "parts").glob("part-0000?-*-0.parquet"))) == 3
    assert main(["map", checkpoint("embed"), f"{base}/in%20put/*.tsv", f"{base}/none.jsonl"]) == 1
    assert "no file matches" in capsys.readouterr().err
    assert main(["map", checkpoint("embed"), "nope://bucket/x.csv", f"{base}/none.jsonl"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("of_arrow", [True, False])
def test_a_file_system_that_is_not_this_machines(
    of_arrow: bool, checkpoint: Callable[[str], str], texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hdfs:// as pyarrow's and as fsspec's own file system would serve it."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec comes with huggingface_hub")
    if of_arrow:
        fs = pytest.importorskip("pyarrow.fs", reason="pyarrow has file systems")
        from fsspec.implementations.arrow import ArrowFSWrapper

        found = ArrowFSWrapper(fs.LocalFileSystem())
    else:
        found = fsspec.filesystem("memory")
        found.pipe({f"{tmp_path}/in put/{i}.jsonl": texts.read_bytes() for i in range(2)})
    (tmp_path / "in put").mkdir()
    for i in range(2):
        (tmp_path / "in put" / f"{i}.jsonl").write_bytes(texts.read_bytes())
    monkeypatch.setattr(files, "filesystem", lambda name: (found, files.unquote(name.partition("://")[2])))
    source, out = f"hdfs://{tmp_path}/in%20put/?.jsonl", f"hdfs://{tmp_path}/out"
    assert map_files(checkpoint("embed"), source, out, rows=4, format="jsonl").rows == 12
    assert map_files(checkpoint("embed"), source, out, rows=4, format="jsonl", resume=True).known == 12
    map_files(checkpoint("embed"), source, f"{out}.jsonl", rows=4)
    names = [name for name in found.find(str(tmp_path)) if "/out" in name]
    one, *parts = sorted(names)
    assert len(parts) == 4
    assert b"".join(found.cat_file(name) for name in parts) == found.cat_file(one)
    assert [json.loads(line)["id"] for line in found.cat_file(one).splitlines()] == [*range(6), *range(6)]


def test_processes_give_the_same(checkpoint: Callable[[str], str], texts: Path) -> None:
    one, two = texts.with_name("one.jsonl"), texts.with_name("two.jsonl")
    map_files(checkpoint("embed"), texts, one, rows=2)
    map_files(checkpoint("embed"), texts, two, rows=2, jobs=2)
    assert one.read_bytes() == two.read_bytes()


SLOW = """
import sys, time, zoo.apps.cli
from zoo.apps.batch.output import JobOutput
write = JobOutput.write
def slowly(*args):
    record = write(*args)
    time.sleep(0.05)
    return record
JobOutput.write = slowly
sys.exit(zoo.apps.cli.main(sys.argv[1:]))
"""


def killed(arguments: list[str], parts: Path, count: int) -> None:
    """Run the command, and end it as no process can resist once some parts are there."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(list(parts.glob("part-*"))) < count and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL


def test_a_killed_job_goes_on(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", [{"text": TEXTS[i % 6], "i": i} for i in range(200)])
    name, out, parts = checkpoint("embed"), tmp_path / "out.jsonl", tmp_path / "out.jsonl.parts"
    arguments = ["map", name, str(source), str(out), "--rows", "2"]
    killed(arguments, parts, 4)
    assert not out.exists()
    done = list(parts.glob("part-*"))
    assert 4 <= len(done) < 100
    with pytest.raises(InputError, match="parts of an earlier job: resume it"):
        map_files(name, source, out, rows=2)
    found = map_files(name, source, out, rows=2, resume=True)
    assert (found.rows, found.known) == (200, 2 * len(done))
    assert not parts.exists()
    map_files(name, source, tmp_path / "whole.jsonl", rows=2)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_what_a_resumed_job_takes_over(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out"
    rows = [{"text": text, "n": i} for i, text in enumerate(TEXTS)]

    def known(**options: Any) -> int:
        write_rows(source, rows)
        given: dict[str, Any] = {"rows": 2, "format": "jsonl", "resume": True, **options}
        found = map_files(checkpoint("classify"), source, out, **given)
        of_parts = [row for path in sorted(out.glob("part-*")) for row in rows_in(path)]
        assert [(row["text"], row["n"]) for row in of_parts] == [(row["text"], str(row["n"])) for row in rows]
        return found.known

    assert known() == 0
    assert known() == 6
    rows[2]["text"] = "who is"
    assert known() == 4  # the part of the other row is done anew
    rows.append({"text": "the", "n": 6})
    assert known() == 6
    rows.pop()
    assert known() == 6  # and the part that is no longer wanted is gone
    assert known(options={"top_k": 1}) == 0
    assert known(options={"top_k": 1}) == 6
    assert known(options={"top_k": 1}, rows=3) == 0


def test_a_part_that_was_emptied_or_cut_is_computed_again(
    checkpoint: Callable[[str], str], texts: Path, tmp_path: Path
) -> None:
    name, out = checkpoint("embed"), tmp_path / "out"
    map_files(name, texts, out, rows=2, format="jsonl")
    whole = {path.name: path.read_bytes() for path in out.iterdir()}
    for number, content in enumerate((b"", None, b"{}\n" * 2)):
        path = next(out.glob(f"part-0000{number}-*"))
        path.write_bytes(whole[path.name][:-20] if content is None else content)
    (out / ".part-00000-0.jsonl.1-1.part").write_bytes(b"of a job that was killed")
    found = map_files(name, texts, out, rows=2, format="jsonl", resume=True)
    assert (found.rows, found.known) == (6, 0)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == whole


def test_numbers_that_json_does_not_have(checkpoint: Callable[[str], str], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.parquet", [{"text": "a", "x": 0.5}, {"text": "b", "x": float("inf")}])
    assert map_files(checkpoint("embed"), source, tmp_path / "out.jsonl").errors == 1
    row = rows_in(tmp_path / "out.jsonl")[1]
    assert (row["text"], row["x"], row["embedding"]) == ("b", None, None)
    assert "not finite" in row["error"]


def test_a_picture_with_another_content_is_done_anew(
    vision: Callable[[str], str], photos: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(3):
        (folder / f"{i}.png").write_bytes(Path(photos[0]).read_bytes())
    assert map_files(vision("classify"), folder, tmp_path / "out", format="csv", rows=1).known == 0
    (folder / "1.png").write_bytes(Path(photos[1]).read_bytes())
    assert map_files(vision("classify"), folder, tmp_path / "out", format="csv", rows=1, resume=True).known == 2


def test_a_row_that_ends_its_process(
    checkpoint: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoo.apps.batch.mapping.MapJob", DeadlyJob)
    said = ["the cat", "a", "deadly", "who", "where"]
    source = write_rows(tmp_path / "in.jsonl", [{"text": text} for text in said])
    found = map_files(checkpoint("embed"), source, tmp_path / "out", rows=4, jobs=2, format="jsonl")
    assert found.shown == (f"{source}, row 3: the process died",)
    rows = [row for path in sorted((tmp_path / "out").glob("part-*")) for row in rows_in(path)]
    assert [row["text"] for row in rows] == said
    assert [row["embedding"] is None for row in rows] == [False, False, True, False, False]
    monkeypatch.undo()  # a part that was lost is tried again
    found = map_files(checkpoint("embed"), source, tmp_path / "out", rows=4, format="jsonl", resume=True)
    assert (found.errors, found.known) == (0, 1)


def out_of_memory(*_: Any, **__: Any) -> None:
    raise MemoryError


def test_not_enough_memory_is_of_rows(
    checkpoint: Callable[[str], str], texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zoo.tasks.embed import Embed

    with monkeypatch.context() as patch:
        patch.setattr(Embed, "__call__", out_of_memory)
        found = map_files(checkpoint("embed"), texts, texts.with_name("out"), rows=3, format="csv")
    assert (found.errors, found.shown[0]) == (6, f"{texts}, row 1: not enough memory")
    found = map_files(checkpoint("embed"), texts, texts.with_name("out"), rows=3, format="csv", resume=True)
    assert (found.errors, found.known) == (0, 0)


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


def test_an_output_that_cannot_be_written(checkpoint: Callable[[str], str], texts: Path) -> None:
    texts.with_name("file").write_text("")
    with pytest.raises(ZooError, match="cannot write to"):
        map_files(checkpoint("embed"), texts, texts.with_name("file") / "out.jsonl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threshold", "0.5"], "--threshold is for detect, and the task is embed"),
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


def test_rows_of_parquet_in_any_order(tmp_path: Path) -> None:
    """A row group goes by once where parts follow one another; a part alone is read all the same."""
    from zoo.apps.batch.sources import open_source

    rows = [{"text": f"{i}", "n": i} for i in range(23)]
    write_rows(tmp_path / "in.parquet", rows, group=10)
    source, parts = open_source([str(tmp_path / "in.parquet")], ["text"], images=False, rows=4)
    assert [part.rows for part in parts] == [4, 4, 2, 4, 4, 2, 3]
    for order in (parts, parts[::-1], parts[1::2]):
        for part in order:
            read = source.read(part)
            assert read.kept.to_pylist() == rows[part.first : part.first + part.rows]
            assert read.given == [{"text": row["text"]} for row in read.kept.to_pylist()]
    digests = [source.read(part).digest for part in parts]
    assert len(set(digests)) == len(parts)
    assert [source.read(part).digest for part in parts[::-1]] == digests[::-1]
