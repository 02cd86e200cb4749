"""The device, rows with their errors and times, and the file that a stage writes."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import json
import math
import os
import re
import statistics
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .. import harness
from .table import UNITS

TURN = 0.05  # seconds that one turn of a contender takes on the device, about
MOST, LEAST = 200, 5  # calls in a turn
ROUNDS = 5
FLUSHED = 256 << 20  # bytes that are written before each call of a kernel, so that its inputs are in no cache
TIMES = 3  # our error may be at most this many times the largest of the peers'
NO_GPU, LOST = 3, 75  # exit statuses: no GPU; a row broke the CUDA context, the next rows need another process
UNIT = {"float32": 2.0**-26, "float16": 2.0**-13, "bfloat16": 2.0**-10}  # relative error of one rounding, about

Call = Callable[[], Any]


class BenchRow(NamedTuple):
    """One comparison of a stage."""

    name: str
    run: Callable[[], dict[str, Any]]


@dataclass
class Bench:
    """The device and the time that a stage has.

    interpreted: there is no GPU; kernels go through Triton's interpreter, and nothing is timed.
    ahead: rows only compile what they time with torch.compile, so that another process finds it in torch's cache.
    """

    device: str
    card: str
    tiny: bool
    interpreted: bool
    folder: Path
    minutes: float = math.inf
    only: str = ""
    ahead: bool = False
    ceilings: dict[str, float] = field(default_factory=dict)  # {"copy": GB/s, "bf16_tflops": TFLOP/s}

    def __post_init__(self) -> None:
        self.end = time.monotonic() + 60 * self.minutes

    def left(self) -> float:
        return self.end - time.monotonic()

    def normal(self, *shape: int, dtype: str = "bfloat16", seed: int = 0, scale: float = 1.0) -> Any:
        """Random numbers on the device, the same for the same seed and shape."""
        import torch

        generator = torch.Generator(self.device).manual_seed(seed)
        x = torch.randn(shape, device=self.device, generator=generator, dtype=torch.float32)
        return (x * scale).to(getattr(torch, dtype))

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """By torch.compile, for these shapes alone; in the interpreter without code generation."""
        import torch

        return torch.compile(call, dynamic=False, backend="eager" if self.interpreted else "inductor")

    def synchronize(self) -> None:
        import torch

        if not self.interpreted:
            torch.cuda.synchronize()

    def free(self) -> None:
        """Give memory back between rows: models, compiled programs, recorded graphs."""
        import torch

        torch.compiler.reset()
        gc.collect()
        if not self.interpreted:
            torch.cuda.empty_cache()


@contextlib.contextmanager
def opened(tiny: bool, folder: Path, minutes: float = math.inf, only: str = "") -> Iterator[Bench]:
    """The device: a GPU where there is one, else (with tiny) CPU tensors in Triton's interpreter."""
    harness.calm()
    import torch

    if torch.cuda.is_available():
        with torch.no_grad():
            yield Bench("cuda", torch.cuda.get_device_name(), tiny, False, folder, minutes, only)
        return
    if not tiny:
        print(f"torch {torch.__version__} finds no GPU: --tiny runs every stage in Triton's interpreter", flush=True)
        raise SystemExit(NO_GPU)
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which torch does not do by itself
    from checks import interpreter
    from zoo.engines import triton as kernels

    interpreter.install()
    with kernels.interpreting(), torch.no_grad():
        yield Bench("cpu", "interpreter", tiny, True, folder, minutes, only)


# Comparing


def compare(
    bench: Bench,
    contenders: Mapping[str, Call],
    reference: Call | None,
    unit: float,
    *,
    pick: Callable[[Any], Any] = lambda output: output,
    timed: Mapping[str, Call] | None = None,
    wall: bool = False,
    flops: float = 0,
    bytes: float = 0,
) -> dict[str, Any]:
    """A row's result: errors to the reference (in float64 or float32), then times, ratios and shares.

    Every contender is called once and compared before anything is timed; a peer that refuses these arguments is left
    out with its reason, and where our error is too large nothing is timed.  Names that begin with "zoo" are ours.
    pick: the part of an output to compare.  timed: calls to time in place of those that are compared.
    """
    outputs, refused = called({name: lambda call=call: pick(call()) for name, call in contenders.items()}, bench)
    result: dict[str, Any] = {"refused": refused} if refused else {}
    calls = {name: (timed or {}).get(name, contenders[name]) for name in outputs}
    if reference is not None:
        result |= judged(outputs, reference(), unit)
    outputs.clear()
    if "wrong" in result:
        return {**result, "times": dict.fromkeys(calls), "ratios": {}}
    return {**result, **rated(bench, take_turns(bench, calls, wall), flops, bytes)}


