"""Parts that the benchmarks share: taking turns, ratios, tables, result files, and the facts of the machine."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    *("numpy", "tokenizers", "safetensors", "huggingface_hub"),
    *("torch", "transformers", "sentence-transformers", "onnxruntime", "openvino"),
)
# For a while after a call, idle threads wait for more by spinning on a core, which would slow down whoever comes next:
# measured on 2 cores, OpenMP's (torch) for 5 ms, ONNX Runtime's for 25 ms, OpenBLAS's (NumPy) for up to 100 ms.
SETTLED = 0.05  # of a core: what the process may still use when the next turn begins
LONGEST_PAUSE = 0.5  # seconds
TURN = 0.1  # seconds that one turn lasts at least, so that a fast call is timed warm
# Users wait for wall time.  CPU time, of all threads of the process, can be measured on a machine with other work;
# then one thread is fair, since some libraries' idle threads spin.
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


class Row(NamedTuple):
    """One line of a report: the same work for each contender."""

    name: str
    calls: Mapping[str, Callable[[], Any]]
    targets: Mapping[str, float] = {}


def start(args: argparse.Namespace, torch_too: bool = True) -> dict[str, Any]:
    """Give all contenders of this process the same threads, and print the machine -> `environment`.

    torch_too: load torch, and set its threads.
    """
    threads = take_threads(args.threads)
    if torch_too:
        import torch

        torch.set_num_threads(threads)
    found = environment(threads, getattr(args, "clock", "wall"))
    print(summary(found), flush=True)
    return found


def finish(name: str, args: argparse.Namespace, result: Mapping[str, Any]) -> None:
    """Write the result to --json, or to results/ unless --quick was given."""
    if path := args.json or (None if getattr(args, "quick", False) else dated(name, result["environment"])):
        write(path, result)
        print(f"written to {path}")


def measure(rows: Iterable[Row], rounds: int, clock: str, tolerance: float, reference: str) -> list[dict[str, Any]]:
    """Compare the outputs of each row, and time the row unless one differs by more than `tolerance`."""
    results = []
    for row in rows:
        results.append({"row": row.name, "differences": differences(row.calls, reference)})
        if max(results[-1]["differences"].values()) > tolerance:
            print(f"{row.name}: not timed, since outputs differ: {results[-1]['differences']}", flush=True)
            continue
        results[-1].update(compare(take_turns(row.calls, rounds, clock), row.targets))
        print(row.name, "done", flush=True)
    return results


def differences(calls: Mapping[str, Callable[[], Any]], reference: str = "transformers") -> dict[str, float]:
    """The largest difference of each contender's output to the reference's, relative to its largest value."""
    import numpy as np

    outputs = {name: np.asarray(call()) for name, call in calls.items()}
    wanted = outputs.pop(reference)
    return {name: float(np.abs(got - wanted).max() / np.abs(wanted).max()) for name, got in outputs.items()}


def in_turns(names: Sequence[str], rounds: int) -> Iterator[str]:
    """Every name once in each round, each round beginning with another one."""
    for i in range(rounds):
        yield from names[i % len(names) :]
        yield from names[: i % len(names)]


def take_turns(contenders: Mapping[str, Callable[[], Any]], rounds: int, clock: str = "wall") -> dict[str, list[float]]:
    """Seconds of one call for each contender, once in each round, by one of CLOCKS.

    They take turns, each round beginning with another one, and before each turn all threads come to rest.  A call that
    is shorter than TURN is repeated until the turn has lasted that long, and the median counts.
    """
    names = list(contenders)
    now = CLOCKS[clock]
    repeats = {name: _repeats(contenders[name]) for name in names}
    out: dict[str, list[float]] = {name: [] for name in names}
    for name in in_turns(names, rounds):
        settle()
        if repeats[name] > 1:
            contenders[name]()  # wakes the threads, and fills the caches
        out[name].append(statistics.median(_seconds(contenders[name], now) for _ in range(repeats[name])))
    return out


def alone(call: Callable[[], Any], clock: str = "wall") -> float:
    """Seconds of one call in a process that does nothing else: the median of at least 5, and of TURN."""
    repeats = max(5, _repeats(call))
    return statistics.median(_seconds(call, CLOCKS[clock]) for _ in range(repeats))


def settle() -> None:
    """Wait until no thread of this process spins any more."""
    step = 0.02
    for _ in range(round(LONGEST_PAUSE / step)):
        begin, used = time.perf_counter(), time.process_time()
        time.sleep(step)
        if time.process_time() - used < SETTLED * (time.perf_counter() - begin):
            return


def _repeats(call: Callable[[], Any]) -> int:
    call()
    return max(1, round(TURN / _seconds(call)))


def _seconds(call: Callable[[], Any], now: Callable[[], float] = time.perf_counter) -> float:
    begin = now()
    call()
    return now() - begin


def compare(times: Mapping[str, Sequence[float]], targets: Mapping[str, float], ours: str = "zoo") -> dict[str, Any]:
    """Medians and minima in ms; ours / peer as the median of each round's ratio, with the target that it should meet.

    ratio_of_minima tells how far noise made the ratio: it hits those hardest whose threads spin.
    """
    ms = {
        name: {"median_ms": 1e3 * statistics.median(t), "min_ms": 1e3 * min(t), "rounds_ms": [1e3 * s for s in t]}
        for name, t in times.items()
    }
    ratios = {}
    for peer in times:
        if peer == ours:
            continue
        ratio = statistics.median(a / b for a, b in zip(times[ours], times[peer], strict=True))
        target = targets.get(peer)
        ratios[peer] = {
            "ratio": ratio,
            "ratio_of_minima": min(times[ours]) / min(times[peer]),
            "target": target,
            "met": None if target is None else ratio <= target,
        }
    return {"times": ms, "ratios": ratios}


def losing(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """`bert-base 1x128: 1.27 of transformers` for each ratio of the rows that is above 1."""
    return [
        f"{row['row']}: {found['ratio']:.2f} of {peer}"
        for row in rows
        for peer, found in row.get("ratios", {}).items()
        if found["ratio"] > 1
    ]


def show_ratio(found: Mapping[str, Any]) -> str:
    """`0.85 (0.84) <= 0.88`: the ratio, that of the minima, and the target, with a word where it is missed."""
    text = f"{found['ratio']:.2f} ({found['ratio_of_minima']:.2f})"
    if found["target"] is None:
        return text
    return f"{text} {'<=' if found['met'] else 'MISSES'} {found['target']:g}"


def by_name(results: Sequence[Mapping[str, Any]], part: str, show: Callable[[dict[str, Any]], str]) -> str:
    """A table with a column for each name in that part of the results."""
    timed = [r for r in results if part in r]
    names = list(dict.fromkeys(name for r in timed for name in r[part]))
    lines = [[r["row"], *(show(r[part][n]) if n in r[part] else "" for n in names)] for r in timed]
    return table(["", *names], lines)


def print_rows(results: Sequence[Mapping[str, Any]], rounds: int) -> None:
    """Times and ratios of all rows."""
    print(f"\nmilliseconds: median (minimum) of {rounds} rounds")
    print(by_name(results, "times", lambda found: f"{found['median_ms']:.1f} ({found['min_ms']:.1f})"))
    print("\nzoo's time / the peer's: median over the rounds (ratio of the minima), target")
    print(by_name(results, "ratios", show_ratio))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns, the first to the left."""
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    lines = (head, ["-" * w for w in widths], *rows)
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def take_threads(wanted: int | None) -> int:
    """The threads that all contenders get; call it before NumPy is loaded, since its BLAS looks only then.

    wanted: None for OMP_NUM_THREADS, or as many as there are cores.
    """
    threads = wanted or int(os.environ.get("OMP_NUM_THREADS") or available_cores())
    os.environ.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    calm()
    return threads


