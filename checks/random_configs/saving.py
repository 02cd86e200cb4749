"""What zoo saves, read by transformers: every tensor is there, and the numbers are the same."""

from __future__ import annotations

from pathlib import Path

from zoo.saving import save_model

from .comparing import DIFFERS, EQUAL, Verdict, call_zoo, describe, difference, finite, read
from .folder import NoPairError, Theirs
from .inputs import arguments
from .plan import Plan


def compare_saved(plan: Plan, folder: Path) -> Verdict:
    """Save what zoo has read, and let transformers compute with it what it computes with the file of its own."""
    theirs = Theirs(folder, plan.read_as)
    model = call_zoo(plan, lambda: read(plan, folder))
    given = arguments(model, plan.rng(1))
    wanted = finite(theirs.outputs(given.arrays, given.switches))
    saved = folder / "saved"
    call_zoo(plan, lambda: save_model(model, saved))
    try:
        again = Theirs(saved, plan.read_as)
    except NoPairError as e:
        return Verdict(DIFFERS, f"transformers cannot read what zoo saved: {e}")
    if missing := sorted(again.missing - theirs.missing):
        return Verdict(DIFFERS, f"zoo.save leaves out {', '.join(missing[:8])}")
    if more := sorted(again.strays - theirs.strays):
        return Verdict(DIFFERS, f"zoo.save writes what transformers does not know: {', '.join(more[:8])}")
    try:
        found = finite(again.outputs(given.arrays, given.switches))
    except NoPairError as e:
        return Verdict(DIFFERS, f"transformers cannot run what zoo saved: {e}")
    said = difference(found, wanted, given, lambda: Theirs(folder, plan.read_as, "float64"))
    return Verdict(DIFFERS, f"saved by zoo, {said}; {describe(given)}") if said else Verdict(EQUAL)
