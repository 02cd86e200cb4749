"""Both sides on one checkpoint: reading, calling, and the verdict on their numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parity.compare import BY_FLOAT64, FLOAT32, Pair, compare
from parity.specs import spec_class
from parity.taps import outputs
from zoo.errors import CheckpointError, ZooError
from zoo.loading import load_model

from .folder import NoPairError, Theirs
from .inputs import Arguments, arguments
from .plan import Plan

EQUAL, REFUSED, DIFFERS, RAISES, NO_PAIR = "equal", "refused", "differs", "raises", "no pair"
FAILURES = (DIFFERS, RAISES)
FEW_LOGITS = 4  # logits that may all be near 0


class Verdict(NamedTuple):
    """What came of a pair: one of the words above, and what was found."""

    kind: str
    said: str = ""


class RefusedError(Exception):
    """zoo does not take it, and says what."""


def call_zoo(plan: Plan, do: Callable[[], Any]) -> Any:
    """What zoo returns; RefusedError, with its words, where it names what it does not take."""
    try:
        return do()
    except ZooError as e:
        # Of a file that transformers wrote for a class that it has, or of an engine: that names nothing.
        if isinstance(e, CheckpointError) or str(e).startswith("ONNX Runtime"):
            raise
        raise RefusedError(f"{type(e).__name__}: {e}") from e


def compare_outputs(plan: Plan, folder: Path) -> Verdict:
    """Call both with the same arguments."""
    theirs = Theirs(folder, plan.read_as)
    model = call_zoo(plan, lambda: read(plan, folder))
    given = arguments(model, plan.rng(1))
    wanted = finite(theirs.outputs(given.arrays, given.switches))
    found = call_zoo(plan, lambda: call(model, given))
    said = difference(found, wanted, given, lambda: Theirs(folder, plan.read_as, "float64"))
    if said:
        return Verdict(DIFFERS, f"{said}; {describe(given)}")
    return Verdict(EQUAL)


def read(plan: Plan, folder: Path, **options: Any) -> Any:
    """zoo's model of the folder."""
    more = {} if plan.device == "numpy" else {"device": plan.device}
    if plan.device.startswith("torch"):
        more["dtype"] = "float32"
    return load_model(folder, head=plan.row.head(plan.read_as), **more, **options)


def call(model: Any, given: Arguments) -> dict[str, np.ndarray]:
    fields = outputs(model, model(**given.arrays, **dict.fromkeys(given.switches, True)))
    return {name: x for name, x in fields.items() if name not in spec_class(model.config.model_type).not_compared}


def describe(given: Arguments) -> str:
    """The names and shapes of arguments."""
    shapes = ", ".join(f"{name} {array.shape}" for name, array in given.arrays.items())
    return f"{shapes} {' '.join(given.switches)}".strip()


def finite(fields: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    for name, array in fields.items():
        hidden = np.isneginf(array) if "logits" in name else False  # such as the logits of padding
        if not (np.isfinite(array) | hidden).all():
            raise NoPairError(f"transformers computes NaN or infinity in {name}")
    return dict(fields)


def difference(
    found: Mapping[str, np.ndarray],
    wanted: Mapping[str, np.ndarray],
    given: Arguments,
    in_float64: Callable[[], Theirs],
) -> str:
    """The first output that is beyond the limits, and by how much; "" if none is."""
    precise: dict[str, np.ndarray] | None = None
    for name, ours in found.items():
        theirs = wanted.get(name)
        if theirs is None and name == "pooler_output":  # of a file's pooler, which a class of transformers may ignore
            continue
        if theirs is None:
            return f"only zoo has {name}"
        if not theirs.size and ours.shape == theirs.shape:
            continue
        if not given.pooled and not (theirs.ndim > 2 or name.endswith("_logits")):
            continue
        if not ours.any() and not theirs.any():
            raise NoPairError(f"both compute 0 everywhere in {name}")  # as behind a ReLU that lets nothing pass
        beside = _pairs_for_scale(name, theirs, wanted)
        stage = compare(name, [Pair("", ours, theirs, given.mask), *beside], FLOAT32)
        if stage.holds:
            continue
        if stage.note:
            return f"{name}: {stage.note}"
        if precise is None:
            precise = in_float64().outputs(given.arrays, given.switches)
        exact = Pair("", ours, precise[name], given.mask)
        judged = compare(name, [exact, *beside], BY_FLOAT64, [exact._replace(ours=theirs), *beside])
        if judged.note:
            return f"{name}: {judged.note}"
        if not judged.holds and not compare(name, [exact, *beside], FLOAT32).holds:
            return (
                f"{name} is off by a relative L2 of {stage.relative_l2:.2g}, {stage.max_abs:.2g} at most (to float64: "
                f"zoo {judged.relative_l2:.2g} and {judged.max_abs:.2g}, transformers {judged.reference_error:.2g} "
                f"and {judged.reference_largest:.2g})"
            )
    return ""


def _pairs_for_scale(name: str, logits: np.ndarray, fields: Mapping[str, np.ndarray]) -> list[Pair]:
    """Beside the logits of few vectors of unit length, as large ones as those of unrelated vectors are: the product of
    a single pair may be near 0, its rounding is not.
    """
    embeds = [array for field, array in fields.items() if field.endswith("_embeds") and array.ndim == 2]
    if not name.startswith("logits_per_") or len(embeds) != 2 or logits.size >= FEW_LOGITS:
        return []
    cosines = np.float64(embeds[0]) @ np.float64(embeds[1]).T
    scale = np.linalg.norm(logits) / np.linalg.norm(cosines)
    same = np.full(logits.shape, scale / math.sqrt(embeds[0].shape[1]))
    return [Pair("unrelated", same, same)]
