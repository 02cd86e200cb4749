"""The device of long-running commands: without --device the fastest that is installed, named in a line on stderr."""

from __future__ import annotations

import argparse
import os

from ...devices import AUTO, engine_hint, resolve_device
from ...tasks.progress import write_line


def fastest(args: argparse.Namespace) -> str:
    """The device of --device; without one, "auto", and the device that it chooses is written to stderr."""
    if args.device not in (None, AUTO):
        return args.device
    say_device(resolve_device(AUTO, getattr(args, "dtype", None)))
    return AUTO


def say_device(device: str | None) -> None:
    """Print the device that "auto" stands for, unless ZOO_DEVICE names it."""
    if os.environ.get("ZOO_DEVICE"):
        return
    hint = engine_hint()
    names = {
        None: f"NumPy ({hint})" if hint else "NumPy",
        "onnx": "ONNX Runtime",
        "openvino": "OpenVINO",
        "cuda": "a GPU",
    }
    write_line(f"zoo: on {names[device]}")
