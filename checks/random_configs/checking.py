"""One pair from its plan to its verdict, and the least change that has the same one."""

from __future__ import annotations

import signal
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from .comparing import FAILURES, NO_PAIR, RAISES, REFUSED, RefusedError, Verdict, compare_outputs
from .folder import NoPairError, write_checkpoint
from .generation import compare_generated
from .pictures import compare_pictures
from .plan import Plan, draw
from .saving import compare_saved

SECONDS = 60  # a pair takes a fifth of one
WAIT = 900  # seconds that it may take with all waiting, on a busy machine
CHECKS: dict[str, Callable[[Plan, Path], Verdict]] = {
    "forward": compare_outputs,
    "generate": compare_generated,
    "save": compare_saved,
    "pictures": compare_pictures,
}


class Found(NamedTuple):
    """What came of a pair, for the log and the report."""

    family: str
    number: int
    kind: str
    plan: str
    said: str
    job: str
    device: str


class TooLongError(Exception):
    """A pair takes too long."""


def check(plan: Plan) -> Verdict:
    """The verdict on a pair."""
    timers = ((signal.SIGPROF, signal.ITIMER_PROF, SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, WAIT))
    for number, timer, seconds in timers:
        signal.signal(number, _stop)
        signal.setitimer(timer, seconds)
    try:
        with tempfile.TemporaryDirectory(prefix="zoo-pair-") as name:
            folder = Path(name).resolve()
            if plan.job != "pictures":
                write_checkpoint(plan, folder)
            return CHECKS[plan.job](plan, folder)
    except NoPairError as e:
        return Verdict(NO_PAIR, str(e))
    except RefusedError as e:
        return Verdict(REFUSED, str(e))
    except Exception as e:
        place = traceback.extract_tb(e.__traceback__)[-1]
        return Verdict(RAISES, f"{type(e).__name__}: {e} ({Path(place.filename).name}:{place.lineno})")
    finally:
        for _, timer, _ in timers:
            signal.setitimer(timer, 0)


def _stop(_: int, frame: FrameType | None) -> None:
    raise TooLongError(f"after {SECONDS} seconds of computing, or {WAIT} of waiting")


def minimize(plan: Plan, verdict: Verdict) -> tuple[Plan, Verdict]:
    """The failing pair with no change more than it takes, and its verdict."""
    at = 0
    while at < len(plan.changes):
        smaller = plan.drop_change(at)
        again = check(smaller)
        if again.kind == verdict.kind and again.kind in FAILURES:
            plan, verdict = smaller, again
        else:
            at += 1
    return plan, verdict


def run(family: str, seed: int, numbers: list[int]) -> list[Found]:
    """Some pairs of a family; of a failure the least that fails."""
    found = []
    for number in numbers:
        plan = draw(family, seed, number)
        verdict = check(plan)
        if verdict.kind in FAILURES:
            plan, verdict = minimize(plan, verdict)
        found.append(Found(family, number, verdict.kind, str(plan), verdict.said, plan.job, plan.device))
    return found
