"""The command: its exit status, its errors, and what it does not import."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from running import ROOT, command, plain

import zoo
from zoo import plugins
from zoo.apps.cli import descriptions, main
from zoo.apps.cli.terminal import json_text
from zoo.apps.cli.wrapping import clip


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["walk"], "walk"),
        (["tabel"], "did you mean 'table'?"),
        (["table", "a.png", "--ocr", "tesserac"], "did you mean 'tesseract'?"),
        (["run"], "NAME"),
        (["run", "{embed}", "text", "--task", "sing"], "sing"),
        (["run", "{classify}", "text", "--top-k", "0"], "--top-k 0 is not at least 1"),
        (["run", "{classify}", "text", "--top-k", "-1"], "-1 is not at least 0"),
        (["run", "{classify}", "text", "--labels", "a,b"], "expected how many of them are shown; --task zero-shot"),
        (["run", "{classify}", "text", "--labels", "2", "--top-k", "2"], "give one of them"),
        (["run", "{embed}", "text", "--labels", "2"], "--labels is for zero-shot-classification"),
        (["run", "{tag}", "text", "--aggregation_stategy", "max"], "did you mean '--aggregation-strategy'?"),
        (["run", "{embed}", "text", "--top-k", "many"], "whole number"),
        (["run", "{embed}", "text", "--top-k", "2"], "the task is embed"),
        (["run", "{embed}", "text", "--question", "who"], "--question is for answer"),
        (["run", "{embed}", "text", "-"], "'-'"),
        (["run", "{answer}", "text"], "--question"),
        (["run", "{answer}", "text", "--question", "who", "--context", "the cat"], "takes no INPUT"),
        (["run", "{rerank}", "text"], "document"),
        (["run", "{classify}", "a", "b", "c", "--pair", "d", "--pair", "e"], "2 --pair for 3"),
        (["run", "{vision classify}", "a.png", "--pair", "b.png"], "reads images"),
        (["run", "{vision classify}", "a.png", "--overlay", "b.png"], "--overlay is for segment"),
        (["run", "{vision segment}", "a.png", "b.png", "--overlay", "c.png"], "one INPUT"),
        (["run", "{vision segment}", "-", "--overlay", "c.png"], "one INPUT"),
    ],
)
def test_usage_errors(
    folder_of: Callable[[str], str], capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    args = [folder_of(arg[1:-1]) if arg.startswith("{") else arg for arg in args]
    with pytest.raises(SystemExit) as stopped:
        main(args)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("zoo")
    assert message in error.splitlines()[0]


@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (["run", "./not-there", "text"], "", "not-there"),
        (["info", "./not-there"], "", "not-there"),
        (["run", "{fill-mask}", "the cat"], "", "[MASK]"),
        (["run", "{embed}", "text", "--device", "abacus"], "", "abacus"),
        (["run", "{embed}", "text", "--revision", "main"], "", "revision"),
        (["run", "{embed}", "text", "--task", "tag"], "", "classifier"),
        (["run", "{embed}", "text", "--task", "segment"], "", "which reads texts"),
        (["run", "{vision embed}", "a.png", "--task", "tag"], "", "which reads images"),
        (["run", "{vision embed}", "./none.png"], "", "none.png"),
        (["run", "{vision embed}"], "./none.png\n", "stdin, lines 1 ... 1: none.png"),
    ],
)
def test_errors_are_one_line(
    folder_of: Callable[[str], str],
    ending: Callable[..., tuple[int, str, str]],
    args: list[str],
    stdin: str,
    message: str,
) -> None:
    found = ending(*[folder_of(arg[1:-1]) if arg.startswith("{") else arg for arg in args], stdin=stdin.encode())
    is_one_line(*found, message)


def is_one_line(status: int, out: str, said: str, message: str) -> None:
    assert (status, out) == (1, "")
    assert said.startswith("zoo: ")
    assert said.count("\n") == 1
    assert message in said


def test_an_error_is_one_line_of_a_process(folder_of: Callable[[str], str]) -> None:
    done = command("run", folder_of("embed"), stdin=b"the cat\nna\xefve\n")
    is_one_line(done.returncode, done.stdout, done.stderr, "line 2 is not UTF-8: byte 0xef at 2")


def test_a_warning_is_one_line(checkpoint: Callable[[str], str]) -> None:
    done = command("run", checkpoint("embed"), "the cat " * 100)
    assert done.returncode == 0
    assert done.stderr.startswith("zoo: warning: 1 of 1 texts")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes and signals")
def test_a_reader_that_stops_and_ctrl_c(checkpoint: Callable[[str], str]) -> None:
    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "zoo", "run", checkpoint("embed")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            # Where the tests run in a shell's background, interrupts are ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    with start() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b"the cat\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"the cat\n" * 100)
        process.stdin.close()
        assert process.wait(120) == 141
        assert process.stderr.read() == b""
    with start() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b"the cat\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert process.stderr.read() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_job_that_is_stopped_says_how_it_is_resumed(
    number: signal.Signals, checkpoint: Callable[[str], str], tmp_path: Path
) -> None:
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text("".join(json.dumps({"text": f"the cat {i}"}) + "\n" for i in range(100_000)), encoding="utf-8")
    command = [sys.executable, "-m", "zoo", "map", checkpoint("embed"), str(rows), str(out), "--rows", "2"]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr
        while not list(tmp_path.glob("out.jsonl.parts/part-*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        said = process.stderr.read().decode()
        assert process.wait(120) == 128 + number
    assert said.splitlines()[-1].endswith("zoo: stopped: the same command with --resume keeps what is done")
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.rglob("*") if path.name.endswith((".part", ".writing"))] == []


def test_a_full_disk(checkpoint: Callable[[str], str]) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "zoo", "info", checkpoint("embed")],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_options_may_stand_anywhere(checkpoint: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = checkpoint("classify")
    outputs = []
    for args in (
        [folder, "the cat", "a - b", "--top-k", "1", "--json"],
        ["--json", folder, "the cat", "--top-k=1", "a - b"],
        ["--top-k", "1", folder, "--json", "the cat", "a - b"],
    ):
        assert main(["run", *args]) == 0
        outputs.append(capsys.readouterr().out)
    assert len(json.loads(outputs[0])) == 2
    assert outputs[0] == outputs[1] == outputs[2]
    assert main(["run", folder, "--json", "the cat", "--", "--top-k"]) == 0
    wanted = plain(zoo.load(folder)(["the cat", "--top-k"]))
    assert json.loads(capsys.readouterr().out) == wanted


@pytest.mark.parametrize("words", [[], ["help"], ["--help"]])
def test_the_overview_has_every_command_and_fits_a_screen(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words)
    lines = capsys.readouterr().out.splitlines()
    assert end.value.code == 0
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    named = {name for commands in descriptions.GROUPS.values() for name in commands}
    assert named == descriptions.COMMANDS.keys() == plugins.COMMANDS.keys() | {"parity"}
    assert all(re.search(rf"\b{name} +\w", "\n".join(lines)) for name in named)


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["help", "lock"], ["lock", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
    first, second = capsys.readouterr().out.split("usage: ")[1:]
    assert first == second


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("name", [None, *sorted(descriptions.COMMANDS.keys() - {"parity"})])
def test_help_is_as_wide_as_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str | None, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main(["--help"] if name is None else [name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    whole = [line for line in lines if len(line.split()) > 1 or not line.startswith(" ")]  # a long word has its line
    assert max(map(len, whole)) <= columns
    if name in ("run", "table", "map"):
        assert {"loading:", "engine:", "output:"} <= set(lines)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_nothing_heavy(option: str) -> None:
    code = (
        "import sys\nfrom zoo.apps.cli import main\n"
        f"try:\n    main([{option!r}])\nexcept SystemExit as e:\n    assert e.code == 0\n"
        "heavy = {'numpy', 'huggingface_hub', 'tokenizers', 'safetensors', 'torch', 'PIL'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    assert "zoo" in done.stdout
    assert command(option).stdout.replace("__main__.py", "zoo") == done.stdout


def test_text_is_clipped_by_its_width() -> None:
    assert clip("日本語のテキスト", 9) == "日本語の…"
    assert clip("e\u0301" * 5, 5) == "e\u0301" * 5
    assert clip("two\nlines", 20) == "two lines"


def test_not_a_number_is_no_json() -> None:
    with pytest.raises(zoo.ZooError, match="finite"):
        json_text(np.array([1, np.nan], np.float32))
