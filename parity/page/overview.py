"""What the head and the foot of the page say of all results together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..cases import kind_of, short_name
from ..choices import OVERLAP, SAME_BOX, SAME_PIXELS
from ..compare import FEW_CHOICES, Multiple, Tolerance
from ..report import share, small, verdict, worst
from ..run import Result
from .sections import BACKENDS, Section, is_low, unbroken
from .texts import visible

WRITTEN = ("written, ", "text, ")  # how the names of the stages begin that a model writes by itself


def overview(results: Sequence[Result], sections: Sequence[Section], facts: dict[str, Any]) -> dict[str, Any]:
    """The names that the template has for this.  facts: of parity.report.document."""
    versions = {name: version for name, version in facts["versions"].items() if version}
    software = [f"{name} {versions[name]}" for name in ("zoo", "transformers", "torch", "numpy") if name in versions]
    return {
        "verdict": verdict(results),
        "headline": verdict(results).partition(", "),
        "kind": "holds" if facts["holds"] else "diverges" if any(r.diverged for r in results) else "failed",
        "compared": _compared(results, versions),
        "rules": rules_of(results),
        "checkpoints": _checkpoints(results),
        "tiles": _tiles(results, sections),
        "software": ", ".join(software),
        "machine": _machine(**facts["machine"]),
        "facts": [*versions.items(), *facts["machine"].items()],
        "command": facts["command"],
    }


def _compared(results: Sequence[Result], versions: dict[str, str]) -> str:
    ran = dict.fromkeys((r.backend, r.device, r.dtype) for r in results if r.backend)
    ours = "; ".join(f"{BACKENDS[backend]} on {device}, in {dtype}" for backend, device, dtype in ran)
    torch, transformers = (versions.get(name, "(not installed)") for name in ("torch", "transformers"))
    theirs = "in the same precision and in float32" if any(map(is_low, results)) else "in float32"
    count = sum(bool(result.stages) for result in results)
    if not count:
        return "Nothing was compared, as no model could be run: the reasons are below."
    models = "every model" if count == len(results) else f"{count} of {_count(len(results), 'model')}"
    return (
        f"zoo {versions['zoo']}{f' ({ours})' * bool(ours)} was given the same checkpoints and the same inputs as "
        f"transformers {transformers} (torch {torch}, eager attention, {theirs}), and every stage of {models} was "
        "compared: tokens or pixels, embeddings, each layer, each output."
    )


def _machine(processor: str, cores: int, system: str, blas: str, gpu: str = "") -> str:
    return ", ".join(filter(None, [processor, f"{cores} cores", gpu, system, f"BLAS {blas}"]))


def rules_of(results: Sequence[Result]) -> list[str]:
    """What it takes to hold, for each rule that was applied."""
    rules = dict.fromkeys((r.dtype, r.tolerance) for r in results if r.tolerance)
    return [_in_low(dtype, rule) if isinstance(rule, Multiple) else _in_full(dtype, rule) for dtype, rule in rules]


def _in_full(dtype: str, rule: Tolerance) -> str:
    return (
        f"In {dtype} a model holds if every stage does: the difference between zoo and transformers may be at most "
        f"{_power(rule.relative_l2)} of the stage’s own size (relative L2, of root mean squares), and nowhere more "
        f"than {_power(rule.max_abs)} of it. Token ids, prepared pixels, written texts and labels of objects must be "
        f"the same; so must {100 * SAME_PIXELS:g} % of a segmentation’s pixels, and boxes to {_power(SAME_BOX)} of "
        "the image."
    )


def _in_low(dtype: str, rule: Multiple) -> str:
    return (
        f"In {dtype} no two programs agree to the last bit, so both are compared with transformers in float32: a model "
        f"holds if at every stage zoo’s error is at most {rule.times:g} times the error that transformers itself makes "
        f"in {dtype} (which counts as {_power(rule.least)} where it is less). Choices, such as the largest logit or a "
        f"pixel’s label, may differ from float32’s {rule.times:g} times as often as transformers’ own, and "
        f"{100 * rule.spare:g} % of all besides; of the rows that are written token after token, {rule.times:g} times "
        f"as many and {100 * rule.spare_texts:g} % of all besides, since after one other token all that follows is "
        f"another text. These shares are rounded up to whole ones, of {FEW_CHOICES.start} to "
        f"{FEW_CHOICES.stop - 1} choices to two. An object is the same with the same label and a box "
        f"that shares more than {100 * OVERLAP:g} % of what both cover. Token ids and prepared pixels must be the same."
    )


def _power(value: float) -> str:
    return unbroken(small(value).replace(".0e", "e"))


def _checkpoints(results: Sequence[Result]) -> str:
    """Whose weights these are: a random checkpoint proves the arithmetic, not what a model is good for."""
    counts = Counter(kind_of(result.case) for result in results if not result.error)
    kinds = {
        "hub": "{is} from the hub",
        "folder": "{is} from a folder, with the weights that lie there, trained or random",
        "full": "{has} random weights at full size, in the layout of the checkpoint that {it} named after",
        "tiny": "{has} random weights at a tiny size, in the layout of the checkpoint that {it} named after",
    }
    one, more = {"is": "is", "has": "has", "it": "it is"}, {"is": "are", "has": "have", "it": "they are"}
    found = [(counts[size], text) for size, text in kinds.items() if counts[size]]
    parts = [f"{count} {text.format(**(one if count == 1 else more))}" for count, text in found]
    return f"Of {_count(counts.total(), 'checkpoint')}, {'; '.join(parts)}." if parts else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _tiles(results: Sequence[Result], sections: Sequence[Section]) -> list[tuple[str, str, str]]:
    """Key figures: what, how much, and a remark."""
    stages = [stage for result in results for stage in result.stages]
    if not stages:
        return []
    held, values = sum(stage.holds for stage in stages), sum(stage.values for stage in stages)
    found = [("stages hold", f"{held} of {len(stages)}", f"{values:,} values compared")]
    used = [(s.used, s) for s in sections if s.used is not None]
    if used:
        most, at = max(used, key=lambda pair: pair[0])
        found.append(("farthest beyond the limit" if most > 1 else "nearest to the limit", at.used_text, at.name))
    tops = [top for result in results if (top := worst(result).top1) is not None]
    if tops:
        found.append(("lowest top-1 of logits", share(min(tops)), f"of {_count(len(tops), 'model')} with logits"))
    rows = [(s.top1, s.name, r) for r in results for s in r.stages if s.name.startswith(WRITTEN) and s.top1 is not None]
    if rows:
        same, name, result = min(rows, key=lambda row: row[0])
        note = f"“{name}” of {visible(short_name(result.case))}"
        found.append(("fewest written rows alike", share(same), note))
    return found