def calm() -> None:
    """No downloads, and no progress bars or advice among the figures; children inherit it."""
    os.environ.update(
        TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false"
    )


def environment(threads: int, clock: str = "wall") -> dict[str, Any]:
    """The machine and the versions that a result was measured with, and by which of CLOCKS."""
    from zoo.ops.on_numpy import blas

    control = blas.find()
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "processor": processor(),
        "blas_core": control.core if control else None,
        "clock": clock,
        "cores": available_cores(),
        "threads": threads,
        "load_before": load,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "variables": {
            k: v for k, v in os.environ.items() if k.startswith(("OMP_", "OPENBLAS_", "MKL_", "KMP_", "GOMP_"))
        },
    }


def cpu_model() -> str:
    """The system's name of the processor, and its vector units: a hypervisor may hide the name."""
    field = _cpuinfo()
    if not field:
        return platform.processor() or platform.machine()
    flags = set(field.get("flags", "").split())
    has = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile") if f in flags]
    return f"{field.get('model name', platform.machine())} ({' '.join(has)})"


def processor() -> str:
    """A word for file names: vendor, family and model, as amd-25-1 for a Zen 3; else the kind of machine."""
    field = _cpuinfo()
    vendor = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}.get(field.get("vendor_id", ""))
    return f"{vendor}-{field['cpu family']}-{field['model']}" if vendor else platform.machine().lower()


