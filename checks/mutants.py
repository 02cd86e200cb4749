"""`python -m checks.mutants`: break the kernels, one fault at a time, and see that tests/kernels find each."""

from __future__ import annotations

import argparse
import importlib.util
import queue
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from .forks import Pytest
from .mutations import MUTATIONS, Mutation

DESCRIPTION = """\
Puts one fault after another (an edge that is off by one, a rescaling left out, a wrong stride, ...) into a copy of the
package and runs the tests of that kernel, in the interpreter.  A fault that no test finds is a hole in the tests."""
EPILOG = "exit status: 0 every fault is found, 1 one is not or cannot be made, 2 wrong usage or something is missing"

ROOT = Path(__file__).parent.parent
COPIED = ("zoo", "checks", "tests/kernels", "tests/conftest.py", "pyproject.toml")
KERNELS = Path("zoo", "ops", "on_torch", "kernels")
FAILED = 1  # pytest's exit status where tests ran and some of them failed
T = TypeVar("T")


class Outcome(NamedTuple):
    """What the tests said of a kernel with a fault."""

    mutation: Mutation
    found: bool
    words: str  # the test that failed, or why the fault counts as not found
    seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(argv)
    missing = [name for name in ("torch", "triton", "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"checks.mutants: needs {' and '.join(missing)}: install zoo with its extra 'test'", file=sys.stderr)
        return 2
    mutations = [m for m in MUTATIONS if options.only in f"{m.module}: {m.fault}"]
    if not mutations:
        parser.error(f"no fault has {options.only!r} in its name")
    if options.workers < 1:
        parser.error(f"--workers must be at least 1, found {options.workers}")
    begin = time.perf_counter()
    missed = 0
    for outcome in run_all(mutations, options.workers):
        missed += not outcome.found
        word = "found " if outcome.found else "MISSED"
        name = f"{outcome.mutation.module}: {outcome.mutation.fault}"
        print(f"{word} {name:<64} {outcome.seconds:5.1f} s  {outcome.words[:120]}", flush=True)
    print(f"{len(mutations) - missed} of {len(mutations)} faults found, {time.perf_counter() - begin:.0f} s")
    return 1 if missed else 0


def run_all(mutations: Sequence[Mutation], workers: int, root: Path = ROOT) -> Iterator[Outcome]:
    """The outcome of each mutation, as they come, from `workers` copies of the package at a time."""
    with tempfile.TemporaryDirectory(prefix="zoo-mutants-") as scratch, ThreadPoolExecutor(workers) as pool:
        idle: queue.Queue[Pytest] = queue.Queue()
        for number in range(workers):
            idle.put(Pytest(copy_package(root, Path(scratch, str(number)))))
        # Tests that fail anyway would find every fault, so the kernels are tried as they are first.
        modules = dict.fromkeys(m.module for m in mutations)
        sound = {module: pool.submit(_with, idle, fails_anyway, module, mutations) for module in modules}
        running = []
        for module, job in sound.items():
            words = job.result()
            of_module = [m for m in mutations if m.module == module]
            if words:
                yield from (Outcome(m, False, f"without the fault: {words}", 0.0) for m in of_module)
            else:
                running += [pool.submit(_with, idle, try_mutation, m) for m in of_module]
        for done in as_completed(running):
            yield done.result()
        while not idle.empty():
            idle.get().close()


def _with(idle: queue.Queue[Pytest], function: Callable[..., T], *arguments: Any) -> T:
    """The function's result, with an idle pytest as its first argument."""
    pytest = idle.get()
    try:
        return function(pytest, *arguments)
    finally:
        idle.put(pytest)


def copy_package(root: Path, to: Path) -> Path:
    """What the kernels' tests need, in a folder of its own."""
    for name in COPIED:
        source, target = root / name, to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return to


def fails_anyway(pytest: Pytest, module: str, mutations: Sequence[Mutation]) -> str:
    """Why the tests of a module prove nothing: they fail as it is, or there are none.  Empty where they do."""
    selections = {m.tests for m in mutations if m.module == module}
    selection = "" if "" in selections else " or ".join(sorted(selections))
    status, text = run_tests(pytest, module, selection)
    return "" if status == 0 else words_of(status, text)


def mutate(source: str, mutation: Mutation) -> str:
    """The source with the fault; raises ValueError where it cannot be made."""
    count = source.count(mutation.before)
    if count != 1:
        raise ValueError(f"{mutation.module}.py has {count} times, expected once: {mutation.before!r}")
    return source.replace(mutation.before, mutation.after)


def try_mutation(pytest: Pytest, mutation: Mutation) -> Outcome:
    """Put the fault into the copy, run the tests, and take it out again."""
    begin = time.perf_counter()
    path = pytest.copy / KERNELS / f"{mutation.module}.py"
    source = path.read_text(encoding="utf-8")
    try:
        faulty = mutate(source, mutation)
        compile(faulty, path.name, "exec")  # it has to be a fault of the kernel, not of the language
    except (ValueError, SyntaxError) as e:
        return Outcome(mutation, False, str(e), 0.0)
    path.write_text(faulty, encoding="utf-8")
    try:
        status, text = run_tests(pytest, mutation.module, mutation.tests)
    finally:
        path.write_text(source, encoding="utf-8")
    found = status == FAILED or status < 0  # a signal: a crash, or an endless loop
    return Outcome(mutation, found, words_of(status, text), time.perf_counter() - begin)


def run_tests(pytest: Pytest, module: str, selection: str) -> tuple[int, str]:
    """The exit status of the tests of a kernel's module, or of all that begin so, and what they print."""
    chosen = ["-k", selection] if selection else []
    files = sorted(f"tests/kernels/{path.name}" for path in (pytest.copy / "tests/kernels").glob(f"test_{module}*.py"))
    return pytest.run(["-x", "-p", "no:cacheprovider", *files, *chosen])


def words_of(status: int, text: str) -> str:
    """The end of pytest's output in a line: the first test that failed, and why."""
    if status < 0:
        return f"ended by signal {-status}"
    failed = re.search(r"^(?:FAILED|ERROR) \S+?::(.+?)(?: - |$)", text, re.M)
    reason = re.search(r"^E +(.+)", text, re.M)
    if failed:
        return f"{failed[1]}: {reason[1] if reason else ''}"
    return (text.strip().splitlines() or [""])[-1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m checks.mutants",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="faults that have this in their kernel or name")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="tests at a time (default 2)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
