"""`zoo map` that is killed, resumed, shared by processes, or out of memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.deadly_job import DeadlyJob
from tests.cli.map_rows import TEXTS, rows_in, write_rows
from zoo.apps.batch import map_files
from zoo.errors import InputError, ZooError


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
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and len(list(parts.glob("part-*"))) < count and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(120) == -signal.SIGKILL


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


def test_another_checkpoint_in_the_same_folder_is_noticed(checkpoint: Callable[[str], str], texts: Path) -> None:
    folder, out = texts.with_name("checkpoint"), texts.with_name("out")
    shutil.copytree(checkpoint("embed"), folder)

    def known() -> int:
        return map_files(folder, texts, out, rows=2, format="jsonl", resume=True).known

    assert (known(), known()) == (0, 6)
    weights = folder / "model.safetensors"
    about, content = weights.stat(), bytearray(weights.read_bytes())
    os.utime(weights, ns=(0, 0))
    assert known() == 6  # the same bytes
    content[-2] ^= 0x40
    weights.write_bytes(content)
    os.utime(weights, ns=(about.st_atime_ns, about.st_mtime_ns))  # as with cp -p
    assert known() == 0


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


def test_an_output_that_cannot_be_written(checkpoint: Callable[[str], str], texts: Path) -> None:
    texts.with_name("file").write_text("")
    with pytest.raises(ZooError, match="cannot write to"):
        map_files(checkpoint("embed"), texts, texts.with_name("file") / "out.jsonl")
