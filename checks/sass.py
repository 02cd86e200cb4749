"""The costs of a compiled kernel: registers, memory, occupancy, and its instructions by kind."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .architectures import Architecture, resident_blocks

if TYPE_CHECKING:
    from .capture import Launch

# The first pattern that an NVIDIA opcode begins with is its kind; those of no kind are not counted.
OPCODES = {
    "wgmma": r"[HIQB]GMMA",
    "mma": r"[HIQB]MMA",
    "loads128": r"LDG(STS)?\b.*\.128|UTMALDG|UBLKCP",
    "narrow_loads": r"LDG(STS)?\b.*\.[US](8|16)\b",
    "loads": r"LDG",
    "stores128": r"STG\b.*\.128|UTMASTG",
    "narrow_stores": r"STG\b.*\.[US](8|16)\b",
    "stores": r"STG",
    "local": r"LDL|STL",
}
AMD_OPCODES = {
    "mfma": r"v_mfma",
    "loads128": r"(global|buffer)_load_dwordx4",
    "stores128": r"(global|buffer)_store_dwordx4",
}
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P[T0-9]+\s+)?([A-Z][A-Za-z0-9_.]*)")
SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class Measured:
    """One compiled kernel.  Memory in bytes; instructions are counted as they stand in the program, not as they run."""

    kernel: str
    warps: int
    stages: int
    registers: int  # of a thread
    spilled: int  # bytes stored and loaded (AMD: registers)
    shared: int  # of a block
    blocks: int | None  # resident on a multiprocessor
    serialised: bool  # wgmma that waits for each product, as ptxas says
    seconds: float  # to compile
    instructions: dict[str, int]

    def count(self, kind: str) -> int:
        return self.instructions.get(kind, 0)


def measure(launch: Launch, arch: Architecture) -> Measured:
    """Measure a captured launch on the architecture that it was compiled for."""
    metadata = launch.kernel.metadata
    if arch.backend == "hip":
        registers, spilled, instructions = amd_program(launch.kernel.asm["amdgcn"])
    else:
        registers, instructions = nvidia_program(launch.kernel.asm["cubin"])
        spilled = sum(int(n) for found in SPILLED.findall(launch.log) for n in found)
    return Measured(
        kernel=metadata.name,
        warps=metadata.num_warps,
        stages=metadata.num_stages,
        registers=registers,
        spilled=spilled,
        shared=metadata.shared,
        blocks=resident_blocks(arch, registers, metadata.shared, metadata.num_warps),
        serialised="wgmma.mma_async instructions are serialized" in launch.log,
        seconds=round(launch.seconds, 2),
        instructions=instructions,
    )


def tool(name: str) -> Path:
    """NVIDIA's program of that name, where Triton looks for it: in its wheel, unless the environment names another."""
    named = os.environ.get(f"TRITON_{name.upper()}_PATH")
    spec = importlib.util.find_spec("triton")  # does not load it
    origin = "" if spec is None or spec.origin is None else spec.origin
    return Path(named) if named else Path(origin).parent / "backends" / "nvidia" / "bin" / name


def nvidia_program(cubin: bytes) -> tuple[int, dict[str, int]]:
    """Registers of a thread, and instructions by kind, as cuobjdump reads them from a binary."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        f.write(cubin)
        f.flush()
        command = [str(tool("cuobjdump")), "--dump-resource-usage", "--dump-sass", f.name]
        return read_program(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def read_program(text: str) -> tuple[int, dict[str, int]]:
    """The same from what cuobjdump prints."""
    registers = re.search(r"\bREG:(\d+)", text)
    opcodes = INSTRUCTION.findall(text)
    if registers is None or not opcodes:
        raise RuntimeError(f"cuobjdump reads neither registers nor instructions from the binary: {text[:200]!r}")
    return int(registers[1]), count_opcodes(opcodes)


def count_opcodes(opcodes: list[str]) -> dict[str, int]:
    """["LDG.E.128", "HMMA.16816.F32", ...] -> {"loads128": 1, "mma": 1}."""
    kinds = (next((kind for kind, pattern in OPCODES.items() if re.match(pattern, code)), None) for code in opcodes)
    return dict(Counter(kind for kind in kinds if kind))


def amd_program(text: str) -> tuple[int, int, dict[str, int]]:
    """Vector registers of a thread, how many of them are spilled, and instructions by kind, of AMD's assembly."""
    found = {name: re.search(rf"\.{name}:\s+(\d+)", text) for name in ("vgpr_count", "vgpr_spill_count")}
    if not all(found.values()):
        raise RuntimeError("the assembly names neither vgpr_count nor vgpr_spill_count")
    registers, spilled = (int(match[1]) for match in found.values() if match)
    counts = {kind: len(re.findall(rf"^\s+{pattern}", text, re.M)) for kind, pattern in AMD_OPCODES.items()}
    return registers, spilled, {kind: count for kind, count in counts.items() if count}
