"""What the stages of the GPU script share: the device and its clock, comparisons, and times."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import harness

TURN = 0.05  # seconds on the device that one turn of a contender lasts about
MOST, MIN_TOKENS = 200, 5  # calls in a turn
ROUNDS = 5
FLUSHED = 256 << 20  # bytes that are written before each call of a kernel, so that its inputs are in no cache
TIMES = 3  # our error to the reference may be so many times the peers' own
UNFIT = 3  # exit status where there is no GPU
LOST = 75  # exit status of a stage whose CUDA context a row broke: the next rows need another process
UNIT = {"float32": 2.0**-26, "float16": 2.0**-13, "bfloat16": 2.0**-10}  # relative error of one rounding, about

Output = Any  # a tensor, or a tuple of some
Call = Callable[[], Output]


@dataclass
class Case:
    """What a row compares: contenders, "zoo" among them, and what they should give.

    reference: in float64, or the float32 that all have the same; None where the row's own code has compared.
    pick: what of an output the reference has.  timed: calls that are timed in place of those that are checked.
    flops, bytes: what one call cannot do without, bytes both read and written.  unit: of the outputs' dtype.
    wall: time as a user's clock shows it.  Contenders whose names begin with "zoo" are ours.
    """

    contenders: dict[str, Call]
    reference: Call | None
    unit: float
    pick: Callable[[Output], Output] = lambda output: output
    timed: dict[str, Call] = field(default_factory=dict)
    flops: float = 0
    bytes: float = 0
    wall: bool = False


class Clock:
    """The time that a stage has."""

    def __init__(self, minutes: float):
        self.end = time.monotonic() + 60 * minutes

    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()


@dataclass
class Bench:
    """Where a stage runs.  tiny: sizes for a look at whether all runs.

    interpreted: there is no GPU; kernels go through Triton's interpreter, and nothing is timed.
    """

    device: str
    card: str
    tiny: bool
    interpreted: bool
    clock: Clock
    folder: Path
    only: re.Pattern[str] = re.compile("")  # rows whose names it is found in
    ceilings: dict[str, float] = field(default_factory=dict)  # of stage `bandwidth`

    def normal(self, *shape: int, dtype: str = "bfloat16", seed: int = 0, scale: float = 1.0) -> Any:
        """Random numbers on the device, the same for the same seed and shape."""
        import torch

        generator = torch.Generator(self.device).manual_seed(seed)
        x = torch.randn(shape, device=self.device, generator=generator, dtype=torch.float32)
        return (x * scale).to(getattr(torch, dtype))

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """By torch.compile, for these shapes alone; in the interpreter as far as there is nothing to build."""
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
        self.free_memory()

    def free_memory(self) -> None:
        """Give back what nobody holds any more."""
        import torch

        gc.collect()
        if not self.interpreted:
            torch.cuda.empty_cache()


@contextlib.contextmanager
def opened(tiny: bool, minutes: float, folder: Path) -> Iterator[Bench]:
    """The device, a GPU where there is one; without it kernels on CPU tensors, in Triton's interpreter."""
    harness.calm()
    import torch

    if torch.cuda.is_available():
        torch.cuda.init()
        with torch.no_grad():
            yield Bench("cuda", torch.cuda.get_device_name(), tiny, False, Clock(minutes), folder)
        return
    if not tiny:
        print(f"torch {torch.__version__} finds no GPU: --tiny runs every stage in Triton's interpreter", flush=True)
        raise SystemExit(UNFIT)
    os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which torch does not do by itself
    from checks import interpreter
    from zoo.engines import triton as kernels

    interpreter.install()
    with kernels.interpreted(), torch.no_grad():
        yield Bench("cpu", "interpreter", tiny, True, Clock(minutes), folder)


