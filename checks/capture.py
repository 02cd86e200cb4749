"""Compiles what a function would launch, for any architecture, with neither a GPU nor a driver.

    with capture(ARCHITECTURES["sm_90"]) as launches:
        layer_norm(torch.empty(8, 768), ...)  # compiled, not run: the result holds nothing

What is compiled is what is launched: Triton derives types, alignment and constants from the arguments, as it always
does.  Not in a process with TRITON_INTERPRET=1, where kernels are not compiled at all.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from zoo.engines import triton as kernels
from zoo.errors import UnsupportedError

from .architectures import Architecture


class Launch(NamedTuple):
    """A kernel that a wrapper would have launched."""

    kernel: Any  # triton's CompiledKernel
    log: str  # what ptxas said
    seconds: float


@contextlib.contextmanager
def capture(arch: Architecture) -> Iterator[list[Launch]]:
    """Within the context kernels are compiled for `arch` instead of launched; a compiler's error passes through."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        raise UnsupportedError("TRITON_INTERPRET=1 is set, and with it kernels are not compiled: unset it")
    launches: list[Launch] = []
    nobody = _NoDriver(arch)
    run, active, taken_for = JITFunction.run, driver._active, (kernels.INTERPRETED, kernels._interpreted)
    log, always = knobs.nvidia.dump_ptxas_log, knobs.compilation.always_compile

    def compile_alone(self: JITFunction, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        said, begin = io.StringIO(), time.perf_counter()
        self.device_caches.pop(nobody.get_current_device(), None)  # or a second launch would say nothing
        with contextlib.redirect_stdout(said):
            kernel = run(self, *args, grid=grid, warmup=True, **options)
        launches.append(Launch(kernel, said.getvalue(), time.perf_counter() - begin))
        return kernel

    driver._active, JITFunction.run = nobody, compile_alone  # type: ignore[assignment]
    knobs.nvidia.dump_ptxas_log = knobs.compilation.always_compile = True
    kernels.INTERPRETED, kernels._interpreted = arch.name, True  # what CPU tensors are taken for
    try:
        yield launches
    finally:
        driver._active, JITFunction.run = active, run
        knobs.nvidia.dump_ptxas_log, knobs.compilation.always_compile = log, always
        kernels.INTERPRETED, kernels._interpreted = taken_for


class _NoDriver:
    """The part of Triton's driver that compiling a kernel needs."""

    def __init__(self, arch: Architecture) -> None:
        self.arch = arch

    def get_current_target(self) -> GPUTarget:
        return GPUTarget(self.arch.backend, self.arch.number, self.arch.lanes)

    def get_current_device(self) -> int:
        return -1  # shares no kernels with a device that there is

    def get_current_stream(self, device: int) -> int:
        return 0
