"""`zoo parity --drift`: what another version makes otherwise is found, told, and held against zoo."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers", reason="needs transformers, the reference")

import transformers

from parity.__main__ import main
from parity.drift.command import Bulletin, markdown, rows_of
from parity.drift.comparing import Change, changes_of
from parity.drift.environments import Environment, UnavailableVersionError, environment_of, installed_version
from parity.drift.faults import FAULTS, reproduce_faults
from parity.drift.recording import Job, Recording
from parity.texts import Batch
from parity.writing import Written

NAMES = ("5.23.0", "5.1.0")


def recording(scale: float = 1, ids: tuple[int, ...] = (1, 2), pixel: float = 0, new: int = 7) -> Recording:
    """What a side makes of `job`: scale times the same outputs, these ids, pixels, and a token."""
    array = np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)
    written = Written("padded", "greedy", 1, (3,), 1, [], [[new]], [])
    pixels = {"padded": {"pixel_values": np.full((1, 2, 2, 3), pixel, np.float32) + 1}}
    return Recording({"padded": [list(ids)]}, pixels, [{"last_hidden_state": array * np.float32(scale)}], [written])


def job() -> Job:
    ids = np.ones((2, 5), np.int64)
    batch = Batch("padded", {"input_ids": ids}, np.ones_like(ids, bool), ["a", "b"])
    return Job("a checkpoint", Path(), "BertModel", [batch], [])


def test_equal_recordings_have_no_changes():
    assert changes_of(job(), recording(), recording(), recording(1 + 1e-7), NAMES) == []


@pytest.mark.parametrize(
    ("other", "part", "error"),
    [
        ({"scale": 1.01}, "outputs", 0.01),
        ({"ids": (1, 3)}, "tokens", 1),
        ({"pixel": 0.5}, "pixels", 0.5),
        ({"new": 8}, "texts", 1),
    ],
)
def test_each_part_that_changed_is_told_with_zoos_side(other, part, error):
    (change,) = changes_of(job(), recording(), recording(), recording(**other), NAMES)
    assert (change.part, change.version, change.zoo) == (part, "5.1.0", "5.23.0")
    assert change.error == pytest.approx(error, rel=1e-3)
    (change,) = changes_of(job(), recording(**other), recording(), recording(**other), NAMES)
    assert change.zoo == "5.1.0"
    neither = {name: value + 1 if name != "ids" else (8, 9) for name, value in other.items()}
    (change,) = changes_of(job(), recording(**neither), recording(), recording(**other), NAMES)
    assert change.zoo == "neither"


def test_a_version_that_fails_or_lacks_an_output_is_told():
    unknown = Recording(failed={"load": "BadReferenceError: transformers 5.1.0 has no NewModel"})
    (change,) = changes_of(job(), recording(), recording(), unknown, NAMES)
    assert (change.part, change.error) == ("load", None)
    assert "has no NewModel" in change.about
    # What the installed version cannot do either is no change.
    assert changes_of(job(), recording(), unknown, unknown, NAMES) == []
    lacking = recording()
    lacking.outputs = [{}]
    (change,) = changes_of(job(), recording(), recording(), lacking, NAMES)
    assert change.stage == "last_hidden_state"


def test_rows_of_the_table_have_ranges_of_versions_and_the_largest_change():
    def change(checkpoint: str, version: str, error: float) -> Change:
        return Change(checkpoint, version, "outputs", "logits", error, f"relative {error}", "5.23.0")

    packages: dict[str, dict[str, str]] = {v: {} for v in ("5.23.0", "5.10.0", "5.9.0", "5.2.0", "5.0.0")}
    found = Bulletin(Environment("5.23.0"), ["a", "b"], versions=packages)
    found.faults = {version: dict.fromkeys(FAULTS, "it happens") for version in packages}
    found.changes = [change(name, version, 0.1) for name in "ab" for version in ("5.0.0", "5.2.0", "5.10.0")]
    found.changes.append(change("a", "5.2.0", 0.5))
    (row,) = rows_of(found)
    assert (row.checkpoints, row.versions, row.largest.error) == (["a", "b"], ["5.0.0", "5.2.0", "5.10.0"], 0.5)
    table = markdown(found)
    assert "| outputs | a, b | 5.0.0 to 5.2.0, 5.10.0 | logits: relative 0.5 | 5.23.0 |" in table
    assert "| 5.0.0 to 5.23.0 | it happens |" in table


@pytest.mark.nightly
def test_the_faults_of_the_installed_version_are_there():
    """Those that docs/parity.md says this version has; a version that mends one changes the page."""
    found = reproduce_faults()
    assert found.keys() == FAULTS.keys()
    assert found["T5's scaling"] == "false is saved as true"
    assert "channels" in found["PP-OCRv6's detector"]
    assert found["PP-OCRv6's norms"] == "5 norms have 1e-06"


def test_what_is_no_version_is_refused(tmp_path, capsys):
    for asked, said in (
        ("5", "expected versions"),
        ("5.20,latest", "--drift latest"),
        (str(tmp_path), "no transformers"),
    ):
        assert main(["--drift", asked]) == 2
        assert said in capsys.readouterr().err
    assert main(["--drift", "5.20", "--gradients"]) == 2
    assert "leave out --gradients" in capsys.readouterr().err
    assert main(["--drift", "5.20", "--device", "cuda"]) == 2
    assert "on the CPU" in capsys.readouterr().err


def test_a_version_that_does_not_install_is_told_by_pip(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UnavailableVersionError, match=r"pip cannot install transformers==5.20\.\*: "):
        environment_of("5.20", tmp_path)


def other_version(folder: Path, requires: str = "numpy") -> Path:
    """The installed transformers with another number, and a BERT whose layers have another epsilon."""
    package, copy = Path(transformers.__file__).parent, folder / "transformers"
    bert = copy / "models" / "bert"
    bert.mkdir(parents=True)
    for ours, theirs in ((copy, package), (bert.parent, package / "models"), (bert, package / "models" / "bert")):
        for path in theirs.iterdir():
            if not (ours / path.name).exists():
                (ours / path.name).symlink_to(path)
    source = (bert / "modeling_bert.py").read_text("utf-8")
    (bert / "modeling_bert.py").unlink()
    (bert / "modeling_bert.py").write_text(source.replace("eps=config.layer_norm_eps", "eps=0.5"), "utf-8")
    facts = folder / "transformers-5.1.0.dist-info"
    facts.mkdir()
    text = f"Metadata-Version: 2.1\nName: transformers\nVersion: 5.1.0\nRequires-Dist: {requires}\n"
    (facts / "METADATA").write_text(text, "utf-8")
    return folder


def test_a_folder_without_what_its_version_needs_says_how_to_get_it(tmp_path):
    folder = other_version(tmp_path / "old", requires="tokenizers<0.1")
    with pytest.raises(UnavailableVersionError, match=r"pip install --target .*--no-deps 'tokenizers<0.1'"):
        environment_of(str(folder), tmp_path)
    shutil.rmtree(folder)
    found = environment_of(str(other_version(folder)), tmp_path)
    assert found == Environment("5.1.0", folder)
    assert found.versions["transformers"] == "5.1.0"
    assert found.versions["tokenizers"] == installed_version().versions["tokenizers"]


@pytest.mark.nightly
def test_a_version_that_computes_otherwise_is_found(tmp_path, capsys):
    folder, report = other_version(tmp_path / "old"), tmp_path / "drift.json"
    asked = f"{installed_version().version},{folder}"
    names = ["random:bert-base-NER", "random:roberta-base"]
    assert main(["--drift", asked, *names, "--json", str(report), "--markdown", str(tmp_path / "drift.md")]) == 1
    facts = json.loads(report.read_text())
    assert list(facts["versions"]) == [installed_version().version, "5.1.0"]
    assert {change["checkpoint"] for change in facts["changes"]} == {"random:bert-base-NER (tiny)"}
    (change,) = facts["changes"]
    assert (change["part"], change["stage"], change["zoo"]) == ("outputs", "logits", installed_version().version)
    assert change["error"] > 1e-3
    assert "1 of 2 checkpoints are not equal" in capsys.readouterr().out
    assert "random:bert-base-NER" in (tmp_path / "drift.md").read_text()
