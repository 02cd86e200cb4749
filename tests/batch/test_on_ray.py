"""Jobs on a local Ray of two processes: the same as one process gives, killed in the middle and gone on with.

Needs Ray Data, pip install 'ray[data]', which has 240 MB: left out where it is not installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.deadly_job import DeadlyJob
from tests.small_pdf import pdf, text
from tests.tables.stub_config import StubConfig
from zoo.apps.batch import map_files
from zoo.apps.cli import main
from zoo.errors import ZooError

if importlib.util.find_spec("ray") is None:
    pytest.skip("needs Ray Data (the extra ray)", allow_module_level=True)
pytest.importorskip("pyarrow", reason="needs pyarrow, as Ray Data does")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ray() -> Iterator[str]:
    """The address of a Ray of two processes, which jobs of this program then use."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "object_store_memory": 100 << 20}
    for attempt in range(3):
        try:
            ray.init(address="local", logging_level="warning", **options)
            break
        except Exception as e:  # of no kind of its own; on a busy machine it does not start in its 30 seconds
            if attempt == 2 or "timed out during startup" not in str(e):
                raise
            ray.shutdown()
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def rows_of(path: Path) -> list[dict]:
    from pyarrow import parquet

    return parquet.read_table(path).to_pylist()


def stories(path: Path, count: int) -> Path:
    path.write_text(
        "".join(f'{{"id": {i}, "text": "{"" if i == 5 else f"Lily saw {i}"}"}}\n' for i in range(count)),
        encoding="utf-8",
    )
    return path


def test_a_killed_job_goes_on_and_is_that_of_one_process(ray: str, tmp_path: Path) -> None:
    source, out = stories(tmp_path / "in.jsonl", 120), tmp_path / "out"
    arguments = ["map", "stories260k", str(source), str(out), "--rows", "2", "--max-new-tokens", "4"]
    process = subprocess.Popen(
        [sys.executable, "-m", "zoo", *arguments, "--engine", "ray", "--jobs", "2"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RAY_ADDRESS": ray},
        stderr=(tmp_path / "said").open("wb"),
    )
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and len(list(out.glob("part-*"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(120) == -signal.SIGKILL, (tmp_path / "said").read_text()
    # Its actors end a moment later; until then parts may still come.
    settled = -1
    while time.monotonic() < deadline and settled != (settled := len(list(out.glob("part-*")))):
        time.sleep(3)
    assert 3 <= settled < 60
    found = map_files(
        "stories260k", source, out, rows=2, options={"max_new_tokens": 4}, engine="ray", jobs=2, resume=True
    )
    assert (found.rows, found.errors, found.known) == (120, 0, 2 * settled)
    one = tmp_path / "one"
    map_files("stories260k", source, one, rows=2, options={"max_new_tokens": 4})
    assert [path.name for path in sorted(out.glob("part-*"))] == [path.name for path in sorted(one.glob("part-*"))]
    for path in one.glob("part-*"):
        assert rows_of(out / path.name) == rows_of(path)


def test_errors_are_rows_and_a_wrong_option_ends_the_job(ray: str, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text\nLily saw\na,b\nOnce upon\n")
    options = {"max_new_tokens": 4}
    found = map_files("stories260k", f"file://{source}", tmp_path / "a.csv", rows=2, options=options, engine="ray")
    assert (found.rows, found.errors) == (3, 1)
    map_files("stories260k", f"file://{source}", tmp_path / "b.csv", rows=2, options=options)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with pytest.raises(ZooError, match="top_k is -1"):
        map_files(
            "stories260k", source, tmp_path / "c.csv", options={"do_sample": True, "top_k": -1}, engine="ray", jobs=1
        )


def test_a_row_that_ends_its_process(ray: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoo.apps.batch.mapping.MapJob", DeadlyJob)
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "Lily saw"}\n{"text": "deadly"}\n{"text": "Once"}\n')
    out = tmp_path / "out.jsonl"
    found = map_files("stories260k", source, out, options={"max_new_tokens": 4}, engine="ray", jobs=1)
    assert found.shown == (f"{source}, row 2: the process died",)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["generated"] is None for row in rows] == [False, True, False]


def page(name: str) -> str:
    return "".join(text(30 + 100 * x, 30 + 66 * y, f"{name}{x}{y}") for x in range(3) for y in range(3))


def test_tables(ray: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pypdfium2", reason="pypdfium2 (the extra pdf) reads PDFs")
    monkeypatch.setattr("zoo.apps.cli.table_options.ExtractorConfig", StubConfig)
    monkeypatch.setattr("zoo.apps.tables.batch.DOCUMENTS", 2)
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(5):
        (folder / f"{i}.pdf").write_bytes(pdf([page(f"{i}a"), page(f"{i}b")]))
    (folder / "broken.pdf").write_bytes(pdf([page("a")])[:100])
    one, out = tmp_path / "one.parquet", tmp_path / "out"
    assert main(["table", f"file://{folder}/*.pdf", "--no-detection", "-o", str(one)]) == 1
    arguments = ["table", f"file://{folder}/*.pdf", "--no-detection", "--engine", "ray", "--jobs", "2"]
    assert main([*arguments, "-o", str(out)]) == 1
    said = capsys.readouterr().err
    assert f"wrote {out}: 6 documents" in said
    assert said.endswith("zoo: 1 page could not be used: the column 'error' says why\n")
    rows = [row for path in sorted(out.glob("part-*")) for row in rows_of(path)]
    assert [row["page"] for row in rows if row["error"] is not None] == [0]
    wanted = rows_of(one)
    assert len(wanted) == 10
    assert [row for row in rows if row["error"] is None] == wanted
    # All of it is known, and a document that is now whole is read.
    (folder / "broken.pdf").write_bytes(pdf([page("c")]))
    assert main([*arguments, "-o", str(out), "--resume"]) == 0
    assert "6 documents, 4 of them from before" in capsys.readouterr().err
