"""What the card itself reaches: the ceilings that the shares of all other stages refer to."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from ..gpu_measure import Bench, take_turns, timed
from ..gpu_report import Report, Row, run_rows, slug

COPY = "copy"
PRODUCTS = ("bf16", "fp16", "tf32")


def run(bench: Bench, report: Report) -> None:
    run_rows(bench, report, rows(bench))


def rows(bench: Bench) -> list[Row]:
    products = (Row(f"{of} product", 5, partial(product, bench, of)) for of in PRODUCTS)
    return [Row(COPY, 5, partial(copy, bench)), *products]


def copy(bench: Bench) -> dict[str, Any]:
    """One large array to another, counting what is read and what is written."""
    import torch

    x = torch.randint(-128, 127, (1 << (16 if bench.tiny else 32),), dtype=torch.int8, device=bench.device)
    y = torch.empty_like(x)
    return _measured(bench, lambda: y.copy_(x), bytes=2 * x.numel())


def product(bench: Bench, of: str) -> dict[str, Any]:
    """An 8192 x 8192 x 8192 product of random numbers: on zeros the card is faster."""
    import torch

    size = 64 if bench.tiny else 8192
    dtype = {"bf16": "bfloat16", "fp16": "float16", "tf32": "float32"}[of]
    a, b = (bench.normal(size, size, dtype=dtype, seed=seed) for seed in (1, 2))
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = of == "tf32"
    try:
        return _measured(bench, lambda: a @ b, flops=2 * size**3)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _measured(bench: Bench, call: Callable[[], Any], **work: float) -> dict[str, Any]:
    call()
    return timed(bench, take_turns(bench, {"torch": call}), **work)


def ceilings(bench: Bench) -> dict[str, float]:
    """{"copy": GB/s, "bf16_tflops": TFLOP/s} of this card: what the stage has written, or else measured now."""
    if bench.interpreted:
        return {}
    for path in sorted(bench.folder.glob(f"gpu-{slug(bench.card)}-bandwidth-*.json"), reverse=True):
        found = {row["row"]: row for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
        if {COPY, "bf16 product"} <= {name for name, row in found.items() if "error" not in row}:
            break
    else:
        found = {COPY: copy(bench), "bf16 product": product(bench, "bf16")}
        bench.free()
    return {
        "copy": found[COPY]["gb_per_second"]["torch"],
        "bf16_tflops": found["bf16 product"]["tflops"]["torch"],
    }
