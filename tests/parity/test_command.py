"""`zoo parity`: exit status, reports, and that all tiny checkpoints hold."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import parity.__main__
import parity.cases
import parity.page
import parity.run
from parity.__main__ import main
from parity.checkpoints import build
from parity.run import Result
from parity.specs import SPECS
from zoo.checkpoint.names import EMBEDDED_NAMES
from zoo.errors import CheckpointError
from zoo.lock import lock


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
    assert facts["command"].startswith("zoo parity random:bert-swag random:roberta-swag --json ")
    assert {"python", "numpy", "zoo", "torch", "transformers"} <= set(facts["versions"])
    case = facts["cases"][0]
    assert (case["architecture"], case["seed"], len(case["files"][0]["sha256"])) == ("BertForMultipleChoice", 3, 64)
    names = [stage["name"] for stage in case["stages"]]
    assert names == ["tokenizer", "embeddings", "layer.0", "layer.1", "layer.2", "logits"]
    markdown = (tmp_path / "r.md").read_text()
    assert "| random:bert-swag (tiny) | BertForMultipleChoice |" in markdown
    assert case["files"][0]["sha256"] in markdown
    assert case["lock"].startswith("sha256:")
    assert case["lock"] in markdown
    assert facts["versions"]["pillow"]


@pytest.mark.usefixtures("_reference")
def test_a_divergence_gives_1_and_is_located(tmp_path, capsys, monkeypatch):
    load = parity.run.model_of

    def broken(*args, **options):
        model = load(*args, **options)
        model.base_model.layers[1].up.act = "relu"
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


@pytest.mark.usefixtures("_reference")
def test_low_precision_is_judged_by_the_references_own_error(tmp_path, capsys):
    path = tmp_path / "r.json"
    options = ["--device", "torch:cpu", "--dtype", "bfloat16", "--json", str(path)]
    assert main(["random:vit-base-patch16-224", *options]) == 0
    assert "rel L2  reference" in capsys.readouterr().out
    case = json.loads(path.read_text())["cases"][0]
    assert case["tolerance"] == {"times": 3, "least": 2**-7 / 5, "spare": 0.01, "spare_texts": 0.5, "largest": None}
    logits = next(stage for stage in case["stages"] if stage["name"] == "logits")
    assert 1e-3 < logits["relative_l2"] < 3 * logits["reference_error"]


@pytest.mark.usefixtures("_reference")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_low_precision_on_numpy_is_refused(dtype, capsys):
    assert main(["random:bert-swag", "--dtype", dtype]) == 2
    assert f"zoo parity: {dtype} needs torch" in capsys.readouterr().err


@pytest.mark.usefixtures("_reference")
def test_all_in_low_precision_takes_a_device_that_has_it(capsys, monkeypatch):
    import torch

    monkeypatch.setattr(parity.__main__, "all_cases", lambda full: [])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["--all", "--dtype", "bfloat16"]) == 0
    assert "zoo parity: bfloat16 needs torch: running with --device torch:cpu" in capsys.readouterr().err


@pytest.mark.usefixtures("_reference")
def test_all_says_which_known_answers_need_the_hub(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(parity.__main__, "all_cases", lambda full: [])
    assert main(["--all"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^\d+ known answers need the hub's files: .*google-bert/bert-base-uncased", out, re.MULTILINE)
    monkeypatch.setattr(parity.published, "missing_need", lambda answer: None)
    monkeypatch.setattr(
        parity.published, "difference", lambda answer: "0.1 apart" if "mnli" in answer["repo"] else None
    )
    assert main(["--all"]) == 1
    out = capsys.readouterr().out
    assert "known answer of FacebookAI/roberta-large-mnli, RobertaForSequenceClassification: 0.1 apart\n" in out
    assert "known answer of google-bert/bert-base-uncased, BertModel: holds\n" in out

    def damaged(answer):
        raise CheckpointError("the file is cut off")

    monkeypatch.setattr(parity.published, "difference", damaged)
    assert main(["--all"]) == 2
    assert "BertModel: not run: the file is cut off\n" in capsys.readouterr().out


@pytest.mark.usefixtures("_reference")
def test_a_page_is_written_with_what_both_sides_made(tmp_path, capsys):
    pytest.importorskip("jinja2", reason="needs jinja2, for the page")
    folder = tmp_path / "made" / "page"
    assert main(["random:bert-base-uncased", "--html", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"wrote {folder / 'index.html'}\n")
    assert "The likeliest words for the mask" in (folder / "index.html").read_text("utf-8")


@pytest.mark.parametrize("arguments", [[], ["--all", "--list"], ["x", "--dtype", "int3"], ["x", "--all"]])
def test_wrong_usage_gives_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x", "--all"], "names and --all were given: give one of them"),
        (["x", "--list"], "names and --list were given: give one of them"),
        ([], "give one or more names, or --all, or --list"),
    ],
)
def test_wrong_usage_is_named(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


REFUSED = [
    (["--all", "--seed", "-1"], "--seed is -1, a number from 0 on was wanted"),
    (["some/name", "--full"], "--full is the size of random checkpoints, and 'some/name' is none"),
    (
        ["random:bert-swag", "--lock", "zoo.lock"],
        "--lock is for what is on the hub or in a folder, and random:bert-swag",
    ),
    (["random:bert-swag", "--revision", "main"], "--revision is for what is on the hub"),
    (["--all", "--lock", "zoo.lock"], "--lock goes with names"),
    (["--all", "--revision", "main"], "--revision goes with names"),
    (["random:bert-swag", "--json", "."], ". is a folder, and a file is to be written"),
    (["random:bert-swag", "--markdown", "no/such/file.md"], "there is no folder no/such to write file.md into"),
    (["random:bert-swag", "--html", "file"], "file is no folder, and the page is to be written into file"),
    (["random:bert-swag", "--html", "file/below"], "file is no folder, and the page is to be written into file/below"),
]


@pytest.mark.usefixtures("_reference")
@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_means_nothing_is_refused_in_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setattr(parity.__main__, "run", lambda *_, **__: pytest.fail("something was run"))
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"zoo parity: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--markdown", "--html"])
def test_what_may_not_be_written_is_refused_before_anything_runs(option, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # permissions are nothing to root
    assert main(["random:bert-swag", option, str(tmp_path / "out")]) == 2
    assert f"{tmp_path / 'out'} may not be written" in capsys.readouterr().err


@pytest.mark.usefixtures("_reference")
def test_what_fails_to_be_written_costs_no_other_report(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parity.__main__, "run", lambda case, **_: Result(case))
    monkeypatch.setattr(parity.__main__.report, "write_json", full)
    monkeypatch.setattr(parity.page, "write_page", full)
    monkeypatch.setattr(parity.page, "require", lambda: None)
    json_file, markdown, html = (str(tmp_path / name) for name in ("r.json", "r.md", "page"))
    assert main(["random:bert-swag", "--json", json_file, "--markdown", markdown, "--html", html]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"zoo parity: {path} could not be written: No space left on device" for path in (json_file, html)
    ]
    assert "1 of 1 hold" in (tmp_path / "r.md").read_text()


@pytest.mark.usefixtures("_reference")
def test_what_has_finished_is_written_when_the_user_stops_it(tmp_path, capsys, monkeypatch):
    def stopped(case, **_):
        if case.name != "random:bert-swag":
            raise KeyboardInterrupt
        return Result(case)

    monkeypatch.setattr(parity.__main__, "run", stopped)
    path = tmp_path / "r.json"
    assert main(["random:bert-swag", "random:vit-base-patch16-224", "stories260k", "--json", str(path)]) == 130
    streams = capsys.readouterr()
    assert streams.err == "zoo parity: interrupted after 1 of 3\n"
    assert streams.out.endswith("1 of 3 hold, 2 could not be run\n")
    facts = json.loads(path.read_text())
    assert [(case["holds"], case["error"]) for case in facts["cases"]] == [(True, None), *[(False, "interrupted")] * 2]


def test_stopping_it_early_is_no_traceback(capsys, monkeypatch):
    def stopped(_full):
        raise KeyboardInterrupt

    monkeypatch.setattr(parity.__main__, "_list", stopped)
    assert main(["--list"]) == 130
    assert capsys.readouterr().err == "zoo parity: interrupted\n"


@pytest.mark.usefixtures("_reference")
def test_the_files_must_be_those_of_the_lock(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    build("bert-swag", tmp_path / "mine")
    entries = lock(["mine"], "zoo.lock")
    assert main(["mine", "--lock", "zoo.lock", "--json", "r.json"]) == 0
    facts = json.loads((tmp_path / "r.json").read_text())
    assert facts["command"] == "zoo parity mine --lock zoo.lock --json r.json"
    assert facts["cases"][0]["lock_file"] == "zoo.lock"
    assert facts["cases"][0]["lock"] == entries["mine"].fingerprint
    capsys.readouterr()
    with (tmp_path / "mine" / "config.json").open("a") as file:
        file.write(" ")
    assert main(["mine", "--lock", "zoo.lock"]) == 2
    assert "not run: zoo.lock: 'mine': " in capsys.readouterr().out


def test_a_revision_is_that_of_the_hubs_commit(tmp_path, monkeypatch):
    repo, commit = tmp_path / "models--some--bert", "0" * 40
    build("bert-swag", repo / "snapshots" / commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    case = parity.cases.Case("some/bert", cached=True, revision=commit)
    with case.files(0) as checkpoint:
        assert checkpoint.revision == commit
    options = parity.__main__._parser().parse_args(["some/bert", "--revision", commit])
    assert parity.__main__._cases_of(options) == [parity.cases.Case("some/bert", revision=commit)]


@pytest.mark.usefixtures("_reference")
def test_a_revision_of_a_folder_is_refused(capsys):
    assert main(["stories260k", "--revision", "main"]) == 2
    assert "not run: revision 'main' was asked for the folder 'stories260k'" in capsys.readouterr().out


def test_without_the_reference_one_line_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["random:bert-swag"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("zoo parity: the reference is not installed (")
    assert err.endswith("pip install 'transformers-zoo[parity]'\n")
    monkeypatch.setattr(parity.__main__, "parameters", lambda *_: 0)  # counted in the list of another test
    assert main(["--list"]) == 0


def test_help_shows_examples_and_loads_no_torch():
    code = (
        "import sys; sys.argv[0] = 'x'; import parity.__main__ as m; assert 'torch' not in sys.modules; m.main(['-h'])"
    )
    done = run("-c", code)
    assert done.returncode == 0
    assert "zoo parity --all --markdown summary.md" in done.stdout
    assert "exit status: 0" in done.stdout


def test_the_list_has_the_cached_repositories(tmp_path, monkeypatch, capsys):
    repo, commit = tmp_path / "models--some--bert", "0" * 40
    build("bert-base-NER", repo / "snapshots" / commit)
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(commit)
    monkeypatch.undo()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    real = parity.__main__.parameters  # which takes its time for all of them
    few = SPECS["bert-base-uncased"]
    monkeypatch.setattr(parity.__main__, "parameters", lambda spec, size: real(spec, size) if spec is few else 0)
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names[-1] == "some/bert"
    assert lines[names.index("random:bert-base-uncased")].endswith(", 110 M at full size")
    assert [f"random:{name}" for name in SPECS] == names[: len(SPECS)]


@pytest.mark.usefixtures("_reference")
def test_all_are_the_tiny_checkpoints_and_the_trained_ones(minilm, monkeypatch):
    """The list is tested here; the command itself, a step of .ci/run, shows that all of them hold."""
    seen = []
    monkeypatch.setattr(parity.__main__, "run", lambda case, **_: seen.append(case) or Result(case))
    assert main(["--all"]) == 0
    assert [case.name for case in seen] == [*(f"random:{name}" for name in SPECS), *EMBEDDED_NAMES, str(minilm)]
    assert {case.size for case in seen[: len(SPECS)]} == {"tiny"}


@pytest.mark.slow
@pytest.mark.usefixtures("_reference")
def test_eager_torch_holds_as_well(capsys):
    names = ["bert-cross-decoder", "all-MiniLM-L6-v2", "roberta-swag", "xlm-roberta-base"]
    assert main([f"random:{name}" for name in names] + ["--device", "torch:cpu"]) == 0, capsys.readouterr().out
