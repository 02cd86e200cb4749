"""The launches of checks/cases.py on the GPU that is here: they compile, fit into it, and spill no registers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
import torch
from triton.runtime.jit import JITFunction

from checks.cases import CASES, Case, Shape, arguments

ROOT = Path(__file__).parent.parent.parent
FUNCTIONS = tuple(dict.fromkeys(case.function for case in CASES))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_launch_spills_registers(function, device, monkeypatch):
    if device == "cpu":
        pytest.skip("needs a GPU: the interpreter compiles nothing")
    module, _, name = function.partition(".")
    launch = getattr(import_module(f"zoo.engines.triton.{module}"), name)
    run, kernels = JITFunction.run, []

    def run_and_keep(self, *args, **options):
        kernels.append(run(self, *args, **options))
        return kernels[-1]

    monkeypatch.setattr(JITFunction, "run", run_and_keep)
    spills = {}
    for case in (case for case in CASES if case.function == function):
        for dtype in case.dtypes:
            kernels.clear()
            launch(*arguments(case, dtype, device))
            torch.cuda.synchronize()
            assert kernels, f"{case.name} {dtype} launches no kernel"
            spills |= {(case.name, dtype, one.metadata.name): one.n_spills for one in kernels if one.n_spills}
    assert spills == {}


def test_every_kernel_has_cases_each_with_a_name_of_its_own():
    # What stores nothing is a part of other kernels.
    modules = {
        path.stem
        for path in (ROOT / "zoo/engines/triton").glob("*.py")
        if "tl.store(" in path.read_text(encoding="utf-8")
    }
    assert {function.partition(".")[0] for function in FUNCTIONS} == modules
    assert len({(case.function, case.name) for case in CASES}) == len(CASES)


def test_arguments_of_a_case():
    shapes = (Shape((2, 5, 3, 8), of=(2, 5, 9, 8)), None, (Shape((2,), "int64"), 0.5))
    x, nothing, (start, half) = arguments(Case("a part of a fused array", "", shapes), "float16", "cpu")
    assert (x.shape, x.stride(), x.dtype) == ((2, 5, 3, 8), (360, 72, 8, 1), torch.float16)
    assert (nothing, start.tolist(), half) == (None, [0, 0], 0.5)
