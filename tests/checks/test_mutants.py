"""The mutation check: it must tell a fault that tests find from one that they do not, or that cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks import mutants
from checks.mutants import KERNELS, ROOT, mutate, run_all, words_of
from checks.mutations import MUTATIONS, Mutation

TOY = """
def double(x):
    return x + x
"""
TESTS = """
import torch
from zoo.engines.triton.toy import double

def test_double():
    assert double(torch.ones(2)).tolist() == [2, 2]

def test_nothing():
    pass
"""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.module}: {m.fault}")
def test_every_fault_can_be_made(mutation):
    source = (ROOT / KERNELS / f"{mutation.module}.py").read_text(encoding="utf-8")
    compile(mutate(source, mutation), mutation.module, "exec")


def test_every_kernel_has_faults_each_with_a_name_of_its_own():
    modules = {path.stem for path in (ROOT / KERNELS).glob("*.py") if "@triton.jit" in path.read_text(encoding="utf-8")}
    assert {m.module for m in MUTATIONS} == modules
    assert len({(m.module, m.fault) for m in MUTATIONS}) == len(MUTATIONS)


@pytest.mark.parametrize(("before", "count"), [("x + y", 0), ("x", 3)])
def test_a_fault_that_cannot_be_made_says_so(before, count):
    with pytest.raises(ValueError, match=f"toy.py has {count} times, expected once: '{before}'".replace("+", r"\+")):
        mutate(TOY, Mutation("toy", "a fault", before, "z"))


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
        (Path("checks/forks.py"), (ROOT / "checks" / "forks.py").read_text()),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_outcomes(package):
    mutations = [
        Mutation("toy", "found", "x + x", "x + 3 * x"),
        Mutation("toy", "crashes", "return", "__import__('os').abort(); return"),
        Mutation("toy", "missed by the chosen test", "x + x", "x", "nothing"),
        Mutation("toy", "no test is chosen", "x + x", "x", "no_such_test"),
        Mutation("toy", "not there", "x * x", "x"),
        Mutation("toy", "not Python", "x + x", "x +"),
        Mutation("other", "tests fail anyway", "x + x", "x"),
    ]
    outcomes = {o.mutation.fault: o for o in run_all(mutations, 1, package)}
    assert len(outcomes) == len(mutations)
    assert {fault for fault, o in outcomes.items() if o.found} == {"found", "crashes"}
    assert "test_double: assert [4.0, 4.0] == [2, 2]" in outcomes["found"].words
    assert outcomes["crashes"].words == "ended by signal 6"
    assert "expected once" in outcomes["not there"].words
    assert "invalid syntax" in outcomes["not Python"].words
    assert "2 deselected" in outcomes["no test is chosen"].words
    assert "without the fault: test_other: assert 1 == 2" in outcomes["tests fail anyway"].words
    assert (package / KERNELS / "toy.py").read_text() == TOY  # all of it happened in copies


def test_a_missed_fault_fails_the_check(package, monkeypatch, capsys):
    monkeypatch.setattr(mutants, "MUTATIONS", (Mutation("toy", "halved", "x + x", "x"),))
    monkeypatch.setattr(mutants, "run_all", lambda m, workers: [mutants.Outcome(m[0], False, "2 passed", 1.0)])
    assert mutants.main([]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("MISSED toy: halved")
    assert "0 of 1 faults found" in printed


def test_words_of():
    text = (
        "E   assert 1 == 2\nE    +  where 1 = f()\nFAILED tests/kernels/test_norm.py::test_norms[(3, 8)-x] - assert\n"
    )
    assert words_of(1, text) == "test_norms[(3, 8)-x]: assert 1 == 2"
    assert words_of(2, "E   ImportError: no\nERROR tests/kernels/test_norm.py\n1 error in 0.1s\n") == "1 error in 0.1s"
    assert words_of(-14, "") == "ended by signal 14"
