"""From nothing to a first output, zoo and transformers each in processes of their own: seconds, and peak memory.

    python -m benchmarks.coldstart                    # bert-base; writes results/coldstart-<processor>-<date>.json
    python -m benchmarks.coldstart --install          # also installs zoo into a fresh venv, to weigh it
    python -m benchmarks.coldstart --model bert-tiny --rounds 2 --json out.json

The files are in the system's cache.  Seconds are medians over the rounds, memory is the largest of them; it counts
mapped pages that have been looked at.  Ratios and targets are printed whether met or not.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import checkpoints, harness

MB = 1e6
TARGETS = {
    "import zoo, s over the interpreter": 0.3,
    "import zoo, MB over the interpreter": 40,
    "zoo / transformers, to the first output": 0.25,
    "peak of loading / weights as float32": 1.15,
    "site-packages of a base install, MB": 150,
}

# The program of each process, around the lines of its body.
CHILD = """
import json, sys, time
from benchmarks.memory import peak
marks = {}
def mark(name):
    marks[name] = {"seconds": time.perf_counter() - begin, "peak": peak()}
begin = time.perf_counter()
mark("interpreter")
%s
print(json.dumps(marks))
"""
BODIES = {
    "interpreter": "",
    "import zoo": 'import zoo\nmark("import")',
    "zoo": """
import zoo
mark("import")
model = zoo.load_model(sys.argv[1])
mark("load")
import numpy as np
model(np.arange(1000, 1016)[None], np.ones((1, 16), np.int64))
mark("output")
""",
    "transformers": """
import torch
from transformers import AutoModel
mark("import")
model = AutoModel.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
mark("load")
with torch.inference_mode():
    model(torch.arange(1000, 1016)[None], torch.ones((1, 16), dtype=torch.int64))
mark("output")
""",
}
# The other ways in which hubs store the same weights.
STORED = {"float32": {}, "float16": {"dtype": "float16"}, "bfloat16": {"dtype": "bfloat16"}, ".bin": {"as_bin": True}}


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    harness.calm()
    environment = harness.environment(harness.available_cores())
    print(harness.summary(environment), flush=True)
    folders = {how: checkpoints.random_checkpoint(args.model, args.cache, **o) for how, o in STORED.items()}
    size = float32_bytes(folders["float32"])

    names = ("interpreter", "import zoo", "zoo", "transformers")
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(args.rounds + 1):
        for name in names:
            runs[name].append(run(BODIES[name], folders["float32"]))
    found = {name: _summary(of[1:]) for name, of in runs.items()}  # the first round filled the system's cache
    stored = {how: _summary([run(BODIES["zoo"], folder) for _ in range(2)]) for how, folder in folders.items()}

    print(f"\n{args.model}: {size / MB:.0f} MB as float32; median seconds and peak MB since the start of the process")
    print(harness.table(["", "whole process", "import", "load", "first output"], [_line(n, found[n]) for n in names]))
    print("\nzoo, by how the weights are stored")
    head = ["", "load s", "output s", "peak MB of load", "of output", "/ float32", "/ float32"]
    print(harness.table(head, [_stored_line(how, of, size) for how, of in stored.items()]))

    figures = _figures(found, stored, size, install_size() if args.install else None)
    print()
    for name, value in figures.items():
        bound = TARGETS[name.partition(" (")[0]]
        print(f"{name}: " + ("not measured" if value is None else f"{value:.3g} ({_verdict(value, bound)} {bound:g})"))
    harness.finish(
        "coldstart",
        args,
        {
            "environment": environment,
            "model": args.model,
            "float32_bytes": size,
            "rounds": args.rounds,
            "processes": found,
            "stored": stored,
            "figures": {
                name: {"value": value, "target": TARGETS[name.partition(" (")[0]]} for name, value in figures.items()
            },
        },
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = harness.parser("coldstart", __doc__, rounds=5, threads=False)
    parser.add_argument("--model", choices=sorted(checkpoints.RANDOM), default="bert-base")
    parser.add_argument("--install", action="store_true", help="install zoo into a fresh venv to weigh it (network)")
    return parser


def run(body: str, folder: Path) -> dict[str, Any]:
    """Seconds and peak bytes at each mark of one process, and the seconds of all of it."""
    begin = time.perf_counter()
    marks = harness.run_python(CHILD % body, str(folder))
    return {**marks, "whole": {"seconds": time.perf_counter() - begin}}


def float32_bytes(folder: Path) -> int:
    """The bytes that the weights of a folder take as float32."""
    import zoo
    from zoo.nn import count_parameters

    return 4 * count_parameters(zoo.load_model(folder))


def install_size() -> int:
    """Bytes of the site-packages that `pip install` of this repository makes in a fresh venv, pip itself left out."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = next(p for p in (Path(folder) / "bin/python", Path(folder) / "Scripts/python.exe") if p.exists())
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(harness.ROOT)], check=True)
        found = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            check=True,
            capture_output=True,
            text=True,
        )
        site = Path(found.stdout.strip())
        leave = re.compile(r"(pip|setuptools)([-.].*)?$")
        return sum(_bytes(f) for f in site.rglob("*") if not leave.match(f.relative_to(site).parts[0]))


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.is_file() and not path.is_symlink() else 0


def _summary(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By mark, the median of the seconds and the largest of the peaks."""
    return {
        mark: {
            "seconds": statistics.median(run[mark]["seconds"] for run in runs),
            **({"peak": max(run[mark]["peak"] for run in runs)} if "peak" in runs[0][mark] else {}),
        }
        for mark in runs[0]
    }


def _figures(
    found: dict[str, dict[str, Any]], stored: dict[str, dict[str, Any]], size: int, installed: int | None
) -> dict[str, float | None]:
    bare, ours = found["interpreter"], found["import zoo"]
    load_peaks = {
        f"peak of loading / weights as float32 ({how})": of["load"]["peak"] / size for how, of in stored.items()
    }
    return {
        "import zoo, s over the interpreter": ours["whole"]["seconds"] - bare["whole"]["seconds"],
        "import zoo, MB over the interpreter": (ours["import"]["peak"] - bare["interpreter"]["peak"]) / MB,
        "zoo / transformers, to the first output": found["zoo"]["whole"]["seconds"]
        / found["transformers"]["whole"]["seconds"],
        **load_peaks,
        "site-packages of a base install, MB": None if installed is None else installed / MB,
    }


def _verdict(value: float, bound: float) -> str:
    return "<=" if value <= bound else "MISSES"


def _line(name: str, of: dict[str, Any]) -> list[str]:
    marks = [
        f"{of[m]['seconds']:.2f} s, {of[m]['peak'] / MB:.0f} MB" if m in of else ""
        for m in ("import", "load", "output")
    ]
    return [name, f"{of['whole']['seconds']:.2f} s", *marks]


def _stored_line(how: str, of: dict[str, Any], size: int) -> list[str]:
    peaks = [of[m]["peak"] for m in ("load", "output")]
    seconds = [f"{of[m]['seconds']:.2f}" for m in ("load", "output")]
    return [how, *seconds, *(f"{p / MB:.0f}" for p in peaks), *(f"{p / size:.2f}" for p in peaks)]


if __name__ == "__main__":
    raise SystemExit(main())
