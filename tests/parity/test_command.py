"""`python -m parity`: exit status, reports, and that all tiny checkpoints hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import parity.cases
import parity.run
from parity.__main__ import main
from parity.checkpoints import build
from parity.specs import SPECS


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setattr(parity.cases, "_cached_names", list)


@pytest.fixture
def _reference():
    pytest.importorskip("torch", reason="needs torch, for the reference")
    pytest.importorskip("transformers", reason="needs transformers, the reference")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.usefixtures("_reference")
def test_what_holds_gives_0_and_reports(tmp_path, capsys):
    to = ["--json", str(tmp_path / "r.json"), "--markdown", str(tmp_path / "r.md")]
    assert main(["random:bert-swag", "random:roberta-swag", *to, "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 of 2 hold"
    assert "\x1b" not in "".join(lines)  # colours are for terminals
    facts = json.loads((tmp_path / "r.json").read_text())
    assert facts["holds"] is True
    assert facts["command"].startswith("python -m parity random:bert-swag random:roberta-swag --json ")
    assert {"python", "numpy", "zoo", "torch", "transformers"} <= set(facts["versions"])
    case = facts["cases"][0]
    assert (case["architecture"], case["seed"], len(case["files"][0]["sha256"])) == ("BertForMultipleChoice", 3, 64)
    names = [stage["name"] for stage in case["stages"]]
    assert names == ["tokenizer", "embeddings", "layer.0", "layer.1", "layer.2", "logits"]
    markdown = (tmp_path / "r.md").read_text()
    assert "| random:bert-swag (tiny) | BertForMultipleChoice |" in markdown
    assert case["files"][0]["sha256"] in markdown


@pytest.mark.usefixtures("_reference")
def test_a_divergence_gives_1_and_is_located(tmp_path, capsys, monkeypatch):
    load = parity.run.model_of

    def broken(*args, **options):
        model = load(*args, **options)
        model.bert.layers[1].up.act = "relu"
        return model

    monkeypatch.setattr(parity.run, "model_of", broken)
    assert main(["random:bert-base-NER", "random:nothing-else"]) == 2
    capsys.readouterr()
    markdown = tmp_path / "r.md"
    assert main(["random:bert-base-NER", str(tmp_path), "--markdown", str(markdown)]) == 1
    out = capsys.readouterr().out
    assert "DIVERGES at layer.1" in out
    assert "not run: " in out
    assert "0 of 2 hold, 1 diverges, 1 could not be run" in out
    assert "| layer.1 |" in markdown.read_text()


@pytest.mark.usefixtures("_reference")
def test_what_cannot_be_run_gives_2(tmp_path, capsys):
    folder = build("bert-base-NER", tmp_path / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert main([str(folder)]) == 2
    assert "not run: " in capsys.readouterr().out


@pytest.mark.usefixtures("_reference")
def test_a_crash_of_one_case_is_no_divergence(capsys, monkeypatch):
    def crash(*args, **options):
        raise IndexError("out of something")

    monkeypatch.setattr(parity.run, "model_of", crash)
    assert main(["random:bert-swag"]) == 2
    streams = capsys.readouterr()
    assert "not run: IndexError: out of something" in streams.out
    assert "Traceback" in streams.err


@pytest.mark.parametrize("arguments", [[], ["--all", "--list"], ["x", "--dtype", "int3"], ["x", "--all"]])
def test_wrong_usage_gives_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_without_the_reference_one_line_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["random:bert-swag"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("parity: the reference is not installed (")
    assert err.endswith("pip install 'zoo[parity]'\n")
    assert main(["--list"]) == 0


def test_help_shows_examples_and_loads_no_torch():
    code = (
        "import sys; sys.argv[0] = 'x'; import parity.__main__ as m; assert 'torch' not in sys.modules; m.main(['-h'])"
    )
    done = run("-c", code)
    assert done.returncode == 0
    assert "python -m parity --all --markdown summary.md" in done.stdout
    assert "exit status: 0" in done.stdout


def test_the_list_has_the_cached_repositories(tmp_path):
    repo, commit = tmp_path / "models--some--bert", "0" * 40
    build("bert-base-NER", repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    done = run("-m", "parity", "--list", HF_HUB_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names[-1] == "some/bert"
    assert [f"random:{name}" for name in SPECS] == names[: len(SPECS)]


@pytest.mark.slow
@pytest.mark.usefixtures("_reference")
def test_all_tiny_checkpoints_and_minilm_hold(tmp_path, capsys):
    path = tmp_path / "r.json"
    status = main(["--all", "--json", str(path)])
    assert status == 0, capsys.readouterr().out
    cases = json.loads(path.read_text())["cases"]
    assert len(cases) >= len(SPECS)
    assert all(stage["top1"] in (None, 1) for case in cases for stage in case["stages"])


@pytest.mark.slow
@pytest.mark.usefixtures("_reference")
def test_eager_torch_holds_as_well(capsys):
    names = ["bert-cross-decoder", "all-MiniLM-L6-v2", "roberta-swag", "xlm-roberta-base"]
    assert main([f"random:{name}" for name in names] + ["--device", "torch:cpu"]) == 0, capsys.readouterr().out