def reason(error: BaseException) -> str:
    """One line of what went wrong."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


# Comparing


def compare(bench: Bench, case: Case) -> dict[str, Any]:
    """A row's result: errors to the reference, then times, ratios and shares.

    Every contender is called once and compared before anything is timed; a peer that does not take these arguments is
    left out with its reason, and where our error is too large nothing is timed.
    """
    refused, outputs, calls = {}, {}, dict(case.contenders)
    for name, call in case.contenders.items():
        try:
            outputs[name] = case.pick(call())
            bench.synchronize()
        except Exception as e:
            if is_ours(name) or "CUDA error" in str(e):
                raise
            refused[name] = reason(e)
            del calls[name]
    result: dict[str, Any] = {"refused": refused} if refused else {}
    if case.reference is not None:
        result |= judged(outputs, case.reference(), case.unit)
    outputs.clear()
    if "wrong" in result:
        return {**result, "times": dict.fromkeys(calls), "ratios": {}}
    calls = {name: case.timed.get(name, call) for name, call in calls.items()}
    return {**result, **timed(bench, take_turns(bench, calls, wall=case.wall), case.flops, case.bytes)}


def judged(outputs: Mapping[str, Output], wanted: Output, unit: float) -> dict[str, Any]:
    """errors to what is wanted, the largest that is allowed to ours (three times the peers'), and what is wrong."""
    errors = {name: relative_l2(output, wanted) for name, output in outputs.items()}
    allowed = TIMES * max([unit, *(error for name, error in errors.items() if not is_ours(name))])
    found: dict[str, Any] = {"errors": errors, "allowed": allowed}
    worst = max(error for name, error in errors.items() if is_ours(name))
    if not worst <= allowed:
        found["wrong"] = f"the error is {worst:.1e}, at most {allowed:.1e} was expected"
    return found


def is_ours(name: str) -> bool:
    return name.startswith("zoo")


def timed(bench: Bench, times: dict[str, list[float]], flops: float = 0, bytes: float = 0) -> dict[str, Any]:
    """What times (seconds, of each round) mean; all null where nothing was timed.  Ratios are of zoo to each peer."""
    ours = "zoo" if "zoo" in times else next(iter(times))
    names = list(times)
    if not all(times.values()):
        return {"times": dict.fromkeys(names), "ratios": dict.fromkeys(name for name in names if name != ours)}
    found = harness.compare(times, {}, ours)
    rates: dict[str, Any] = {}
    for unit, done, ceiling in (("tflops", flops / 1e12, "bf16_tflops"), ("gb_per_second", bytes / 1e9, "copy")):
        if done:
            rates[unit] = {name: done / (ms["median_ms"] / 1e3) for name, ms in found["times"].items()}
            if bench.ceilings.get(ceiling):
                rates["share"] = {name: rate / bench.ceilings[ceiling] for name, rate in rates[unit].items()}
                rates["share_of"] = ceiling
    return {**found, **rates}


def relative_l2(output: Output, wanted: Output) -> float:
    """The largest over a tuple's tensors; infinite where a number is none."""
    if isinstance(output, tuple | list):
        return max(relative_l2(a, b) for a, b in zip(output, wanted, strict=True))
    difference = (output.double() - wanted.double()).norm() / wanted.double().norm().clamp_min(1e-30)
    found = float(difference)
    return found if math.isfinite(found) else math.inf


# Times


def take_turns(
    bench: Bench, contenders: Mapping[str, Call], rounds: int = ROUNDS, wall: bool = False
) -> dict[str, list[float]]:
    """Seconds of one call for each contender, once in each round, each round beginning with another one.

    wall: from the call to the end of the work on the device, as a user waits; else the device's own time, from caches
    that hold nothing.  In the interpreter no time means anything: the lists are empty.
    """
    if bench.interpreted:
        return {name: [] for name in contenders}
    turn = {name: _wall_turn(call) if wall else turn_of(bench, call) for name, call in contenders.items()}
    names = list(contenders)
    out: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            out[name].append(turn[name]())
    return out


def _wall_turn(call: Call) -> Callable[[], float]:
    import torch

    def once() -> float:
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    once()
    repeats = min(MOST, max(3, round(4 * TURN / once())))
    return lambda: statistics.median(once() for _ in range(repeats))


def turn_of(bench: Bench, call: Call, most: int = MOST) -> Callable[[], float]:
    """A turn: the median time of up to `most` calls, between two events on the device.

    What is written before them empties the caches and keeps the device busy while the call is put into its queue, so
    that the time of a small kernel is not that of Python.
    """
    import torch

    waste = torch.empty(FLUSHED, dtype=torch.int8, device=bench.device)
    call()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    queued = time.perf_counter() - begin
    torch.cuda.synchronize()
    flush = _between(waste.zero_, 3)
    flushes = min(20, max(1, math.ceil(1.5 * queued / flush)))
    repeats = min(most, max(MIN_TOKENS, round(TURN / _between(call, 3))))

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
