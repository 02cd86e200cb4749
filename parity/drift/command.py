"""`zoo parity --drift`: every version beside the installed one, and the tables of it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from zoo.errors import ZooError
from zoo.hub import find

from ..cases import RANDOM_PREFIX, Case, all_cases, short_name
from ..checkpoints import build
from ..report import escape, machine
from ..run import run_zoo
from ..specs import FIRST
from .comparing import Change, changes_of
from .environments import (
    Environment,
    UnavailableVersionError,
    environment_of,
    expect_version,
    installed_version,
    is_installed,
)
from .faults import FAULTS
from .recording import PARTS, Job, Recording, faults_file, job_files, read_pickle, recording_file

ZOO_NAME = "zoo"  # the name of zoo's recordings, beside those of versions


@dataclass
class Bulletin:
    """What was found.  versions: of each version that ran, those of its packages.  not_run: what did not, and why.

    faults: for each version what its reproductions of known faults print, by the fault's name.
    """

    pinned: Environment
    checkpoints: list[str]
    changes: list[Change] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    faults: dict[str, dict[str, str]] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)


def drift_cases() -> list[Case]:
    """What is compared where nothing is named: one random checkpoint of each family, and the real ones at hand."""
    first = {RANDOM_PREFIX + name for name in FIRST}
    return [case for case in all_cases(full=False) if case.size == "real" or case.name in first]


def expect_versions(asked: str) -> list[str]:
    """The versions and folders of a list with commas; InputError for one that is neither."""
    found = [one.strip() for one in asked.split(",")]
    for one in found:
        expect_version(one)
    return list(dict.fromkeys(found))


def compare_versions(asked: Sequence[str], cases: Sequence[Case], seed: int) -> Iterator[tuple[str, Bulletin]]:
    """Run every version on every case -> after each, its number and all that was found until then.

    What cannot be run is said at once, and the rest goes on.
    """
    found = Bulletin(installed_version(), [short_name(case) for case in cases])
    with tempfile.TemporaryDirectory(prefix="drift-") as root:
        scratch = Path(root)
        for i, case in enumerate(cases):
            try:
                _write_job(case, seed, scratch / f"{i:04}")
            except ZooError as e:
                _say_not_run(found, short_name(case), e)
        _run(found.pinned, scratch, found)
        yield found.pinned.version, found
        for one in asked:
            try:
                environment = found.pinned if is_installed(one) else environment_of(one, scratch / "versions")
                if environment.version in found.versions:
                    continue
                _run(environment, scratch, found)
            except (ZooError, OSError) as e:
                _say_not_run(found, one, e)
                continue
            names = found.pinned.version, environment.version
            for path in job_files(scratch):
                zoo, pinned, other = (read_pickle(recording_file(path, name)) for name in (ZOO_NAME, *names))
                found.changes += changes_of(read_pickle(path), zoo, pinned, other, names)
                recording_file(path, environment.version).unlink()
            yield environment.version, found


def _say_not_run(found: Bulletin, name: str, error: Exception) -> None:
    found.not_run[name] = " ".join(str(error).split())
    print(f"zoo parity: {name}: {found.not_run[name]}", file=sys.stderr)


def _write_job(case: Case, seed: int, place: Path) -> None:
    """Keep what zoo is given for a case, and makes of it.  A random checkpoint is built at this place."""
    if case.name.startswith(RANDOM_PREFIX):
        checkpoint = find(build(case.name.removeprefix(RANDOM_PREFIX), place, "tiny", seed))
    else:
        with case.files(seed) as checkpoint:
            pass
    _, architecture, given, ours = run_zoo(checkpoint, None, "float32", seed)
    if ours.failure:
        raise UnavailableVersionError(f"zoo writes no text: {ours.failure}")
    job = Job(short_name(case), checkpoint.folder, architecture, given.batches, ours.written)
    zoo = Recording(outputs=ours.stages, written=ours.written)
    for batch in given.batches:
        if batch.texts and batch.mask is not None and given.tokenizer is not None:
            rows = given.tokenizer.encode_batch(batch.texts, batch.pairs, max_length=batch.mask.shape[1]).rows
            zoo.tokens[batch.name] = [list(row.ids) for row in rows]
        if batch.images:
            zoo.pixels[batch.name] = batch.arrays
    path = place.with_suffix(".job")
    path.write_bytes(pickle.dumps(job))
    recording_file(path, ZOO_NAME).write_bytes(pickle.dumps(zoo))


def _run(environment: Environment, scratch: Path, found: Bulletin) -> None:
    """Record every job in a process that finds this version before the installed one."""
    paths = [str(environment.folder)] if environment.folder else []
    paths += [os.path.abspath(path) for path in sys.path]
    command = [sys.executable, "-m", str(__package__), str(scratch), environment.version]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with exit status {done.returncode}"])[-1]
        raise UnavailableVersionError(f"transformers {environment.version} does not run here: {last}")
    found.versions[environment.version] = environment.versions
    found.faults[environment.version] = read_pickle(faults_file(scratch, environment.version))


def document(found: Bulletin, command: str) -> dict[str, object]:
    """Everything that was found, as an object for JSON."""
    changes = [dataclasses.asdict(change) for change in found.changes]
    for change in changes:
        change["error"] = None if change["error"] is None or math.isinf(change["error"]) else change["error"]
    return {
        "command": command,
        "pinned": found.pinned.version,
        "versions": found.versions,
        "machine": machine(),
        "checkpoints": found.checkpoints,
        "changes": changes,
        "faults": found.faults,
        "not_run": found.not_run,
    }


def write_json(path: Path, found: Bulletin, command: str) -> None:
    path.write_text(json.dumps(document(found, command), indent=1, allow_nan=False) + "\n", encoding="utf-8")


class Row(NamedTuple):
    """A line of the table: a part of some checkpoints that differs in some versions."""

    part: str
    checkpoints: list[str]
    versions: list[str]
    largest: Change
    zoo: str


def rows_of(found: Bulletin) -> list[Row]:
    """The changes, those of equal versions and sides as one row, the most frequent part first."""
    order = sorted(found.versions, key=_numbers)
    worst: dict[tuple[str, str, bool], dict[str, Change]] = {}  # of the stages of a part, by version
    for change in found.changes:
        of_versions = worst.setdefault((change.checkpoint, change.part, change.error is None), {})
        before = of_versions.get(change.version)
        if before is None or (change.error or 0) > (before.error or 0):
            of_versions[change.version] = change
    rows: dict[tuple[str, bool, tuple[str, ...], str], list[tuple[str, list[Change]]]] = {}
    for (checkpoint, part, fails), by_version in worst.items():
        changes = list(by_version.values())
        sides = {"its own" if change.zoo == change.version else change.zoo for change in changes}
        key = (part, fails, tuple(sorted(by_version, key=order.index)), " or ".join(sorted(sides)))
        rows.setdefault(key, []).append((checkpoint, changes))
    out = []
    for (part, _, versions, side), parts in rows.items():
        largest = max((change for _, changes in parts for change in changes), key=lambda change: change.error or 0)
        out.append(Row(part, [name for name, _ in parts], list(versions), largest, side))
    return sorted(out, key=lambda row: (PARTS.index(row.part), order.index(row.versions[0])))


def markdown(found: Bulletin) -> str:
    """The table of changes, and the one of faults."""
    order = sorted(found.versions, key=_numbers)
    others = [version for version in order if version != found.pinned.version]
    lines = [
        "| part | checkpoints | transformers | the largest difference | zoo has what ... has |",
        "|---|---|---|---|---|",
    ]
    for row in rows_of(found):
        names = ", ".join(row.checkpoints[:4]) + f" and {len(row.checkpoints) - 4} more" * (len(row.checkpoints) > 4)
        about = f"{row.largest.stage}: {row.largest.about}"[:160]
        lines.append(f"| {row.part} | {names} | {_ranges(row.versions, others)} | {escape(about)} | {row.zoo} |")
    lines += ["", "| fault | in | what happens |", "|---|---|---|"]
    for name, fault in FAULTS.items():
        has = {version: found.faults[version][name] for version in reversed(order) if found.faults[version][name]}
        ran = {version: text for version, text in has.items() if not text.startswith("not run: ")}
        where = _ranges(list(ran), order) if ran else "none that ran"
        lines.append(f"| {fault.about} | {where} | {escape(next(iter([*ran.values(), *has.values()]), ''))} |")
    return "\n".join([*lines, ""])


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _ranges(versions: Sequence[str], order: Sequence[str]) -> str:
    """Versions in their order, those that follow each other as "first to last"."""
    places, runs = sorted(map(order.index, versions)), list[list[int]]()
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return ", ".join(order[run[0]] + f" to {order[run[-1]]}" * (len(run) > 1) for run in runs)


def print_drift(asked: Sequence[str], cases: Sequence[Case], options: argparse.Namespace, command: str) -> int:
    """Run it, and print and write what changed after every version -> the exit status."""
    found = None
    for version, found in compare_versions(asked, cases, options.seed):
        print("\n".join(_lines_of(version, found)), flush=True)
        if options.json:
            write_json(options.json, found, command)
        if options.markdown:
            options.markdown.write_text(markdown(found), encoding="utf-8")
    assert found is not None  # of the installed version, at least
    return 2 if found.not_run else int(bool(found.changes))


def _lines_of(version: str, found: Bulletin) -> Iterator[str]:
    """What is printed of a version."""
    changes = [change for change in found.changes if change.version == version]
    differ = len({change.checkpoint for change in changes})
    if version == found.pinned.version:
        yield f"transformers {version}: the installed one, which the others are held against"
    else:
        yield f"transformers {version}: {differ or 'none'} of {len(found.checkpoints)} checkpoints are not equal"
    for change in changes:
        yield f"  {change.checkpoint}  {change.stage}: {change.about}; zoo has what {change.zoo} has"
    for name, text in found.faults[version].items():
        if text:
            yield f"  fault of {name}: {text}"
