"""The ahead-of-time gate: it must see what is wrong with a kernel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch")

from checks import aot, report
from checks.architectures import ARCHITECTURES, KIB, resident_blocks
from checks.budgets import Budget, faults
from checks.cases import CASES, Shape, tensors
from checks.compiling import CompileJob, JobResult
from checks.sass import Measured, amd_program, read_program

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
H100, MI300 = ARCHITECTURES["sm_90"], ARCHITECTURES["gfx942"]
ANY = Budget(warps=0, loads128=False, stores128=False)
JOB = CompileJob(CASES[0], "sm_90", "bfloat16")

# What cuobjdump prints, cut.
PRINTED = """
 Function _norm_kernel:
  REG:54 STACK:0 SHARED:64 LOCAL:0 CONSTANT[0]:600 TEXTURE:0 SURFACE:0 SAMPLER:0
\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                       /* 0x00000a00ff017b82 */
        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;             /* 0x0000000402048981 */
        /*0020*/                   LDGSTS.E.BYPASS.128 [R5], desc[UR4][R2.64] ; /* 0x0000000402048981 */
        /*0030*/                   LDG.E.U16 R8, desc[UR4][R2.64] ;             /* 0x0000000402048981 */
        /*0040*/              @UP1 LDG.E.64 R8, desc[UR4][R2.64] ;              /* 0x0000000402048981 */
        /*0050*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR4], R24 ; /* 0x01e0000004187df0 */
        /*0060*/               @P0 STG.E.U8 desc[UR4][R2.64], R8 ;              /* 0x0000000802008986 */
        /*0070*/                   STL [R1+0x8], R7 ;                           /* 0x0000080701007387 */
        /*0080*/                   EXIT ;                                       /* 0x000000000000794d */
"""


def measured(**fields) -> Measured:
    ordinary = {
        "kernel": "k",
        "warps": 4,
        "stages": 2,
        "registers": 64,
        "spilled": 0,
        "shared": 0,
        "blocks": 8,
        "serialised": False,
        "seconds": 1.0,
        "instructions": {"loads128": 1, "stores128": 1, "wgmma": 1},
    }
    return Measured(**{**ordinary, **fields})


def test_instructions_are_read_from_the_binary():
    registers, instructions = read_program(PRINTED)
    assert registers == 54
    assert instructions == {"loads128": 2, "narrow_loads": 1, "loads": 1, "wgmma": 1, "narrow_stores": 1, "local": 1}


def test_a_binary_that_cannot_be_read_is_no_empty_kernel():
    with pytest.raises(RuntimeError, match="neither registers nor instructions"):
        read_program("cuobjdump fatal: unknown file")
    with pytest.raises(RuntimeError, match="vgpr_count"):
        amd_program("s_endpgm")


def test_amd_assembly():
    text = (
        ".vgpr_count:     268\n.vgpr_spill_count: 12\n\tv_mfma_f32_32x32x8_f16 a[0:15]\n\tglobal_load_dwordx4 v[0:3]\n"
    )
    assert amd_program(text) == (268, 12, {"mfma": 1, "loads128": 1})


@pytest.mark.parametrize(
    ("arch", "registers", "shared", "warps", "blocks"),
    [
        ("sm_90", 32, 0, 4, 16),  # of 64 warps
        ("sm_89", 32, 0, 4, 12),  # of 48
        ("sm_80", 255, 0, 4, 2),  # 8 warps of 8,192 registers
        ("sm_80", 200, 0, 1, 8),  # 10 would have their registers, but each quarter holds 2
        ("sm_90", 168, 65536, 4, 3),
        ("sm_90", 32, 113 * KIB, 4, 2),  # and a KiB of each block is the system's
        ("sm_80", 32, 113 * KIB, 4, 1),
        ("sm_90", 16, 0, 1, 32),  # of 32 blocks
        ("gfx942", 64, 0, 4, None),
    ],
)
def test_resident_blocks(arch, registers, shared, warps, blocks):
    """The numbers of NVIDIA's occupancy calculator."""
    assert resident_blocks(ARCHITECTURES[arch], registers, shared, warps) == blocks


@pytest.mark.parametrize(
    ("found", "budget", "dtype", "words"),
    [
        ({"spilled": 8}, ANY, "float16", "8 bytes spilled"),
        ({"instructions": {"local": 3}}, ANY, "float16", "3 loads and stores of local memory"),
        ({"shared": 228 * KIB}, ANY, "float16", "wanted at most 232448"),
        ({"serialised": True}, ANY, "float16", "wgmma waits"),
        ({"blocks": 3}, ANY._replace(warps=16), "float16", "12 warps .* wanted at least 16"),
        ({"blocks": 0}, ANY._replace(warps=1), "float16", "0 warps"),
        ({"instructions": {"loads": 9}}, ANY._replace(loads128=True), "float16", "no loads of 128 bits"),
        ({"instructions": {"stores": 9}}, ANY._replace(stores128=True), "float16", "no stores of 128 bits"),
        ({"instructions": {"narrow_loads": 5}}, ANY._replace(narrow_loads=4), "float16", "5 loads of 8 or 16 bits"),
        ({"instructions": {}}, ANY._replace(dot=True), "bfloat16", "no mma"),
        ({"instructions": {"mma": 4}}, ANY._replace(dot=True, wide_dot=True), "bfloat16", "no wgmma"),
    ],
)
def test_each_budget_has_its_fault(found, budget, dtype, words):
    (fault,) = faults(measured(**found), budget, H100, dtype)
    assert re.search(words, fault), fault


