"""Two recordings of a job beside each other, and zoo's beside both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..choices import compare_ids, compare_pixels
from ..compare import FLOAT32, Pair, Stage
from ..stages import Stages, compare_stages
from ..texts import Batch
from ..writing import compare_written
from .recording import PARTS, Job, Recording

NEARER_TIMES = 10  # zoo is on the side of a version that is this many times nearer to it than the other
Judge = Callable[[Job, Recording, Recording], Iterable[Stage]]


@dataclass(frozen=True)
class Change:
    """What a version of transformers makes otherwise than the installed one.

    part: one of PARTS.  stage: the output, or the way of searching.  error: relative L2, or the share of rows that
    differ; None where the version fails.  about: what differs, or how it fails.  zoo: whose side zoo is on, a version
    or "neither".
    """

    checkpoint: str
    version: str
    part: str
    stage: str
    error: float | None
    about: str
    zoo: str


def changes_of(job: Job, zoo: Recording, pinned: Recording, other: Recording, names: tuple[str, str]) -> list[Change]:
    """What `other` makes otherwise than `pinned`.  names: the versions of both."""
    found: list[Change] = []
    for part in PARTS:
        if part in other.failed and part not in pinned.failed:
            found.append(Change(job.name, names[1], part, part, None, other.failed[part], names[0]))
        elif (
            part in JUDGES and "load" not in other.failed and not {part} & (pinned.failed.keys() | other.failed.keys())
        ):
            judge = JUDGES[part]
            stages = [stage for stage in judge(job, other, pinned) if not stage.holds]
            to_pinned, to_other = ({s.name: _distance(s) for s in judge(job, zoo, side)} for side in (pinned, other))
            for stage in stages:
                side = _side_of(*(near.get(stage.name, math.inf) for near in (to_pinned, to_other)), names=names)
                found.append(Change(job.name, names[1], part, stage.name, _distance(stage), _about(stage), side))
    return found


def _tokens(_job: Job, ours: Recording, wanted: Recording) -> Iterable[Stage]:
    rows = [(batch, ours.tokens[batch], ids) for batch, ids in wanted.tokens.items()]
    return [compare_ids(rows, "tokens")] if rows else []


def _pixels(_job: Job, ours: Recording, wanted: Recording) -> Iterable[Stage]:
    pairs = [
        Pair(batch, ours.pixels[batch].get(name), array)
        for batch, arrays in wanted.pixels.items()
        for name, array in arrays.items()
        if name in ("pixel_values", "pixel_mask")
    ]
    return [compare_pixels(pairs)] if pairs else []


def _outputs(job: Job, ours: Recording, wanted: Recording) -> Iterable[Stage]:
    return _compare_outputs(job.batches, ours.outputs, wanted.outputs)


def _compare_outputs(batches: Sequence[Batch], ours: Sequence[Stages], wanted: Sequence[Stages]) -> list[Stage]:
    """The outputs that the installed version has; NaN in both is no difference, but nothing is known of it either."""
    mine = [{name: a[name] for name in b if name in a} for a, b in zip(ours, wanted, strict=True)]
    stages = compare_stages(batches, mine, wanted, FLOAT32)
    return [stage for stage in stages if "0 everywhere" not in stage.note and "in the reference" not in stage.note]


def _texts(_job: Job, ours: Recording, wanted: Recording) -> Iterable[Stage]:
    return compare_written(ours.written, wanted.written, FLOAT32)


JUDGES: dict[str, Judge] = {"tokens": _tokens, "pixels": _pixels, "outputs": _outputs, "texts": _texts}


def _distance(stage: Stage) -> float:
    """The relative error of numbers, the share of rows of choices that differ, infinity for what has no figure."""
    if not math.isnan(stage.relative_l2):
        return stage.relative_l2
    return math.inf if stage.top1 is None else 1 - stage.top1


def _side_of(to_pinned: float, to_other: float, names: tuple[str, str]) -> str:
    if to_pinned * NEARER_TIMES <= to_other and to_pinned < to_other:
        return names[0]
    if to_other * NEARER_TIMES <= to_pinned and to_other < to_pinned:
        return names[1]
    return "neither"


def _about(stage: Stage) -> str:
    if stage.note:
        return stage.note
    return f"relative {stage.relative_l2:.1e}, largest {stage.max_abs / stage.scale:.1e} of scale, in {stage.batch}"
