"""The limits of a compiled kernel's costs, and messages about kernels that exceed them."""

from __future__ import annotations

from typing import NamedTuple

from .architectures import Architecture
from .sass import Measured


class Budget(NamedTuple):
    """A kernel's limits.  All kernels have these too: no spills, no local memory, shared memory that fits."""

    warps: int  # resident on a multiprocessor of NVIDIA's, at least
    loads128: bool = True  # has 128-bit loads from global memory
    stores128: bool = True
    narrow_loads: int = 0  # of 8 or 16 bits, at most
    dot: bool = False  # multiplies matrices of 16 bits in the units that are for it
    wide_dot: bool = False  # and on sm_90 in those that take 64 rows at a time


FOLLOWING = Budget(warps=0, loads128=False, stores128=False)  # of a kernel that finishes the work of a first one


def faults(measured: Measured, budget: Budget, arch: Architecture, dtype: str) -> list[str]:
    """The limits that a compiled kernel exceeds, each as "what was found, what was expected"."""
    found, of = [], measured.count
    if measured.spilled:
        found.append(f"{measured.spilled} {'registers' if arch.backend == 'hip' else 'bytes'} spilled, wanted none")
    elif of("local"):
        found.append(f"{of('local')} loads and stores of local memory, wanted none")
    if measured.shared > arch.block_shared:
        found.append(f"{measured.shared} bytes of shared memory, wanted at most {arch.block_shared}")
    if arch.backend == "hip":
        return found  # there it has to compile and to fit: its speed was never looked at
    if measured.serialised:
        found.append("wgmma waits for each product, wanted asynchronous ones: more warps or a smaller tile")
    resident = (measured.blocks or 0) * measured.warps
    if resident < budget.warps:
        found.append(
            f"{resident} warps on a multiprocessor ({measured.blocks} blocks of {measured.warps}, {measured.registers}"
            f" registers, {measured.shared} bytes of shared memory), wanted at least {budget.warps}"
        )
    for kind in ("loads128", "stores128"):
        if getattr(budget, kind) and not of(kind):
            found.append(f"no {kind.replace('128', '')} of 128 bits, wanted them: is an argument not aligned?")
    if of("narrow_loads") > budget.narrow_loads:
        found.append(f"{of('narrow_loads')} loads of 8 or 16 bits, wanted at most {budget.narrow_loads}")
    wanted = arch.dot if budget.wide_dot else "mma"
    if budget.dot and dtype != "float32" and not of(wanted) and not of(arch.dot):
        found.append(f"no {wanted} instruction, wanted matrix products by it")
    return found
