"""The speed of a checkpoint here: load, first answer, rate and memory, beside other libraries that are installed.

Each contender is measured in a process of its own, on the same inputs, by `contender.py`.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

from ...errors import InputError, UnsupportedError, nearest
from ...options import Options
from ...task_kinds import TASKS
from ...tasks import find_task

ZOO = {
    "zoo": "cpu",
    "zoo-onnx": "onnx",
    "zoo-openvino": "openvino",
    "zoo-torch": "torch:cpu",
}  # contender -> its device
PEERS = ("sentence-transformers", "transformers", "llama-cpp")
# Tasks whose inputs can be made up.
MEASURED_TASKS = [
    kind
    for kind in TASKS
    if kind.heads and kind.reads in ("text", "image") and len(kind.arguments) == 1 and kind.model != "EncoderDecoder"
]
TIMEOUT = 600.0  # seconds a contender may take beside its rounds


def bench(
    name: str,
    *,
    task: str | None = None,
    against: tuple[str, ...] | None = None,
    seconds: float = 5.0,
    count: int = 64,
    device: str | None = None,
    weights: str | None = None,
    threads: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Measure a checkpoint; options: `revision` and `local_files_only` of `zoo.load`.

    against: contenders, of "zoo", "zoo-onnx", "zoo-openvino", "zoo-torch", "sentence-transformers", "transformers",
    "llama-cpp"; by default all that are installed and run the task.  seconds: for the rounds of each.  count: texts,
    pictures or new tokens of a round.  device, weights: of zoo, instead of each of its engines.

    The result has for each contender `load` and `first` in seconds, `rate` per second in the best round, and `memory`,
    the most bytes that its process held; or `error`.
    """
    found = find_task(name, task, Options(), **options)
    kind = found.kind
    if kind not in MEASURED_TASKS:
        known = ", ".join(one.name for one in MEASURED_TASKS if one.reads == kind.reads)
        raise UnsupportedError(f"zoo bench measures {known}, and the task is {kind.name}")
    is_gguf = found.checkpoint.opened is not None
    modules = bool(found.checkpoint.modules)
    able = [*(["zoo"] if device else _engines()), *_peers(kind.name, modules, is_gguf)]
    for one in against or ():
        if one not in (*ZOO, *PEERS):
            raise InputError(f"{one!r} is not one of {', '.join((*ZOO, *PEERS))}{nearest(one, (*ZOO, *PEERS))}")
    checkpoint = found.checkpoint
    path = checkpoint.weights[0] if is_gguf else checkpoint.folder
    job = {"path": str(path), "task": kind.name, "images": kind.reads == "image", "seconds": seconds, "count": count}
    job |= {"pipeline": next(iter(kind.pipelines), kind.name)}
    job |= {"weights": weights, "threads": threads, "architecture": next(iter(checkpoint.config.architectures), None)}
    results = {one: _run({**job, "contender": one, "device": device or ZOO.get(one)}) for one in against or able}
    unit = "tokens/s" if kind.name == "generate" else "pictures/s" if kind.reads == "image" else "texts/s"
    return {"name": checkpoint.name, "task": kind.name, "unit": unit, "count": count, "results": results}


def _engines() -> list[str]:
    onnx = "onnx", "onnxruntime"
    needs = {"zoo": (), "zoo-onnx": onnx, "zoo-openvino": ("openvino", *onnx), "zoo-torch": ("torch",)}
    return [one for one, packages in needs.items() if all(importlib.util.find_spec(package) for package in packages)]


def _peers(task: str, modules: bool, is_gguf: bool) -> list[str]:
    """The other libraries that are installed and run the task."""
    there = {"transformers": ("transformers", "torch"), "llama-cpp": ("llama_cpp",)}
    there["sentence-transformers"] = ("sentence_transformers",)
    installed = [one for one, packages in there.items() if all(importlib.util.find_spec(p) for p in packages)]
    if is_gguf:
        return [one for one in installed if one == "llama-cpp" and task == "generate"]
    wanted = "sentence-transformers" if task == "embed" and modules else "transformers"
    return [one for one in installed if one == wanted]


def _run(job: dict[str, Any]) -> dict[str, Any]:
    """The figures of a contender, or its error."""
    command = [sys.executable, "-m", "zoo.apps.bench.contender"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(job),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT + job["seconds"],
        )
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {TIMEOUT:.0f} s"}
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        last = done.stderr.strip().splitlines()[-1:] or [f"ended with status {done.returncode}"]
        return {"error": last[0]}
