"""`zoo families`: the families that zoo has, from the registry, with what the parity report has proven of each."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import zoo

from ...checkpoint.task import INPUTS
from ...registry import FAMILIES
from ...weights.gguf.config import MODEL_TYPES
from ...weights.gguf.names import NAMES
from .terminal import json_text, terminal_of

# In a wheel, and in a checkout.
EVIDENCE = [Path(zoo.__file__).parent / "data" / "evidence.json", Path(zoo.__file__).parents[1] / "docs/evidence.json"]
ENGINES = ("numpy", "torch", "onnx")


def families(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    found, terminal = describe(), terminal_of(args)
    if terminal.json:
        terminal.line(json_text(found, indent=2))
        return
    rows = [("family", "reads", "tasks", "proven", "heads")]
    for name, of in found.items():
        proof = of["proven"].get("numpy")
        shown = "" if proof is None else f"{proof['hold']} of {proof['checkpoints']}, worst {proof['worst']:.0e}"
        rows.append((name, of["reads"], ", ".join(of["tasks"]) or "none", shown, ", ".join(of["heads"])))
    terminal.table(rows)
    terminal.paragraph(f"\n{len(found)} families, each with {', '.join(ENGINES)}; --json says more")


def describe() -> dict[str, dict[str, Any]]:
    """The families as the command writes them in JSON: model_type -> what it has.

    proven: device -> the checkpoints that were compared with transformers, those that hold, and the worst difference.
    """
    path = next((path for path in EVIDENCE if path.is_file()), None)
    in_gguf = {MODEL_TYPES.get(architecture, architecture) for architecture in NAMES}
    evidence = {} if path is None else json.loads(path.read_text(encoding="utf-8"))
    return {
        name: {
            "heads": list(family.architectures),
            "tasks": list(dict.fromkeys(task for head in family.heads if (task := family.task_of(head)))),
            "reads": " and ".join(INPUTS[kind] for kind in family.reads),
            "engines": list(ENGINES),
            "gguf": name in in_gguf,
            "proven": {
                device: {"date": of["date"], **of["families"][name]}
                for device, of in evidence.items()
                if name in of["families"]
            },
        }
        for name, family in FAMILIES.items()
    }
