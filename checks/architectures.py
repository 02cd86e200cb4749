"""The GPU architectures that kernels are compiled for, and what a multiprocessor of each of them holds.

Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
(https://docs.nvidia.com/cuda/cuda-c-programming-guide/), and AMD's "CDNA 3 Instruction Set Architecture".
"""

from __future__ import annotations

import math
from typing import NamedTuple

KIB = 1024


class Architecture(NamedTuple):
    """One kind of GPU.  Shared memory in bytes."""

    name: str  # as `zoo.engines.triton.architecture` says it
    backend: str  # Triton's: "cuda" or "hip"
    number: int | str  # Triton's name of it
    lanes: int  # threads of a warp (AMD: of a wavefront)
    block_shared: int  # what one block may have
    # Of a multiprocessor; None where occupancy is not worked out.
    shared: int | None = None
    warps: int | None = None
    blocks: int | None = None
    dot: str = "mma"  # the instructions that multiply matrices: a field of `sass.Measured`


REGISTERS = 65536  # of a multiprocessor, 32 bits each; the same on all of NVIDIA's below
ARCHITECTURES = {
    a.name: a
    for a in (
        Architecture("sm_80", "cuda", 80, 32, 163 * KIB, 164 * KIB, 64, 32),
        Architecture("sm_89", "cuda", 89, 32, 99 * KIB, 100 * KIB, 48, 24),
        Architecture("sm_90", "cuda", 90, 32, 227 * KIB, 228 * KIB, 64, 32, dot="wgmma"),
        Architecture("gfx942", "hip", "gfx942", 64, 64 * KIB, dot="mfma"),
    )
}


def resident_blocks(arch: Architecture, registers: int, shared: int, warps: int) -> int | None:
    """The number of blocks that are resident on a multiprocessor; None where it is not computed.

    registers: a thread's.  shared: a block's bytes, as the compiler reports them.  warps: of a block.
    """
    if arch.shared is None or arch.warps is None or arch.blocks is None:
        return None
    of_a_warp = math.ceil(max(registers, 1) * arch.lanes / 256) * 256  # handed out 256 at a time
    by_registers = REGISTERS // of_a_warp // 4 * 4  # each quarter has its own
    of_a_block = math.ceil(shared / KIB) * KIB + KIB  # and one KiB of each block is the system's
    return min(arch.warps // warps, by_registers // warps, arch.shared // of_a_block, arch.blocks)