def _cpuinfo() -> dict[str, str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines) if v}


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def summary(environment: Mapping[str, Any]) -> str:
    """One line on the machine, one on the versions, and one if the machine has other things to do."""
    versions = ", ".join(f"{k} {v}" for k, v in environment["versions"].items())
    lines = [
        f"{environment['cpu']}, {environment['cores']} cores, {environment['threads']} threads",
        f"Python {environment['python']}, {versions}",
    ]
    load = environment["load_before"]
    if load is not None and load > environment["cores"] / 4:
        lines.append(
            f"provisional: the load is {load:.1f}, so others compute here too, and spinning threads suffer most"
        )
    return "\n".join(lines)


def run_python(code: str, *arguments: str, python: str = sys.executable, **variables: str) -> dict[str, Any]:
    """Run code in a process of its own, which imports from this repository -> the JSON that it prints last."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    command = [python, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"a measured process failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def write(path: str | os.PathLike[str], result: Mapping[str, Any]) -> None:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def dated(name: str, environment: Mapping[str, Any]) -> Path:
    """results/<name>-<processor>-<core of the BLAS>-<today>.json: machines' results lie side by side."""
    parts = [name, environment["processor"], (environment["blas_core"] or "").lower()]
    parts += ["cpu-seconds"] if environment["clock"] == "cpu" else []
    return RESULTS / f"{'-'.join(filter(None, [*parts, datetime.date.today().isoformat()]))}.json"


def parser(
    name: str,
    about: str | None,
    rounds: int | None = None,
    *,
    quick: str = "",
    threads: bool = True,
    cache: bool = True,
) -> argparse.ArgumentParser:
    """The command line that benchmarks share.  quick: what --quick does.  cache: random checkpoints are kept."""
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--rounds", type=int, default=rounds, help="turns of each contender (fewer with --quick)")
    made.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    if quick:
        made.add_argument("--quick", action="store_true", help=quick)
    if threads:
        made.add_argument("--threads", type=int, help="of each contender (default: OMP_NUM_THREADS, or the cores)")
        add_clock(made)
    if cache:
        from .checkpoints import cache_folder

        made.add_argument("--cache", type=Path, default=cache_folder(), help="for the random checkpoints")
    return made


def add_clock(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clock",
        choices=tuple(CLOCKS),
        default="wall",
        help="cpu: seconds that the process used, for a machine with other work; then with --threads 1 (default: wall)",
    )
