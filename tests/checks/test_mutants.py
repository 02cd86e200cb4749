"""The mutation check: it must tell a fault that tests find from one that they do not, or that cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import mutants
from checks.mutants import KERNELS, ROOT, Mutation, mutate, read_mutations, run_all, words_of

MUTATIONS = read_mutations()

TOY = """
def double(x):
    return x + x
"""
TESTS = """
from zoo.engines.triton.toy import double

def test_double():
    assert double(1) == 2

def test_nothing():
    pass
"""


def test_every_fault_can_be_made():
    for mutation in MUTATIONS:
        source = (ROOT / KERNELS / f"{mutation.module}.py").read_text(encoding="utf-8")
        compile(mutate(source, mutation), mutation.module, "exec")


def test_every_kernel_has_faults_each_with_a_name_of_its_own():
    modules = {path.stem for path in (ROOT / KERNELS).glob("*.py") if "@triton.jit" in path.read_text(encoding="utf-8")}
    assert {m.module for m in MUTATIONS} == modules
    assert len({(m.module, m.fault) for m in MUTATIONS}) == len(MUTATIONS)


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of the same shape, with one kernel that needs no Triton."""
    root = tmp_path_factory.mktemp("package")
    for path, text in (
        (KERNELS / "toy.py", TOY),
        (KERNELS / "other.py", TOY),
        (Path("tests/kernels/test_toy.py"), TESTS),
        (Path("tests/kernels/test_other.py"), "def test_other():\n    assert 1 == 2\n"),
        (Path("tests/conftest.py"), ""),
        (Path("pyproject.toml"), "[tool.pytest.ini_options]\naddopts = '-q'\n"),
        (Path("checks/__init__.py"), ""),
        *((Path(folder, "__init__.py"), "") for folder in (KERNELS, *KERNELS.parents[:-1])),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_outcomes(package):
    mutations = [
        Mutation("toy", "found", "", "x + x", "x + 3 * x"),
        Mutation("toy", "missed by the chosen test", "nothing", "x + x", "x"),
        Mutation("toy", "not there", "", "x * x", "x"),
        Mutation("toy", "there thrice", "", "x", "y"),
        Mutation("toy", "not Python", "", "x + x", "x +"),
        Mutation("other", "tests fail anyway", "", "x + x", "x"),
    ]
    outcomes = {o.mutation.fault: o for o in run_all(mutations, 1, package)}
    assert len(outcomes) == len(mutations)
    assert {fault for fault, o in outcomes.items() if o.found} == {"found"}
    assert "test_double: assert 4 == 2" in outcomes["found"].words
    assert "has 0 times, expected once" in outcomes["not there"].words
    assert "has 3 times, expected once" in outcomes["there thrice"].words
    assert "invalid syntax" in outcomes["not Python"].words
    assert "without the fault: test_other: assert 1 == 2" in outcomes["tests fail anyway"].words
    assert (package / KERNELS / "toy.py").read_text() == TOY  # all of it happened in copies


def test_a_missed_fault_fails_the_check(monkeypatch, capsys):
    monkeypatch.setattr(mutants, "read_mutations", lambda: [Mutation("toy", "halved", "", "x + x", "x")])
    monkeypatch.setattr(mutants, "run_all", lambda m, workers: [mutants.Outcome(m[0], False, "2 passed")])
    assert mutants.main([]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("MISSED toy: halved")
    assert "0 of 1 faults found" in printed


def test_words_of():
    assert words_of(2, "E   ImportError: no\nERROR tests/kernels/test_norm.py\n1 error in 0.1s\n") == "1 error in 0.1s"
    assert words_of(-14, "") == "ended by signal 14"
