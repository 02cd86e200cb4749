"""`zoo bench`: how fast a checkpoint runs here, beside other libraries."""

from __future__ import annotations

import argparse

from ...tasks.progress import Progress
from ...weights.memory import size_text
from ..bench import bench as measure
from .terminal import json_text, terminal_of


def bench(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    names = ("task", "seconds", "count", "device", "weights", "threads", "revision", "local_files_only")
    options = {name: getattr(args, name) for name in names}
    with Progress(None, unit="", what=f"measuring {args.name}"):
        found = measure(args.name, against=tuple(args.against.split(",")) if args.against else None, **options)
    terminal = terminal_of(args)
    if terminal.json:
        terminal.line(json_text(found, indent=2))
        return
    terminal.title(f"{found['name']}: {found['task']}")
    rows = [("", "load", "first", found["unit"], "memory", "")]
    for name, of in found["results"].items():
        if "error" in of:
            rows.append((name, "", "", "", "", of["error"]))
            continue
        memory = "" if of["memory"] is None else size_text(of["memory"])
        rows.append((name, f"{of['load']:.2f} s", f"{of['first'] * 1000:.0f} ms", f"{of['rate']:.1f}", memory, ""))
    terminal.table(rows, right=(1, 2, 3, 4))
