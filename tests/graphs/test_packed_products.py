"""Products with packed matrices of every type, and rows of packed tables, as graphs: against NumPy's numbers."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.ops.test_quant_tensors import NARROW, matrix
from zoo import ops
from zoo.apps.gguf_export.k_blocks import encode
from zoo.engines.onnx.ops import Symbol, packed
from zoo.engines.onnx.ops.graph import GraphBuilder, Recipe
from zoo.engines.onnx.ops.packed import ACTIVATIONS, Int4
from zoo.engines.onnx.ops.symbol import constant
from zoo.engines.onnx.signature import GraphInput
from zoo.engines.onnx.trace import finish
from zoo.errors import InputError
from zoo.ops.on_numpy.quantise import quantise
from zoo.quant import QUANT_TYPES, QuantRows, QuantTensor
from zoo.typing import RawTensor

PACKED = [name for name in NARROW if not QUANT_TYPES[name].is_plain]


def error(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def traced(compute, *lengths, dtype="float32", precision=None, standard=False):
    """The graph of compute(x), x (N, *lengths)."""
    graph = GraphBuilder(standard, precision)
    given = GraphInput("x", ("N", *lengths), dtype, -1, "x")
    shape = [graph.input_dim("N", 5, "x", 0), *lengths]
    y = compute(Symbol(graph, "x", shape, np.dtype(dtype)))
    return finish(graph, [given], [("y", y, False)])


def product(weight, bias, **how):
    def compute(x):
        return ops.linear(x, constant(x.graph, weight), constant(x.graph, bias))

    return traced(compute, weight.shape[1], **how)


@pytest.mark.parametrize("names", [[n] for n in PACKED] + [["Q4_K", "Q4_K", "Q6_K"], ["Q4_0", "F16"]], ids="+".join)
@pytest.mark.parametrize("columns", [72, 256, 33])
def test_products_are_those_of_the_numbers(names, columns, rng, running, monkeypatch):
    weight, bias = matrix(rng, *names, columns=columns), rng.standard_normal(0)
    bias = rng.standard_normal(len(weight), np.float32)
    twin = weight.dequantise().astype(np.float64)
    operators = {}
    for activations, limit in (("float32", 2e-6), ("int8", 0.02)):
        monkeypatch.setenv(ACTIVATIONS, activations)
        graph = product(weight, bias)
        operators[activations] = [node.op for node in graph.nodes]
        run = running(graph)
        for rows in (1, 9):
            x = rng.standard_normal((rows, columns), np.float32)
            (found,) = run.run(None, {"x": x})
            wanted = x @ twin.T + bias
            size = np.linalg.norm(np.abs(x).astype(np.float64) @ np.abs(twin).T)
            assert np.linalg.norm(found - wanted) <= limit * size
    assert "MatMulNBits" in operators["int8"]
    assert operators["int8"].count("MatMulNBits") <= operators["float32"].count("MatMulNBits")


@pytest.mark.parametrize("name", ["Q4_0", "Q4_K", "F16"])
def test_a_large_matrix_is_several_products(name, rng, running, monkeypatch):
    weight, bias = matrix(rng, name, rows=80, columns=256), rng.standard_normal(80, np.float32)
    x = rng.standard_normal((3, 256), np.float32)
    (wanted,) = running(product(weight, bias, precision=Int4(0))).run(None, {"x": x})
    monkeypatch.setattr(packed, "MAX_PRODUCT_ELEMENTS", 33 * 256)
    graph = product(weight, bias, precision=Int4(0))
    assert [node.op for node in graph.nodes].count("MatMulNBits") == 3
    (found,) = running(graph).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["Q4_0", "Q6_K"])
def test_a_gated_layer_multiplies_each_half_by_itself(name, rng, running):
    weight = QuantTensor([part for _ in range(2) for part in matrix(rng, name, rows=48, columns=256).parts])
    x = rng.standard_normal((3, 256), np.float32)
    graph = traced(lambda x: ops.glu(ops.linear(x, constant(x.graph, weight), None), "silu"), 256)
    operators = [node.op for node in graph.nodes]
    assert operators.count("MatMulNBits") == 2
    assert not {"Split", "Concat", "Slice"} & set(operators)
    (found,) = running(graph).run(None, {"x": x})
    gate, up = np.split(x @ weight.dequantise().T, 2, -1)
    assert error(found, gate * (1 + np.tanh(gate / 2)) / 2 * up) < 0.02


@pytest.mark.parametrize(("name", "vnni"), [("Q4_K", False), ("Q4_K", True), ("Q5_K", False)])
def test_offsets_are_rounded_to_a_small_share_of_a_step(name, vnni, rng, running, monkeypatch):
    """By rows of the identity, which int8 has exactly."""
    monkeypatch.setattr(packed, "processor_has", lambda *features: vnni)
    data = encode(rng.standard_normal((37, 512), np.float32), name)
    weight = QuantTensor([QuantRows(QUANT_TYPES[name], 512, (data,))])
    twin = weight.dequantise()
    (found,) = running(product(weight, np.zeros(37, np.float32))).run(None, {"x": np.eye(512, dtype=np.float32)})
    np.testing.assert_allclose(found.T, twin, rtol=1e-6, atol=3e-4 * (twin.max() - twin.min()))


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("standard", [False, True])
def test_rows_of_a_table(name, standard, rng, running):
    table = matrix(rng, name, name, columns=72)
    graph = traced(lambda x: ops.embedding(x, constant(x.graph, table), "ids"), dtype="int64", standard=standard)
    ids = rng.integers(0, len(table), 11)
    (found,) = running(graph).run(None, {"x": ids})
    np.testing.assert_allclose(found, table.dequantise()[ids], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["F32", "BF16", "F16"])
def test_int4_rounds_as_on_numpy(dtype, rng, running, monkeypatch):
    """A graph that is written rounds as loading does; a vocabulary's matrix has eight bits."""
    monkeypatch.setenv(ACTIVATIONS, "float32")
    for rows, kind in ((48, "INT4_32"), (50, "INT8")):
        if dtype == "F32":
            weight = rng.standard_normal((rows, 96), np.float32)
            rounded = quantise(RawTensor(weight, "F32"), kind, "w")
        else:
            weight = matrix(rng, dtype, rows=rows, columns=96)
            rounded = quantise(RawTensor(weight.parts[0].arrays[0], dtype), kind, "w")
        graph = product(weight, np.zeros(rows, np.float32), precision=Int4(50))
        x = rng.standard_normal((3, 96), np.float32)
        (found,) = running(graph).run(None, {"x": x})
        assert error(found, x @ QuantTensor([rounded]).dequantise().T) < 2e-6


def test_small_matrices_stay(rng):
    weight = rng.standard_normal((31, 96), np.float32)
    assert [n.op for n in product(weight, weight[:, 0], precision=Int4(0)).nodes] == ["Gemm", "Identity"]


def test_activations_are_named(rng, monkeypatch):
    monkeypatch.setenv(ACTIVATIONS, "int9")
    weight = matrix(rng, "Q4_0")
    with pytest.raises(InputError, match="ZOO_ONNX_ACTIVATIONS is 'int9', expected int8 or float32; did you mean"):
        product(weight, np.zeros(len(weight), np.float32))


def test_threads_that_write_graphs_do_not_evict_each_others_arrays():
    """Two recipes by turns in two threads: each is computed once."""
    made, turns = list[str](), [threading.Semaphore(1), threading.Semaphore(0)]

    def write(own: int) -> None:
        recipe = Recipe(lambda: [made.append(str(own)) or np.zeros(1), np.ones(1)])
        for index in (0, 1):
            assert turns[own].acquire(timeout=60)
            recipe.array(index)
            turns[1 - own].release()

    threads = [threading.Thread(target=write, args=(own,)) for own in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(made) == ["0", "1"]
