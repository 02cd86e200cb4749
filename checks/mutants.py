"""`python -m checks.mutants`: break the kernels, one fault at a time, and see that tests/kernels find each."""

from __future__ import annotations

import argparse
import importlib.util
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

DESCRIPTION = """\
Puts one fault after another (an edge that is off by one, a rescaling left out, a wrong stride, ...) into a copy of the
package and runs the tests of that kernel, in the interpreter.  A fault that no test finds is a hole in the tests."""
EPILOG = "exit status: 0 every fault is found, 1 one is not or cannot be made, 2 wrong usage or something is missing"

ROOT = Path(__file__).parent.parent
FAULTS = Path(__file__).parent / "mutations.txt"
COPIED_PATHS = ("zoo", "checks", "tests/kernels", "tests/conftest.py", "pyproject.toml")
KERNELS = Path("zoo", "engines", "triton")
TESTS_FAILED = 1  # pytest's exit status where tests ran and some of them failed
MAX_SECONDS = 300  # seconds after which tests that still run have met an endless loop


class Mutation(NamedTuple):
    """before: occurs exactly once in the module's source.  tests: pytest's -k; empty: all of the module's tests."""

    module: str
    fault: str
    tests: str
    before: str
    after: str


class Outcome(NamedTuple):
    """words: the test that failed, or why the fault counts as not found."""

    mutation: Mutation
    found: bool
    words: str


def read_mutations() -> list[Mutation]:
    found, module = [], ""
    pattern = r"^# (\w+)$|^(.+) \[(.*)\]\n((?:- .*\n)+)((?:\+ .*(?:\n|\Z))+)"
    for match in re.finditer(pattern, FAULTS.read_text(encoding="utf-8"), re.M):
        module = match[1] or module
        if not match[1]:
            before, after = ("\n".join(line[2:] for line in match[i].splitlines()) for i in (4, 5))
            found.append(Mutation(module, match[2], match[3], before, after))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m checks.mutants",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="faults that have this in their kernel or name")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="tests at a time (default 2)")
    options = parser.parse_args(argv)
    missing = [name for name in ("torch", "triton", "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"checks.mutants: needs {' and '.join(missing)}: install zoo with its extra 'test'", file=sys.stderr)
        return 2
    mutations = [m for m in read_mutations() if options.only in f"{m.module}: {m.fault}"]
    if not mutations:
        parser.error(f"no fault has {options.only!r} in its name")
    if options.workers < 1:
        parser.error(f"--workers must be at least 1, found {options.workers}")
    missed = 0
    for mutation, found, words in run_all(mutations, options.workers):
        missed += not found
        print(f"{'found ' if found else 'MISSED'} {mutation.module}: {mutation.fault:<50} {words[:120]}", flush=True)
    print(f"{len(mutations) - missed} of {len(mutations)} faults found")
    return 1 if missed else 0


def run_all(mutations: Sequence[Mutation], workers: int, root: Path = ROOT) -> Iterator[Outcome]:
    """The outcome of each mutation, as they come, from `workers` copies of the package at a time."""
    with tempfile.TemporaryDirectory(prefix="zoo-mutants-") as scratch, ThreadPoolExecutor(workers) as pool:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(workers):
            copies.put(copy_package(root, Path(scratch, str(number))))

        def run_mutation(mutation: Mutation) -> Outcome:
            copy = copies.get()
            try:
                return try_mutation(copy, mutation)
            finally:
                copies.put(copy)

        # Tests that fail anyway would find every fault, so the kernels are tried as they are first.
        running = []
        for module in dict.fromkeys(m.module for m in mutations):
            sound = run_mutation(Mutation(module, "", "", "", ""))
            of_module = [m for m in mutations if m.module == module]
            if sound.found or "passed" not in sound.words:
                yield from (Outcome(m, False, f"without the fault: {sound.words}") for m in of_module)
            else:
                running += [pool.submit(run_mutation, m) for m in of_module]
        for done in as_completed(running):
            yield done.result()


def copy_package(root: Path, to: Path) -> Path:
    """Copy the files that the kernels' tests need into another folder."""
    for name in COPIED_PATHS:
        source, target = root / name, to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return to


def mutate(source: str, mutation: Mutation) -> str:
    """The source with the fault, if it has one; raises ValueError where that cannot be made."""
    count = source.count(mutation.before)
    if mutation.fault and count != 1:
        raise ValueError(f"{mutation.module}.py has {count} times, expected once: {mutation.before!r}")
    return source.replace(mutation.before, mutation.after) if mutation.fault else source


def try_mutation(copy: Path, mutation: Mutation) -> Outcome:
    """Put the fault into the copy, run the tests, and take it out again."""
    path = copy / KERNELS / f"{mutation.module}.py"
    source = path.read_text(encoding="utf-8")
    try:
        faulty = mutate(source, mutation)
        compile(faulty, path.name, "exec")  # it has to be a fault of the kernel, not of the language
    except (ValueError, SyntaxError) as e:
        return Outcome(mutation, False, str(e))
    path.write_text(faulty, encoding="utf-8")
    try:
        status, text = run_tests(copy, mutation)
    finally:
        path.write_text(source, encoding="utf-8")
    return Outcome(mutation, status == TESTS_FAILED or status < 0, words_of(status, text))


def run_tests(copy: Path, mutation: Mutation) -> tuple[int, str]:
    """The exit status of a kernel's tests, negative where a signal or an endless loop ended them, and their output."""
    files = sorted(f"tests/kernels/{path.name}" for path in copy.glob(f"tests/kernels/test_{mutation.module}*.py"))
    chosen = ["-k", mutation.tests] if mutation.tests else []
    command = [sys.executable, "-B", "-m", "pytest", "-m", "", "-x", "-p", "no:cacheprovider", *files, *chosen]
    environment = {**os.environ, "PYTHONPATH": str(copy), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    environment["TRITON_INTERPRET"] = "1"
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other packages' plugins take longer to load than most tests
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout


def words_of(status: int, text: str) -> str:
    """The end of pytest's output in a line: the first test that failed, and why."""
    if status < 0:
        return f"ended by signal {-status}" if status < -1 else "an endless loop"
    failed = re.search(r"^(?:FAILED|ERROR) \S+?::(.+?)(?: - |$)", text, re.M)
    reason = re.search(r"^E +(.+)", text, re.M)
    if failed:
        return f"{failed[1]}: {reason[1] if reason else ''}"
    return (text.strip().splitlines() or [""])[-1]


if __name__ == "__main__":
    sys.exit(main())
