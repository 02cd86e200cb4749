"""`zoo map` over pictures and files: row files, stores, links, URIs, Parquet."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zoo
from tests.cli.map_rows import TEXTS, rows_in, write_rows
from tests.platforms import names_in
from zoo.apps.batch import files, map_files
from zoo.apps.batch.row_files import RowFiles
from zoo.apps.cli import main
from zoo.errors import InputError, ZooError
from zoo.files.atomic_write import one_writer


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are not UTF-8")
@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_a_name_that_is_not_utf8_ends_no_job(vision, photos: list[str], tmp_path: Path, format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow, for Parquet")
    folder, to = tmp_path / "in", tmp_path / f"out.{format}"
    folder.mkdir()
    for photo, name in zip(photos, (b"a.png", b"b\xff.png"), strict=False):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(Path(photo).read_bytes())
    found = map_files(vision("classify"), folder, to)
    assert (found.rows, found.errors) == (2, 0)
    data = to.read_bytes()
    assert rb"b\udcff.png" in data
    if format == "jsonl":  # where the escape is the name again
        assert os.path.exists(rows_in(to)[1]["image"])
    assert map_files(vision("classify"), folder, to, resume=True).rows == 2


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
    assert rows[1]["error"].count("broken.png") == 1
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
    assert names_in(tmp_path) == ["here.jsonl", "in put", "out.jsonl"]
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
    data: list[Any] = [found.cat_file(name) for name in parts]
    assert b"".join(data) == found.cat_file(one)
    assert [json.loads(line)["id"] for line in found.cat_file(one).splitlines()] == [*range(6), *range(6)]


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


def test_rows_of_parquet_in_any_order(tmp_path: Path) -> None:
    """A row group goes by once where parts follow one another; a part alone is read all the same."""
    from zoo.apps.batch.sources import open_source

    rows = [{"text": f"{i}", "n": i} for i in range(23)]
    write_rows(tmp_path / "in.parquet", rows, group=10)
    source, parts = open_source([str(tmp_path / "in.parquet")], ["text"], media=None, rows=4)
    assert [part.rows for part in parts] == [4, 4, 2, 4, 4, 2, 3]
    for order in (parts, parts[::-1], parts[1::2]):
        for part in order:
            read = source.read(part)
            assert read.kept.to_pylist() == rows[part.first : part.first + part.rows]
            assert read.given == [{"text": row["text"]} for row in read.kept.to_pylist()]
    digests = [source.read(part).digest for part in parts]
    assert len(set(digests)) == len(parts)
    assert [source.read(part).digest for part in parts[::-1]] == digests[::-1]
