"""The workflows are YAML, may only read, pin their actions, and call the programs as they are."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which huggingface_hub brings")

ROOT = Path(__file__).parent.parent
# What publishes asks for more than reading, job by job.
RIGHTS = {
    ("release", "build"): {"contents", "id-token", "attestations"},
    ("release", "publish"): {"id-token"},
    ("pages", "deploy"): {"pages", "id-token"},
}
PUBLISH = "pypa/gh-action-pypi-publish@release/v1"  # the reference that its own guide names
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(path: Path) -> list[dict]:
    return [step for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_pins_its_actions(path: Path):
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["permissions"] == {"contents": "read"}
    for name, job in found["jobs"].items():
        assert "timeout-minutes" in job
        assert set(job.get("permissions", ())) <= RIGHTS.get((path.stem, name), set()), name
    for step in steps(path):
        assert ("uses" in step) != ("run" in step)
        assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) or step["uses"] == PUBLISH


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_shell_steps_are_shell(path: Path):
    for step in steps(path):
        if "run" in step:
            subprocess.run(["bash", "-n", "-c", step["run"]], check=True)


def test_the_nightly_commands_are_parsed():
    """The commands that take the list of checkpoints are parsed."""
    pytest.importorskip("torch", reason="needs torch, which parity's reference runs on")
    from parity.__main__ import _parser
    from zoo.apps.cli import _parse
    from zoo.checkpoint.names import as_name

    path = next(path for path in WORKFLOWS if path.name == "nightly.yml")
    env = yaml.safe_load(path.read_text())["env"]
    names, small = env["CHECKPOINTS"].split(), env["SMALL"].split()
    assert len(set(names)) == len(names) > 7
    assert set(small) < set(names)
    assert not any(as_name(name).is_path for name in names)
    runs = [step["run"] for step in steps(path) if "run" in step]
    runs = [run.replace("$CHECKPOINTS", " ".join(names)).replace("$SMALL", " ".join(small)) for run in runs]
    parity = [shlex.split(run)[2:] for run in runs if run.startswith("zoo parity ")]
    named = [_parser().parse_args(arguments).names for arguments in parity]
    assert [one for one in named if one] == [names, small]  # the others take every built checkpoint
    (lock,) = (shlex.split(run)[1:] for run in runs if re.match("zoo (?!parity)", run))
    assert _parse(lock)[0].names == names


def test_every_row_of_the_trained_suite_runs_at_night():
    pytest.importorskip("torch", reason="needs torch, which parity's reference runs on")
    from parity.trained.__main__ import ROWS

    path = next(path for path in WORKFLOWS if path.name == "nightly.yml")
    jobs = yaml.safe_load(path.read_text())["jobs"]["trained"]["strategy"]["matrix"]["include"]
    assert sorted(row for job in jobs for row in job["rows"].split()) == sorted(ROWS)
