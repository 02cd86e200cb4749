"""The head and the foot of the page: all results together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..cases import kind_of, short_name
from ..report import rules_of, share, verdict, worst
from ..run import Result
from .sections import BACKENDS, Section, is_low
from .texts import visible

WRITTEN = ("written, ", "text, ")  # beginnings of the names of stages with generated text


def overview(results: Sequence[Result], sections: Sequence[Section], facts: dict[str, Any]) -> dict[str, Any]:
    """The template's variables.  facts: of parity.report.document."""
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
        "machine": ", ".join(f"{name} {value}" for name, value in facts["machine"].items()),
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


def _checkpoints(results: Sequence[Result]) -> str:
    """The sources of the weights: a random checkpoint proves the arithmetic, not the quality of a model."""
    counts = Counter(kind_of(result.case) for result in results if not result.error)
    kinds = {
        "hub": "from the hub",
        "folder": "from a folder, with trained or random weights",
        "full": "with random weights at full size, in the layout of the checkpoint of that name",
        "tiny": "with random weights at a tiny size, in the layout of the checkpoint of that name",
    }
    parts = [f"{counts[size]} {text}" for size, text in kinds.items() if counts[size]]
    return f"{_count(counts.total(), 'checkpoint')}: {'; '.join(parts)}." if parts else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _tiles(results: Sequence[Result], sections: Sequence[Section]) -> list[tuple[str, str, str]]:
    """Key figures: a label, a value, and a remark."""
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