def test_what_is_within_its_budget_has_no_fault():
    full = Budget(warps=32, dot=True, wide_dot=True)
    assert faults(measured(), full, H100, "bfloat16") == []
    assert faults(measured(instructions={"loads128": 1, "stores128": 1}), full, H100, "float32") == []  # exact products
    assert faults(measured(instructions={"mma": 1}), ANY._replace(dot=True), H100, "float16") == []
    assert faults(measured(blocks=None, instructions={}), full, MI300, "float16") == []  # there it has to fit
    assert faults(measured(blocks=None, spilled=2), full, MI300, "float16") == ["2 registers spilled, wanted none"]


@pytest.mark.nightly
def test_kernels_with_faults_are_seen_through_the_compiler(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(HERE.parent.parent), "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(HERE / "faulty_kernels.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["aligned"] == said["multiplies"] == {"sm_90": [], "gfx942": []}
    for name in ("misaligned", "odd_length"):
        kinds = [fault.split(",")[0] for fault in said[name]["sm_90"]]
        assert kinds == ["no loads of 128 bits", "no stores of 128 bits", "8 loads of 8 or 16 bits"]
    assert "bytes spilled" in said["holds_too_much"]["sm_90"][0]
    assert "warps on a multiprocessor" in said["has_few_warps"]["sm_90"][0]


@pytest.mark.nightly
def test_the_command(tmp_path, capsys, monkeypatch):
    """It compiles, and writes JSON."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # which the processes that compile must not see
    aot.main(["--arch", "sm_80", "--only", "512 keys", "--workers", "1", "--json", str(tmp_path / "out.json")])
    assert "3 cases, " in capsys.readouterr().out
    rows = json.loads((tmp_path / "out.json").read_text())
    assert {row["dtype"] for row in rows} == {"bfloat16", "float16", "float32"}
    assert all(row["launches"][0]["registers"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--arch", "sm_70"], "'sm_70' is not known"),
        (["--only", "nothing"], "no case has 'nothing'"),
        (["--workers", "0"], "at least 1, found 0"),
        (["--json", "/no/such/out.json"], "there is no folder /no/such"),
    ],
)
def test_wrong_usage(wrong, words, capsys):
    with pytest.raises(SystemExit) as ended:
        aot.main(wrong)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_what_is_missing_is_named(monkeypatch, capsys):
    monkeypatch.setattr(aot.importlib.util, "find_spec", lambda name: None if name == "triton" else object())
    assert aot.main([]) == 2
    assert "triton is not installed" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("TRITON_CUOBJDUMP_PATH", "/no/such/cuobjdump")
    assert aot.main([]) == 2
    assert "/no/such/cuobjdump is not there" in capsys.readouterr().err


def test_every_kernel_has_cases_each_with_a_name_of_its_own():
    # What stores nothing is a part of other kernels.
    modules = {
        path.stem
        for path in (ROOT / "zoo/engines/triton").glob("*.py")
        if "tl.store(" in path.read_text(encoding="utf-8")
    }
    assert {case.function.partition(".")[0] for case in CASES} == modules
    assert len({str(CompileJob(case, "", "")) for case in CASES}) == len(CASES)


def test_tensors_of_a_case():
    case = JOB.case._replace(arguments=(Shape((2, 5, 3, 8), of=(2, 5, 9, 8)), None, Shape((2,), "int64"), 0.5))
    x, nothing, start, half = tensors(case, "float16")
    assert (x.shape, x.stride(), str(x.dtype)) == ((2, 5, 3, 8), (360, 72, 8, 1), "torch.float16")
    assert (nothing, str(start.dtype), half) == (None, "torch.int64", 0.5)


def test_a_fault_names_kernel_case_architecture_and_both_numbers(capsys):
    found = {
        JOB: JobResult((measured(spilled=8), measured(kernel="_reduce", instructions={}))),
        JOB._replace(arch="sm_80"): JobResult(error="CompilationError: at 3:1"),
        JOB._replace(arch="sm_89"): JobResult((measured(instructions={"loads128": 1, "stores128": 1, "mma": 1}),)),
    }
    broken = report.print_all(found, verbose=True)
    assert [job.arch for job in broken] == ["sm_90", "sm_80"]
    printed = capsys.readouterr().out
    assert f"FAULT {JOB}: k: 8 bytes spilled, wanted none\n" in printed
    assert "sm_80: does not compile: CompilationError: at 3:1\n" in printed
    assert "then _reduce" in printed
    assert [len(row["faults"]) for row in report.as_json(found)] == [1, 1, 0]
