"""This script copies losses and scores by step from the logs of runs into a small file, beside those of other models.

`python -m training.typeset.curves RUNS --json FILE`
"""

import argparse
import json
from pathlib import Path
from typing import Any

POINTS = 60
LEFT_OUT = {
    "cpu",
    "stage",
    "seconds_a_step",
    "pages",
    "typeset_pages",
    "tables",
    "typeset_tables",
    "lines",
    "typeset_lines",
}


def curves(log: Path) -> dict[str, list[Any]]:
    """Return the losses of a log, averaged to at most `POINTS` entries, and its scores."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    losses = [line for line in lines if "loss" in line]
    scores = [line for line in lines if "evaluated" in line]
    size = -(-len(losses) // POINTS) or 1
    means = [_mean(losses[i : i + size]) for i in range(0, len(losses), size)]
    return {"losses": means, "scores": [{k: v for k, v in s.items() if k not in LEFT_OUT} for s in scores]}


def _mean(lines: list[dict[str, Any]]) -> dict[str, Any]:
    names = [k for k in lines[-1] if k not in LEFT_OUT and k != "step"]
    means = {k: round(sum(line[k] for line in lines) / len(lines), 4) for k in names}
    return {"step": lines[-1]["step"], "cpu_hours": round(lines[-1]["cpu"] / 3600, 2), **means}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m training.typeset.curves", description=__doc__)
    parser.add_argument("runs", type=Path, help="the folder with a run's folder for each model")
    parser.add_argument("--json", type=Path, required=True)
    args = parser.parse_args()
    found = json.loads(args.json.read_text(encoding="utf-8")) if args.json.exists() else {}
    found |= {log.parent.name: curves(log) for log in sorted(args.runs.glob("*/log.jsonl"))}
    rows = [f'"{k}": {{"losses": {_rows(v["losses"])}, "scores": {_rows(v["scores"])}}}' for k, v in found.items()]
    args.json.write_text("{" + ",\n".join(rows) + "}\n", encoding="utf-8")


def _rows(entries: list[Any]) -> str:
    return "[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]" if entries else "[]"


if __name__ == "__main__":
    main()