def called(calls: Mapping[str, Call], bench: Bench) -> tuple[dict[str, Any], dict[str, str]]:
    """The outputs, and why peers refused; our own errors are raised, and those after which CUDA is of no use."""
    outputs, refused = {}, {}
    for name, call in calls.items():
        try:
            outputs[name] = call()
            bench.synchronize()
        except Exception as e:
            if is_ours(name) or "CUDA error" in str(e):
                raise
            refused[name] = reason(e)
    return outputs, refused


def judged(outputs: Mapping[str, Any], wanted: Any, unit: float) -> dict[str, Any]:
    """Errors to what is wanted, the largest that is allowed to ours, and what is wrong."""
    errors = {name: relative_l2(output, wanted) for name, output in outputs.items()}
    allowed = TIMES * max([unit, *(error for name, error in errors.items() if not is_ours(name))])
    worst = max(error for name, error in errors.items() if is_ours(name))
    found: dict[str, Any] = {"errors": errors, "allowed": allowed}
    if not worst <= allowed:
        found["wrong"] = f"the error is {worst:.1e}, at most {allowed:.1e} was expected"
    return found


def is_ours(name: str) -> bool:
    return name.startswith("zoo")


def reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def relative_l2(output: Any, wanted: Any) -> float:
    """The largest over a tuple's tensors; 1e30 where a number is not finite."""
    if isinstance(output, tuple | list):
        return max(relative_l2(a, b) for a, b in zip(output, wanted, strict=True))
    found = float((output.double() - wanted.double()).norm() / wanted.double().norm().clamp_min(1e-30))
    return found if math.isfinite(found) else 1e30


def rated(bench: Bench, times: Mapping[str, Sequence[float]], flops: float = 0, bytes: float = 0) -> dict[str, Any]:
    """Medians, ratios of zoo to each peer, rates and shares of the card's ceilings, from seconds of each round."""
    if not all(times.values()):
        return {"times": dict.fromkeys(times), "ratios": {}}
    found = harness.compare(times, {}, "zoo" if "zoo" in times else next(iter(times)))
    for unit, done, ceiling in (("tflops", flops / 1e12, "bf16_tflops"), ("gb_per_second", bytes / 1e9, "copy")):
        if done:
            found[unit] = {name: done / (ms["median_ms"] / 1e3) for name, ms in found["times"].items()}
            if ceiling in bench.ceilings:
                found["share"] = {name: rate / bench.ceilings[ceiling] for name, rate in found[unit].items()}
                found["share_of"] = ceiling
    return found


def per_second(result: Mapping[str, Any], unit: str, count: float) -> dict[str, Any]:
    """Tokens or rows per second, from a row's times."""
    times = {name: found for name, found in result["times"].items() if found}
    return {unit: {name: count / (found["median_ms"] / 1e3) for name, found in times.items()}} if times else {}


# Times


def take_turns(
    bench: Bench, calls: Mapping[str, Call], wall: bool = False, rounds: int = ROUNDS
) -> dict[str, list[float]]:
    """Seconds of one call for each contender, once in each round, each round beginning with another one.

    wall: from the call to the end of the work on the device, as a user waits; else the device's own time, with cold
    caches.  In the interpreter no time means anything: the lists are empty.
    """
    out: dict[str, list[float]] = {name: [] for name in calls}
    if bench.interpreted:
        return out
    turns = {name: _wall_turn(call) if wall else turn_of(bench, call) for name, call in calls.items()}
    for name in harness.in_turns(list(calls), rounds):
        out[name].append(turns[name]())
    return out


def _wall_turn(call: Call) -> Callable[[], float]:
    import torch

    def once() -> float:
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    once()
    repeats = min(MOST, max(1, round(4 * TURN / once())))
    return lambda: statistics.median(once() for _ in range(repeats))


def turn_of(bench: Bench, call: Call, most: int = MOST) -> Callable[[], float]:
    """A turn: the median time of up to `most` calls, between two events on the device.

    Before each call memory is written: that empties the caches, and keeps the device busy while Python puts the call
    into its queue, so that the time of a small kernel is not Python's.
    """
    import torch

    waste = torch.empty(FLUSHED, dtype=torch.int8, device=bench.device)
    call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    queued = time.perf_counter() - begin
    torch.cuda.synchronize()
    flushes = min(20, max(1, math.ceil(1.5 * queued / _between(waste.zero_, 3))))
    repeats = min(most, max(LEAST, round(TURN / _between(call, 3))))

    def turn() -> float:
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        for first, last in events:
            for _ in range(flushes):
                waste.zero_()
            first.record()
            call()
            last.record()
        torch.cuda.synchronize()
        return statistics.median(first.elapsed_time(last) for first, last in events) / 1e3

    return turn


