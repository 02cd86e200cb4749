"""The launches of checks/cases.py on the GPU that is here: they compile, fit into it, and spill no registers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
import torch
from triton.runtime.jit import JITFunction

from checks.cases import CASES, Case, Shape, arguments

ROOT = Path(__file__).parent.parent.parent
LAUNCHES = [
    pytest.param(case, dtype, id=f"{case.function} {case.name} {dtype}") for case in CASES for dtype in case.dtypes
]


@pytest.mark.parametrize(("case", "dtype"), LAUNCHES)
def test_a_launch_fits_and_spills_no_registers(case, dtype, device, monkeypatch):
    if device == "cpu":
        pytest.skip("needs a GPU: the interpreter compiles nothing")
    module, _, name = case.function.partition(".")
    launch = getattr(import_module(f"zoo.engines.triton.{module}"), name)
    run, kernels = JITFunction.run, []

    def run_and_keep(self, *args, **options):
        kernels.append(run(self, *args, **options))
        return kernels[-1]

    monkeypatch.setattr(JITFunction, "run", run_and_keep)
    launch(*arguments(case, dtype, device))
    torch.cuda.synchronize()
    assert kernels
    assert {kernel.metadata.name: kernel.n_spills for kernel in kernels if kernel.n_spills} == {}


def test_every_kernel_has_cases_each_with_a_name_of_its_own():
    # What stores nothing is a part of other kernels.
    modules = {
        path.stem
        for path in (ROOT / "zoo/engines/triton").glob("*.py")
        if "tl.store(" in path.read_text(encoding="utf-8")
    }
    assert {case.function.partition(".")[0] for case in CASES} == modules
    assert len({(case.function, case.name) for case in CASES}) == len(CASES)


def test_arguments_of_a_case():
    shapes = (Shape((2, 5, 3, 8), of=(2, 5, 9, 8)), None, (Shape((2,), "int64"), 0.5))
    x, nothing, (start, half) = arguments(Case("a part of a fused array", "", shapes), "float16", "cpu")
    assert (x.shape, x.stride(), x.dtype) == ((2, 5, 3, 8), (360, 72, 8, 1), torch.float16)
    assert (nothing, start.tolist(), half) == (None, [0, 0], 0.5)
