"""The model card of a trained checkpoint: README.md beside its weights, in the form of the Hub."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from ...optional import DISTRIBUTION
from ...task_kinds import TaskKind
from .data import HUB
from .loop import Settings
from .state import write_errors

CARD_MARK = "<!-- written by zoo finetune -->"  # a card without it is someone's own, and stays


def write_card(
    folder: Path,
    *,
    base: str,
    kind: TaskKind,
    data: str,
    counts: tuple[int, int],
    best: Mapping[str, Any] | None,
    settings: Settings,
    lora: int | None,
) -> None:
    """Write the card, unless there is one of another hand.

    base: the checkpoint that was trained.  data: its examples' file.  counts: rows trained on, and held out.
    best: the scores of the state that was kept, with its step.
    """
    path = folder / "README.md"
    if path.exists() and CARD_MARK not in path.read_text(encoding="utf-8", errors="replace"):
        return
    source = data if data.startswith(HUB) else os.path.basename(os.path.normpath(data))
    base = os.path.basename(os.path.normpath(base)) if os.path.exists(base) else base
    meta = {
        "base_model": base,
        "library_name": "peft" if lora else "transformers",
        "tags": [DISTRIBUTION, kind.name],
    }
    if data.startswith(HUB):
        meta["datasets"] = [data.removeprefix(HUB).partition(":")[0]]
    head = "\n".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in meta.items())
    load = f'zoo.load("{base}", adapter="{folder.name}")' if lora else f'zoo.load("{folder.name}")'
    chosen = {
        "steps": settings.steps,
        "batch size": settings.batch_size,
        "learning rate": f"{settings.learning_rate:g}, {settings.schedule}, after {settings.warm_up:.0%} of the steps",
        "weight decay": settings.weight_decay,
        "precision": settings.precision,
        "seed": settings.seed,
        **({"rank of the adapter": lora} if lora else {}),
    }
    lines = ["---", head, "---", CARD_MARK, "", f"# {folder.resolve().name}", ""]
    what = f"a LoRA adapter of rank {lora} for {base}" if lora else f"{base}, trained further"
    lines += [f"This is {what}, for the task {kind.name}, with {counts[0]:,} rows of {source}.", ""]
    if best is not None:
        lines += [
            "## Scores",
            "",
            f"On {counts[1]:,} rows that were held out, after step {best['step']:,}, the best of the run:",
            "",
        ]
        lines += _table({name: f"{value:.4g}" for name, value in best.items() if name != "step"})
    else:
        lines += ["No rows were held out, so that nothing is known of how well it does on others.", ""]
    lines += ["## Training", "", *_table(chosen), "![Loss by step](run/loss.svg)", ""]
    lines += [
        "## Use",
        "",
        "```python",
        "import zoo",
        "",
        f"task = {load}",
        "```",
        "",
        f"Written by zoo {__version__}.",
        "",
    ]
    with write_errors(folder):
        path.write_text("\n".join(lines), encoding="utf-8")


def _table(rows: Mapping[str, Any]) -> list[str]:
    return ["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows.items()), ""]