def _between(call: Call, repeats: int) -> float:
    """Seconds of a call on the device, many in a row."""
    import torch

    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _ in range(repeats):
        call()
    last.record()
    torch.cuda.synchronize()
    return max(first.elapsed_time(last) / 1e3 / repeats, 1e-6)


# The file of a stage


class StageReport:
    """The JSON of one stage, written again whenever a row begins or ends, so that nothing is lost.

    resume: keep the rows that the file has; the row that was running when its process ended is recorded with `ended`
    as its error.
    """

    def __init__(self, path: Path, stage: str, facts: dict[str, Any], resume: bool = False, ended: str = ""):
        self.path = path
        self.found: dict[str, Any] = {"stage": stage, "environment": facts, "running": None, "rows": [], "not_run": []}
        if resume and path.is_file():
            self.found = json.loads(path.read_text(encoding="utf-8"))
            running = self.found["running"]
            if not ended:  # a new call: what failed is tried again
                self.found["rows"] = [row for row in self.found["rows"] if not failure(row)]
            elif running is not None:
                self.add(running, {"error": ended})
        self.write()

    def run(self, bench: Bench, rows: Iterable[BenchRow]) -> None:
        """Each row that there is time for; the others are listed.  A row that fails says why, and the next follows."""
        self.found["not_run"] = []
        done = {row["row"] for row in self.found["rows"]}
        for row in rows:
            if row.name in done or not re.search(bench.only, row.name):
                continue
            if bench.left() < 0:
                self.found["not_run"].append(row.name)
                continue
            self.found["running"], begin = row.name, time.monotonic()
            self.write()
            try:
                result = row.run()
            except Exception as e:
                result = {"error": reason(e), "traceback": "".join(traceback.format_exception(e))[-3000:]}
            self.add(row.name, {**result, "seconds": round(time.monotonic() - begin, 1)})
            try:
                bench.free()
                bench.synchronize()
            except RuntimeError:
                raise SystemExit(LOST) from None
        self.write()
        if self.found["not_run"]:
            print(f"{self.found['stage']}: out of time, not run: {', '.join(self.found['not_run'])}", flush=True)

    def add(self, row: str, result: Mapping[str, Any]) -> None:
        self.found["rows"].append({"row": row, **result})
        self.found["running"] = None
        self.write()
        print(f"{self.found['stage']}: {line(self.found['rows'][-1])}", flush=True)

    def write(self) -> None:
        part = self.path.with_suffix(".part")
        harness.write(part, self.found)
        part.replace(self.path)


def failure(row: Mapping[str, Any]) -> str:
    return row.get("error") or row.get("wrong") or ""


def line(row: Mapping[str, Any]) -> str:
    """A row in one line for the terminal."""
    if failure(row):
        return f"{row['row']}: FAILED: {failure(row)}"
    if "summary" in row:
        return f"{row['row']}: {row['summary']}"
    parts = []
    for name, found in (row.get("times") or {}).items():
        rate = next((f", {row[u][name]:.4g} {w}" for u, w in UNITS.items() if u in row), "")
        share = f" = {row['share'][name]:.0%}" if "share" in row else ""
        ratio = f" ({row['ratios'][name]['ratio']:.2f})" if name in row.get("ratios", {}) else ""
        parts.append(f"{name} {found['median_ms']:.4g} ms{ratio}{rate}{share}" if found else f"{name} not timed")
    return f"{row['row']}: {'; '.join(parts)}"


def environment(bench: Bench) -> dict[str, Any]:
    """The card, its driver, and all versions."""
    import torch

    import zoo

    found = harness.environment(harness.available_cores())
    found |= {"card": bench.card, "device": "interpreter" if bench.interpreted else "gpu", "driver": None}
    if not bench.interpreted:
        properties = torch.cuda.get_device_properties(0)
        found["memory_bytes"], found["runtime"] = properties.total_memory, torch.version.cuda or torch.version.hip
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
            found["driver"] = subprocess.check_output(command, text=True, timeout=20).split("\n")[0]
    found["versions"] |= {"torch": torch.__version__, "zoo": zoo.__version__}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found["versions"]["triton"] = importlib.metadata.version("triton")
    return found


def slug(card: str) -> str:
    """A card's name as a part of a file's: "NVIDIA H100 80GB HBM3" -> "h100-80gb-hbm3"."""
    return re.sub(r"[^a-z0-9]+", "-", card.lower().replace("nvidia", "")).strip("-")
